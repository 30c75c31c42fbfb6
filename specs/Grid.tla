-------------------------------- MODULE Grid --------------------------------
(***************************************************************************)
(* Which window an event time belongs to.  Pure; shared by all modules that *)
(* speak of windows, so that they speak of the same ones.                   *)
(* Models tumbling and hopping windows with an offset.  Leaves out sessions *)
(* (Sessions) and the calendar, which no grid gives.                        *)
(***************************************************************************)
EXTENDS Integers
CONSTANTS Size,       \* length of a window
          Offset,     \* where the grid begins, modulo Size
          Rounding    \* "floor"; "truncate" is wrong on negative times
ASSUME Size \in Nat \ {0} /\ Offset \in Int /\ Rounding \in {"floor", "truncate"}

\* \div of TLA+ is the floor; what most machines do to negative numbers is the other.
Quotient(a, b) == IF Rounding = "floor" \/ a >= 0 THEN a \div b ELSE -((-a) \div b)
EndOf(start) == start + Size

\* Where windows start at each Offset modulo slide: the last start up to et, and the starts of all the
\* windows that hold et. Size need not be a multiple of slide.
LastStart(et, slide) == Quotient(et - Offset, slide) * slide + Offset
StartsOf(et, slide) ==
  {s \in {LastStart(et, slide) - n * slide : n \in 0..(Size \div slide)} : EndOf(s) > et}

\* Tumbling: the one window that holds et.
StartOf(et) == LastStart(et, Size)
=============================================================================
