------------------------------- MODULE Source -------------------------------
(***************************************************************************)
(* Room: source.  A bounded source of several partitions is read in one     *)
(* order that depends on its offsets alone.                                 *)
(*                                                                         *)
(* Models: logs with holes in their offsets; rows that become visible at    *)
(* any time; a reader that is killed and goes on from the offsets it saved; *)
(* rows that the source loses from the front of a log (retention,           *)
(* compaction) and the reader's refusal to skip them.                       *)
(* Leaves out: the link and its credits (Credits), a source that grows      *)
(* without end, and what is in a row besides its offset and order column.   *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Logs,       \* the logs to try: functions from partitions 1..n to sequences of rows
          Chunk,      \* rows with the same (offset div Chunk) are read together
          Rule,       \* "chunk" or "least"; wrong: "cursor" (volatile turn)
          Naming,     \* "log": the offset stays with its row; wrong: "position" in what is left
          OnLoss,     \* "stop"; wrong: "skip"
          MaxKills, MaxLost

\* A constant, so that TLC splits \E p \in Parts and names the actions.
Parts == DOMAIN (CHOOSE l \in Logs : TRUE)

\* The logs, fixed from the start: a row is [offset, order].
VARIABLE log
LogTypeInv == log \in Logs

\* How many rows of each partition are visible so far.
VARIABLE ready
ReadyTypeInv == \A p \in Parts : ready[p] \in 0..Len(log[p])

\* How many rows at the front of each partition the source no longer has.
VARIABLE gone
GoneTypeInv == \A p \in Parts : gone[p] \in 0..ready[p]

\* How many rows of each partition the reader has read.
VARIABLE read
ReadTypeInv == \A p \in Parts : read[p] \in 0..ready[p]

\* What of it is saved and survives a kill.
VARIABLE saved
SavedTypeInv == \A p \in Parts : saved[p] \in 0..ready[p]

\* Whose turn it is: volatile, and used by the wrong rule "cursor" only.
VARIABLE turn
TurnTypeInv == turn \in Parts

\* TRUE when the reader has stopped and named the rows it misses.
VARIABLE stopped
StoppedTypeInv == stopped \in BOOLEAN

\* Kills and losses so far; they bound the model.
VARIABLE aux_faults
FaultsTypeInv == aux_faults.kills \in 0..MaxKills /\ aux_faults.lost \in 0..MaxLost

\* History: every (partition, offset as named, row) that was ever handed out.
VARIABLE aux_given
GivenTypeInv == \A g \in aux_given : g[1] \in Parts /\ g[3] \in 1..Len(log[g[1]])

vars == <<log, ready, gone, read, saved, turn, stopped, aux_faults, aux_given>>

SourceTypeInv == /\ LogTypeInv /\ ReadyTypeInv /\ GoneTypeInv /\ ReadTypeInv /\ SavedTypeInv
                 /\ TurnTypeInv /\ StoppedTypeInv /\ FaultsTypeInv /\ GivenTypeInv

-----------------------------------------------------------------------------
\* The order.

Unread(r) == {p \in Parts : r[p] < Len(log[p])}
\* Pairs compared as tuples.
Less(a, b) == a[1] < b[1] \/ (a[1] = b[1] /\ a[2] < b[2])
Least(S, key) == CHOOSE x \in S : \A y \in S : x = y \/ Less(key[x], key[y])
HeadKey(r, p) == IF Rule = "least" THEN <<log[p][r[p] + 1].order, p>>
                 ELSE <<log[p][r[p] + 1].offset \div Chunk, p>>

\* Who is next, by the heads alone.
Head1(r) == Least(Unread(r), [p \in Unread(r) |-> HeadKey(r, p)])

\* Who is next, by the definition: the least (o div chunk, p, o) of all rows not read.
Rows(r) == {<<p, i>> : p \in Parts, i \in 1..5} \cap
           UNION {{<<p, i>> : i \in (r[p] + 1)..Len(log[p])} : p \in Parts}
Before(a, b) ==
  LET ca == log[a[1]][a[2]].offset \div Chunk
      cb == log[b[1]][b[2]].offset \div Chunk
  IN ca < cb \/ (ca = cb /\ (a[1] < b[1] \/ (a[1] = b[1] /\ a[2] < b[2])))
FirstBySort(r) == (CHOOSE a \in Rows(r) : \A b \in Rows(r) : a = b \/ Before(a, b))[1]
Canonical(r) == IF Rule = "least" THEN Head1(r) ELSE FirstBySort(r)

Other(p) == IF p = Cardinality(Parts) THEN 1 ELSE p + 1
MayRead(p) == IF Rule = "cursor" THEN p = (IF turn \in Unread(read) THEN turn ELSE Other(turn))
              ELSE p = Head1(read)

Init == /\ log \in Logs
        /\ ready = [p \in Parts |-> 0]
        /\ gone = [p \in Parts |-> 0]
        /\ read = [p \in Parts |-> 0]
        /\ saved = [p \in Parts |-> 0]
        /\ turn = 1
        /\ stopped = FALSE
        /\ aux_faults = [kills |-> 0, lost |-> 0]
        /\ aux_given = {}

-----------------------------------------------------------------------------
\* System: the reader.

\* The next row of p is read, once it is visible; until then the reader waits for it.
Read(p) ==
  /\ ~stopped
  /\ p \in Unread(read) /\ MayRead(p)
  /\ read[p] < ready[p] /\ gone[p] <= read[p]

  /\ read' = [read EXCEPT ![p] = @ + 1]
  /\ turn' = Other(p)
  /\ aux_given' = aux_given \cup
       {<<p, IF Naming = "log" THEN log[p][read[p] + 1].offset ELSE read[p] - gone[p], read[p] + 1>>}
  /\ UNCHANGED <<log, ready, gone, saved, stopped, aux_faults>>

\* The offsets read so far become durable.
Save ==
  /\ ~stopped /\ saved # read

  /\ saved' = read
  /\ UNCHANGED <<log, ready, gone, read, turn, stopped, aux_faults, aux_given>>

\* Rows after the last one read are no longer there: the reader stops and says so.
Refuse(p) ==
  /\ ~stopped /\ gone[p] > read[p]

  /\ IF OnLoss = "stop" THEN stopped' = TRUE /\ UNCHANGED read
     ELSE read' = [read EXCEPT ![p] = gone[p]] /\ UNCHANGED stopped
  /\ UNCHANGED <<log, ready, gone, saved, turn, aux_faults, aux_given>>

\* Environment: one more row of p becomes visible.
Appear(p) ==
  /\ ready[p] < Len(log[p])

  /\ ready' = [ready EXCEPT ![p] = @ + 1]
  /\ UNCHANGED <<log, gone, read, saved, turn, stopped, aux_faults, aux_given>>

\* Fault: the reader is killed and starts again from what it saved.
Kill ==
  /\ ~stopped /\ aux_faults.kills < MaxKills

  /\ read' = saved
  /\ turn' = 1
  /\ aux_faults' = [aux_faults EXCEPT !.kills = @ + 1]
  /\ UNCHANGED <<log, ready, gone, saved, stopped, aux_given>>

\* Fault: the source loses the oldest row that it still has of p.
Lose(p) ==
  /\ gone[p] < ready[p] /\ aux_faults.lost < MaxLost

  /\ gone' = [gone EXCEPT ![p] = @ + 1]
  /\ aux_faults' = [aux_faults EXCEPT !.lost = @ + 1]
  /\ UNCHANGED <<log, ready, read, saved, turn, stopped, aux_given>>

Next == \/ \E p \in Parts : Read(p)
        \/ \E p \in Parts : Refuse(p)
        \/ Save
        \/ \E p \in Parts : Appear(p)
        \/ Kill
        \/ \E p \in Parts : Lose(p)

Fairness == /\ WF_vars(\E p \in Parts : Read(p))
            /\ WF_vars(\E p \in Parts : Refuse(p))
Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
\* LAW S1 OneRowPerOffset: an offset of a partition always names the same row, however often it is
\* read and whatever was removed before it; names that count what is left would break it.
OneRowPerOffset == \A g, h \in aux_given : g[1] = h[1] /\ g[2] = h[2] => g[3] = h[3]

\* LAW S4 NeverSkips: the reader goes on row by row; a row that is gone is never passed over.
NeverSkips == [][\A p \in Parts : read'[p] > read[p] => read'[p] = read[p] + 1 /\ gone[p] <= read[p]]_vars

\* LAW S4 LossIsSaid: rows lost after the last one read stop the reader in the end.
LossIsSaid == \A p \in Parts : (gone[p] > read[p]) ~> (stopped \/ gone[p] <= read[p])

\* LAW S4 NoFalseAlarm: holes in the offsets and rows lost after they were read are no loss.
NoFalseAlarm == stopped => \E p \in Parts : gone[p] > read[p]

\* LAW S5 OrderByOffsets: the next row is a function of the log and the offsets read; neither the
\* time at which rows appear nor a kill shows.
OrderByOffsets == [][\A p \in Parts : read'[p] = read[p] + 1 => p = Canonical(read)]_vars

\* Witness: a killed reader reads the same row twice (must be reached).
NeverReadsAgain == ~(aux_faults.kills > 0 /\ \E p \in Parts : read[p] > saved[p] /\ ~stopped
                     /\ \E g \in aux_given : g[1] = p /\ g[3] > read[p])
=============================================================================
