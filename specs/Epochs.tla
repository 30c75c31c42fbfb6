------------------------------- MODULE Epochs -------------------------------
(***************************************************************************)
(* What one epoch does to the operator's state: pure, no variables.  Shared *)
(* by ExactlyOnce and Checkpoint, as both speak of the same computation.    *)
(*                                                                         *)
(* Models: count per tumbling window over a log of event times; W row by    *)
(* row; the row rule; windows that close inside the epoch; the late lane; a *)
(* drain as the last item.                                                  *)
(* Leaves out: keys, values and output modes (Windows); invalid rows and    *)
(* changes of the set of partitions (Watermark): they are items like rows.  *)
(***************************************************************************)
EXTENDS Grid, Values
CONSTANTS Log,            \* << event times of partition 1, of partition 2, ... >>
          Delay, Grace,
          MaxItems,       \* items in one epoch
          AnyOrder        \* FALSE: rows in the order that the offsets give (S5); TRUE: in any
P == DOMAIN Log
Drain == 0

\* Items are partitions, each for the next row of it, and Drain.
StartState == [last |-> [p \in P |-> 0], maxEt |-> [p \in P |-> NEVER], w |-> NEVER,
               open |-> Nothing, late |-> 0]
NoOutbox == [rows |-> Nothing, late |-> {}]
Drained(s) == s.w = END

Candidate(m) == IF \E p \in P : m[p] = NEVER THEN NEVER ELSE MinOf({m[p] : p \in P}) - Delay

\* Windows that w has passed leave the state for the outbox.
Closed(s, out) ==
  LET due == {start \in DOMAIN s.open : s.w >= EndOf(start) + Grace}
  IN [state |-> [s EXCEPT !.open = Without(s.open, due)],
      out |-> [out EXCEPT !.rows = Over(out.rows, Only(s.open, due))]]

\* One item.
Item(s, out, p) ==
  IF p = Drain THEN Closed([s EXCEPT !.w = END], out)
  ELSE LET o == s.last[p] + 1
           et == Log[p][o]
           m == [s.maxEt EXCEPT ![p] = Max2(@, et)]
           moved == [s EXCEPT !.last[p] = o, !.maxEt = m, !.w = Max2(s.w, Candidate(m))]
           start == StartOf(et)
           n == IF start \in DOMAIN s.open THEN s.open[start] ELSE 0
       IN IF et < s.w
          THEN Closed([moved EXCEPT !.late = @ + 1], [out EXCEPT !.late = @ \cup {<<p, o>>}])
          ELSE Closed([moved EXCEPT !.open = With(s.open, start, n + 1)], out)

\* All items of an epoch, one after the other.
RECURSIVE Fold(_, _, _)
Fold(s, out, items) ==
  IF items = << >> THEN [state |-> s, out |-> out]
  ELSE The({Fold(r.state, r.out, Tail(items)) : r \in {Item(s, out, Head(items))}})
Run(s, items) == The({Fold(x, NoOutbox, items) : x \in {s}})

\* A table is [rows, late]: the sink's table and its late lane.
NoTable == [rows |-> Nothing, late |-> {}]
Merge(table, out) == [rows |-> Over(table.rows, out.rows), late |-> table.late \cup out.late]

\* What a history has come to: the state, the table, and the outbox of its last epoch.
StartPoint == [state |-> StartState, table |-> NoTable, out |-> NoOutbox]
NextPoint(point, items) ==
  The({[state |-> a.state, table |-> Merge(point.table, a.out), out |-> a.out]
       : a \in {Run(point.state, items)}})

\* The items that may come next, and all that an epoch begun at s may hold.
Unread(last) == {p \in P : last[p] < Len(Log[p])}
First(last) == CHOOSE p \in Unread(last) : \A q \in Unread(last) :
                 last[p] < last[q] \/ (last[p] = last[q] /\ p <= q)
NextItems(last) == IF Unread(last) = {} THEN {Drain}
                   ELSE IF AnyOrder THEN Unread(last) ELSE {First(last)}
RECURSIVE Sequences(_, _)
Sequences(last, k) ==
  UNION {{<<p>>} \cup (IF k = 1 \/ p = Drain THEN {}
                       ELSE {<<p>> \o rest : rest \in Sequences([last EXCEPT ![p] = @ + 1], k - 1)})
         : p \in NextItems(last)}
EpochsFrom(s) == IF Drained(s) THEN {} ELSE Sequences(s.last, MaxItems)

\* The whole log in the order of its offsets, drained: what an uninterrupted run makes of it.
RECURSIVE InOrder(_)
InOrder(last) == IF Unread(last) = {} THEN <<Drain>>
                 ELSE <<First(last)>> \o InOrder([last EXCEPT ![First(last)] = @ + 1])
Uninterrupted == Run(StartState, InOrder(StartState.last))
=============================================================================
