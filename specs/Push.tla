-------------------------------- MODULE Push --------------------------------
(***************************************************************************)
(* Room: source.  A producer that pushes meets a bounded buffer; offsets are*)
(* given when a row leaves the buffer, so that nothing shed ever had one.   *)
(*                                                                         *)
(* Models: one producer, its buffer, the policies drop_head, drop_tail and  *)
(* spill, a producer that can be paused, and the counter of shed rows.      *)
(* Leaves out: what becomes of the rows afterwards (Credits).               *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Bound,      \* rows that fit into the buffer
          MaxRows,    \* rows that the producer makes
          Policies,   \* those to try: "pause", "drop_head", "drop_tail", "spill"
          GiveAt,     \* "leave": offsets given on leaving the buffer; wrong: "enter"
          Count       \* TRUE: every shed row is counted
ASSUME Bound \in Nat \ {0} /\ Policies \subseteq {"pause", "drop_head", "drop_tail", "spill"}

\* What becomes of a row that meets a full buffer; fixed from the start.
VARIABLE policy
PolicyTypeInv == policy \in Policies

\* Rows that the producer has made: 1..made.
VARIABLE made
MadeTypeInv == made \in 0..MaxRows

\* The buffer: rows as [row, offset]; the offset is 0 while none is given.
VARIABLE buffer
BufferTypeInv == buffer \in Seq([row : 1..MaxRows, offset : 0..MaxRows])

\* Rows on disk, oldest first; they are younger than those in the buffer.
VARIABLE spilled
SpilledTypeInv == spilled \in Seq(1..MaxRows)

\* The log: the sequence of rows that left with their offsets, in the order of leaving.
VARIABLE out
OutTypeInv == out \in Seq([row : 1..MaxRows, offset : 1..MaxRows])

\* How many offsets are given.
VARIABLE given
GivenTypeInv == given \in 0..MaxRows

\* The counter of shed rows.
VARIABLE shed
ShedTypeInv == shed \in 0..MaxRows

vars == <<policy, made, buffer, spilled, out, given, shed>>
PushTypeInv == /\ PolicyTypeInv /\ MadeTypeInv /\ BufferTypeInv /\ SpilledTypeInv
               /\ OutTypeInv /\ GivenTypeInv /\ ShedTypeInv

Init == /\ policy \in Policies
        /\ made = 0 /\ buffer = << >> /\ spilled = << >>
        /\ out = << >> /\ given = 0 /\ shed = 0

Full == Len(buffer) = Bound
OffsetOnEntry == IF GiveAt = "enter" THEN given + 1 ELSE 0
CountShed == shed' = IF Count THEN shed + 1 ELSE shed

\* Environment: the producer makes a row; the policy says where it goes.  A producer that can pause
\* makes none while the buffer is full.
Make ==
  /\ made < MaxRows /\ ~(policy = "pause" /\ Full)

  /\ made' = made + 1
  /\ LET new == [row |-> made + 1, offset |-> OffsetOnEntry] IN
     CASE ~Full /\ spilled = << >> ->
            /\ buffer' = Append(buffer, new)
            /\ given' = IF GiveAt = "enter" THEN given + 1 ELSE given
            /\ UNCHANGED <<spilled, shed>>
       [] ~(~Full /\ spilled = << >>) /\ policy = "spill" ->
            /\ spilled' = Append(spilled, made + 1)
            /\ UNCHANGED <<buffer, given, shed>>
       [] Full /\ policy = "drop_head" ->
            /\ buffer' = Append(Tail(buffer), new)
            /\ given' = IF GiveAt = "enter" THEN given + 1 ELSE given
            /\ CountShed
            /\ UNCHANGED spilled
       [] Full /\ policy = "drop_tail" ->
            /\ CountShed
            /\ UNCHANGED <<buffer, spilled, given>>
  /\ UNCHANGED <<policy, out>>

\* System: the oldest row leaves the buffer and joins the log under the next offset.
Leave ==
  /\ buffer # << >>

  /\ LET head == Head(buffer)
         offset == IF GiveAt = "leave" THEN given + 1 ELSE head.offset
     IN out' = Append(out, [row |-> head.row, offset |-> offset])
  /\ given' = IF GiveAt = "leave" THEN given + 1 ELSE given
  /\ buffer' = Tail(buffer)
  /\ UNCHANGED <<policy, made, spilled, shed>>

\* System: the oldest row on disk goes into the buffer.
Refill ==
  /\ ~Full /\ spilled # << >>

  /\ buffer' = Append(buffer, [row |-> Head(spilled), offset |-> 0])
  /\ spilled' = Tail(spilled)
  /\ UNCHANGED <<policy, made, out, given, shed>>

Next == Make \/ Leave \/ Refill
Spec == Init /\ [][Next]_vars /\ WF_vars(Leave) /\ WF_vars(Refill)

\* LAW C4 BufferBounded: before offsets are given the buffer never exceeds its bound.
BufferBounded == Len(buffer) <= Bound

\* LAW C4 EveryShedRowCounted: each row made is in the log, in the buffer, on disk or counted as shed.
EveryShedRowCounted == made = Len(out) + Len(buffer) + Len(spilled) + shed

\* LAW C4 NothingWithOffsetShed: the log's offsets have no hole and its rows keep their order; a row
\* shed after it got its offset would leave one.
NothingWithOffsetShed == /\ \A i \in 1..Len(out) : out[i].offset = i
                         /\ \A i \in 1..(Len(out) - 1) : out[i].row < out[i + 1].row

\* LAW C4 PausedNeverSheds: a source that can pause, or spill, loses nothing.
PausedNeverSheds == policy \in {"pause", "spill"} => shed = 0 /\ \A i \in 1..Len(out) : out[i].row = i

\* LAW C4 BufferEmpties: what was made and not shed is in the log in the end.
BufferEmpties == <>[](made = Len(out) + shed)

\* Witness: a row is shed (must be reached).
NeverSheds == shed = 0
=============================================================================
