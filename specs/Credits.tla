------------------------------ MODULE Credits ------------------------------
(***************************************************************************)
(* Room: credits.  Rows travel from a source over a bad link to a sequencer;*)
(* a window of credits bounds what is under way, and a committed epoch      *)
(* gives the credits back.                                                  *)
(*                                                                         *)
(* Models: per partition a log with holes in its offsets; a link that       *)
(* duplicates, reorders, delays and loses; sending again; the sequencer by  *)
(* the chain of prev; epochs; acknowledgements that may be lost; an engine  *)
(* that is killed and asks to go on from what it committed; a partition     *)
(* whose link is dead.                                                      *)
(* Leaves out: what is in a row, how an epoch is committed (Checkpoint),    *)
(* timers that cut epochs earlier (none is the worst case), and push        *)
(* sources (Push).                                                          *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Parts,        \* partitions
          Log,          \* increasing offsets with holes, the same for each partition
          Credit,       \* C_p: credits of each partition
          Trigger,      \* an epoch is cut when it has so many rows
          Dead,         \* partitions whose link delivers nothing
          MaxFaults,    \* duplicates and losses, of rows and of acknowledgements
          MaxKills,
          Sequencer,    \* "prev"; wrong: "dense" (offset + 1), "newest" (anything greater),
                        \* "forgets_held" (a held row is no duplicate)
          PrevAtStart,  \* "last": first row names the offset asked for; wrong: "none"
          Pool,         \* "each": credits per partition; wrong: "shared"
          CutOnFull,    \* TRUE: an epoch is also cut when a whole window is accepted
          Resend,       \* TRUE: a lost row is sent again
          Resync,       \* TRUE: a lost acknowledgement is sent again
          FreeAgain     \* TRUE: sending again takes no second credit
ASSUME Credit \in Nat \ {0} /\ Trigger \in Nat \ {0} /\ Dead \subseteq Parts
ASSUME \A i \in 1..(Len(Log) - 1) : Log[i] < Log[i + 1]

\* Rows are named by their place 1..N in the log; only the sequencer has to live with offsets.
N == Len(Log)
NoOffset == -1
OffsetOf(i) == IF i = 0 THEN NoOffset ELSE Log[i]

\* Credits that the source holds.
VARIABLE credit
CreditTypeInv == credit \in [Parts -> Int]

\* The last row sent for the first time.
VARIABLE sent
SentTypeInv == sent \in [Parts -> 0..N]

\* Rows on the wire.
VARIABLE wire
WireTypeInv == wire \in [Parts -> SUBSET (1..N)]

\* Rows that the link lost and that are not yet sent again.
VARIABLE lost
LostTypeInv == lost \in [Parts -> SUBSET (1..N)]

\* Rows that arrived before the one they wait for.
VARIABLE held
HeldTypeInv == held \in [Parts -> SUBSET (1..N)]

\* The last row accepted in order.
VARIABLE last
LastTypeInv == last \in [Parts -> 0..N]

\* The last row of a committed epoch.
VARIABLE committed
CommittedTypeInv == committed \in [Parts -> 0..N]

\* The acknowledgement on its way back: a committed row, or 0.
VARIABLE ack
AckTypeInv == ack \in [Parts -> 0..N]

\* The last row that the source knows to be committed.
VARIABLE acked
AckedTypeInv == acked \in [Parts -> 0..N]

\* The row after which the source was asked to go on when the engine started.
VARIABLE base
BaseTypeInv == base \in [Parts -> 0..N]

\* duplicate_rows_dropped.
VARIABLE duplicates
DuplicatesTypeInv == duplicates \in 0..(2 * N * Cardinality(Parts))

\* Faults and kills so far; they bound the model.
VARIABLE aux_faults
FaultsTypeInv == aux_faults.link \in 0..MaxFaults /\ aux_faults.kills \in 0..MaxKills

\* History: the rows that were accepted and not undone by a kill.
VARIABLE aux_accepted
AcceptedTypeInv == aux_accepted \in [Parts -> SUBSET (1..N)]

\* History: deliveries of this life, and how many of them were of a row not seen in it before.
VARIABLE aux_arrived
ArrivedTypeInv == aux_arrived.all \in Nat /\ aux_arrived.new \in Nat

source == <<credit, sent, acked, base>>
link == <<wire, lost, ack>>
engine == <<held, last, committed, duplicates>>
aux == <<aux_faults, aux_accepted, aux_arrived>>
vars == <<source, link, engine, aux>>

CreditsTypeInv ==
  /\ CreditTypeInv /\ SentTypeInv /\ WireTypeInv /\ LostTypeInv /\ HeldTypeInv /\ LastTypeInv
  /\ CommittedTypeInv /\ AckTypeInv /\ AckedTypeInv /\ BaseTypeInv /\ DuplicatesTypeInv
  /\ FaultsTypeInv /\ AcceptedTypeInv /\ ArrivedTypeInv

All(v) == [p \in Parts |-> v]
Init == /\ credit = All(Credit) /\ sent = All(0) /\ acked = All(0) /\ base = All(0)
        /\ wire = All({}) /\ lost = All({}) /\ ack = All(0)
        /\ held = All({}) /\ last = All(0) /\ committed = All(0) /\ duplicates = 0
        /\ aux_faults = [link |-> 0, kills |-> 0]
        /\ aux_accepted = All({}) /\ aux_arrived = [all |-> 0, new |-> 0]

-----------------------------------------------------------------------------
\* Helpers.

\* What a delivery names as the offset before it.
PrevOf(p, i) == IF i - 1 = base[p] /\ PrevAtStart = "none" THEN NoOffset ELSE OffsetOf(i - 1)

IsDuplicate(p, i) == \/ OffsetOf(i) <= OffsetOf(last[p])
                     \/ i \in held[p] /\ Sequencer # "forgets_held"
Follows(p, i) == CASE Sequencer \in {"prev", "forgets_held"} ->
                        PrevOf(p, i) = OffsetOf(last[p])
                   [] Sequencer = "dense" ->
                        OffsetOf(i) = OffsetOf(last[p]) + 1
                   [] OTHER -> TRUE

\* Row i and the held rows it unblocks, one after the other.
RECURSIVE Unblocked(_, _)
Unblocked(p, i) == IF (i + 1) \in held[p] /\ Sequencer # "dense" THEN Unblocked(p, i + 1) ELSE i

HasCredit(p) == IF Pool = "each" THEN credit[p] > 0
                ELSE SumOver([q \in Parts |-> Credit - credit[q]], Parts) < Credit

InEpoch(p) == last[p] - committed[p]
Full(p) == InEpoch(p) >= Credit
AllAccepted == \A p \in Parts : last[p] = N
CutDue == \/ SumOver([p \in Parts |-> InEpoch(p)], Parts) >= Trigger
          \/ CutOnFull /\ \E p \in Parts : Full(p)
          \/ AllAccepted /\ \E p \in Parts : InEpoch(p) > 0

-----------------------------------------------------------------------------
\* System: source, sequencer and epochs.

\* The source sends its next row and pays a credit.
Send(p) ==
  /\ sent[p] < N /\ HasCredit(p)

  /\ sent' = [sent EXCEPT ![p] = @ + 1]
  /\ wire' = [wire EXCEPT ![p] = @ \cup {sent[p] + 1}]
  /\ credit' = [credit EXCEPT ![p] = @ - 1]
  /\ UNCHANGED <<acked, base, lost, ack, engine, aux>>

\* A row that got lost is sent again, without a second credit.
SendAgain(p) ==
  /\ Resend /\ lost[p] # {} /\ (FreeAgain \/ credit[p] > 0)

  /\ wire' = [wire EXCEPT ![p] = @ \cup lost[p]]
  /\ lost' = [lost EXCEPT ![p] = {}]
  /\ credit' = IF FreeAgain THEN credit ELSE [credit EXCEPT ![p] = @ - 1]
  /\ UNCHANGED <<sent, acked, base, ack, engine, aux>>

\* What the sequencer does with a delivery: drop it, accept it and what it unblocks, or hold it.
Sequence(p, i) ==
  /\ aux_arrived' = [all |-> aux_arrived.all + 1,
                     new |-> aux_arrived.new +
                             (IF i \in aux_accepted[p] \/ i \in held[p] THEN 0 ELSE 1)]
  /\ CASE IsDuplicate(p, i) ->
            /\ duplicates' = duplicates + 1
            /\ UNCHANGED <<held, last, aux_accepted>>
       [] ~IsDuplicate(p, i) /\ Follows(p, i) ->
            /\ last' = [last EXCEPT ![p] = Unblocked(p, i)]
            /\ held' = [held EXCEPT ![p] = @ \ (i..Unblocked(p, i))]
            /\ aux_accepted' = [aux_accepted EXCEPT ![p] = @ \cup (i..Unblocked(p, i))]
            /\ UNCHANGED duplicates
       [] OTHER ->
            /\ held' = [held EXCEPT ![p] = @ \cup {i}]
            /\ UNCHANGED <<last, duplicates, aux_accepted>>
  /\ UNCHANGED <<source, committed, lost, ack>>

\* Some row arrives, in no particular order.
Arrive(p) ==
  /\ p \notin Dead
  /\ \E i \in wire[p] : /\ wire' = [wire EXCEPT ![p] = @ \ {i}]
                        /\ Sequence(p, i)
  /\ UNCHANGED aux_faults

\* The epoch is committed, and an acknowledgement of each partition in it goes back.
Commit ==
  /\ CutDue

  /\ committed' = last
  /\ ack' = [p \in Parts |-> IF InEpoch(p) > 0 THEN last[p] ELSE ack[p]]
  /\ UNCHANGED <<source, wire, lost, held, last, duplicates, aux>>

\* The acknowledgement arrives; it counts for all rows up to the one it names.
Acknowledge(p) ==
  /\ ack[p] > 0

  /\ acked' = [acked EXCEPT ![p] = Max2(@, ack[p])]
  /\ credit' = [credit EXCEPT ![p] = @ + Max2(acked[p], ack[p]) - acked[p]]
  /\ ack' = [ack EXCEPT ![p] = 0]
  /\ UNCHANGED <<sent, base, wire, lost, engine, aux>>

\* The engine says again what it has committed, when nothing of it is on the way.
AcknowledgeAgain(p) ==
  /\ Resync /\ ack[p] = 0 /\ acked[p] < committed[p]

  /\ ack' = [ack EXCEPT ![p] = committed[p]]
  /\ UNCHANGED <<source, wire, lost, engine, aux>>

System(p) == Send(p) \/ SendAgain(p) \/ Arrive(p) \/ Acknowledge(p) \/ AcknowledgeAgain(p)

-----------------------------------------------------------------------------
\* Fault: the link and the engine's death.

LinkFault == /\ aux_faults.link < MaxFaults
             /\ aux_faults' = [aux_faults EXCEPT !.link = @ + 1]

\* A row arrives and stays on the wire: it will arrive again.
ArriveTwice(p) ==
  /\ p \notin Dead /\ LinkFault
  /\ \E i \in wire[p] : Sequence(p, i)
  /\ UNCHANGED wire

\* A row gets lost.
LoseRow(p) ==
  /\ p \notin Dead /\ LinkFault
  /\ \E i \in wire[p] : /\ wire' = [wire EXCEPT ![p] = @ \ {i}]
                        /\ lost' = [lost EXCEPT ![p] = @ \cup {i}]
  /\ UNCHANGED <<source, ack, engine, aux_accepted, aux_arrived>>

\* An acknowledgement gets lost.
LoseAck(p) ==
  /\ ack[p] > 0 /\ LinkFault
  /\ ack' = [ack EXCEPT ![p] = 0]
  /\ UNCHANGED <<source, wire, lost, engine, aux_accepted, aux_arrived>>

\* The engine is killed.  It starts again with fresh connections and all credits, and asks each
\* partition to go on from what is committed.
Kill ==
  /\ aux_faults.kills < MaxKills

  /\ aux_faults' = [aux_faults EXCEPT !.kills = @ + 1]
  /\ credit' = All(Credit) /\ sent' = committed /\ acked' = committed /\ base' = committed
  /\ wire' = All({}) /\ lost' = All({}) /\ ack' = All(0)
  /\ held' = All({}) /\ last' = committed /\ duplicates' = 0
  /\ aux_accepted' = [p \in Parts |-> aux_accepted[p] \cap (1..committed[p])]
  /\ aux_arrived' = [all |-> 0, new |-> 0]
  /\ UNCHANGED committed

\* Everything is accepted, committed and acknowledged: the model may rest.
Finished ==
  /\ \A p \in Parts : committed[p] = N /\ acked[p] = N
  /\ UNCHANGED vars

Next == \/ \E p \in Parts : System(p)
        \/ Commit
        \/ \E p \in Parts : ArriveTwice(p) \/ LoseRow(p) \/ LoseAck(p)
        \/ Kill
        \/ Finished

Fairness == /\ WF_vars(Commit)
            /\ \A p \in Parts : /\ WF_vars(Send(p)) /\ WF_vars(SendAgain(p)) /\ WF_vars(Arrive(p))
                                /\ WF_vars(Acknowledge(p)) /\ WF_vars(AcknowledgeAgain(p))
Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
\* Laws.

\* LAW S2 AcceptedInOrder: over a link that duplicates, reorders and loses, what is accepted is the log
\* itself, row by row.
\* LAW S3 AcceptedInOrder: no row is accepted before the one whose offset it names as prev; a
\* sequencer that takes any greater offset would break it.
AcceptedInOrder == \A p \in Parts : aux_accepted[p] = 1..last[p]

\* LAW S2 LostIsAccepted: a row that got lost is sent again and accepted in the end.
LostIsAccepted == \A p \in Parts \ Dead, i \in 1..N : (i \in lost[p]) ~> (i \in aux_accepted[p])

\* LAW S3 DuplicatesCounted: every delivery of a row seen before is dropped and counted, no other is.
DuplicatesCounted == duplicates = aux_arrived.all - aux_arrived.new

\* Sent in this life and not acknowledged: on the wire, lost under way, held, or accepted.
InFlight(p) == Cardinality({i \in (acked[p] + 1)..N :
                              i \in wire[p] \cup lost[p] \cup held[p] \cup aux_accepted[p]})

\* LAW C1 Conservation: credits held and rows under way always make up C_p; a duplicate or a row sent
\* again that takes a credit would break it.
Conservation == \A p \in Parts : /\ credit[p] + InFlight(p) = Credit
                                 /\ 0 <= credit[p] /\ credit[p] <= Credit

\* LAW C2 OffsetWindow: the credit of p is the window of C_p rows from the first one not committed, as
\* the source knows it.
OffsetWindow == \A p \in Parts : sent[p] <= acked[p] + Credit

\* LAW C2 OldestGapMoves: the row that p waits for is under way, or can be sent, or the credits
\* it needs are on their way back, or the epoch that gives them back is due.
OldestGapMoves == \A p \in Parts : last[p] < N =>
  \/ last[p] + 1 \in wire[p] \cup lost[p]
  \/ sent[p] = last[p] /\ HasCredit(p)
  \/ acked[p] < committed[p] /\ (ack[p] > 0 \/ Resync)
  \/ CutDue

\* LAW C3 EveryRowAccepted: with fair delivery and acknowledgement every row of every partition with
\* a living link is accepted in the end, whatever the other partitions do.
\* LAW C2 EveryRowAccepted: a stalled partition never holds the credits of another; one pool of credits
\* for all would break it.
EveryRowAccepted == \A p \in Parts \ Dead : <>[](last[p] = N)

\* Witness: a row waits for an earlier one that was lost (must be reached).
NeverHeldBehindLoss == \A p \in Parts : held[p] = {} \/ lost[p] = {}
=============================================================================
