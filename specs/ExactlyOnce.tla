----------------------------- MODULE ExactlyOnce -----------------------------
(***************************************************************************)
(* What the checkpoint promises, and no more: epochs happen one after the   *)
(* other, each at once; and the sink follows them, each at once.            *)
(*                                                                         *)
(* Models: the history of epochs, the state after it, and a table that may  *)
(* lag behind it and may be rebuilt.                                        *)
(* Leaves out: files, crashes, engines.  Checkpoint is shown to refine this *)
(* module.                                                                  *)
(***************************************************************************)
EXTENDS Epochs

\* Each epoch so far: its items and its outbox.
VARIABLE history

\* The operator's state after the history.
VARIABLE state

\* How many epochs the table shows.
VARIABLE published

\* The table, with its late lane.
VARIABLE table

vars == <<history, state, published, table>>
Init == history = << >> /\ state = StartState /\ published = 0 /\ table = NoTable

\* An epoch happens.
Epoch ==
  /\ \E items \in EpochsFrom(state) :
       \E r \in {Run(state, items)} :
         /\ history' = Append(history, [items |-> items, out |-> r.out])
         /\ state' = r.state
  /\ UNCHANGED <<published, table>>

\* The table takes in the next epoch.
Publish ==
  /\ published < Len(history)

  /\ published' = published + 1
  /\ table' = Merge(table, history[published + 1].out)
  /\ UNCHANGED <<history, state>>

\* The table is emptied, to be filled again.
Rebuild ==
  /\ published' = 0 /\ table' = NoTable
  /\ UNCHANGED <<history, state>>

Next == Epoch \/ Publish \/ Rebuild
Spec == Init /\ [][Next]_vars
=============================================================================
