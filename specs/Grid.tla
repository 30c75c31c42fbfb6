-------------------------------- MODULE Grid --------------------------------
(***************************************************************************)
(* Which window an event time belongs to.  Pure; shared by all modules that *)
(* speak of windows, so that they speak of the same ones.                   *)
(* Models tumbling windows with an offset.  Leaves out hopping and session  *)
(* windows, whose place is beside StartOf.                                  *)
(***************************************************************************)
EXTENDS Integers
CONSTANTS Size,       \* length of a window
          Offset,     \* where the grid begins, modulo Size
          Rounding    \* "floor"; "truncate" is wrong on negative times
ASSUME Size \in Nat \ {0} /\ Offset \in Int /\ Rounding \in {"floor", "truncate"}

\* \div of TLA+ is the floor; what most machines do to negative numbers is the other.
Quotient(a) == IF Rounding = "floor" \/ a >= 0 THEN a \div Size ELSE -((-a) \div Size)
StartOf(et) == Quotient(et - Offset) * Size + Offset
EndOf(start) == start + Size
=============================================================================
