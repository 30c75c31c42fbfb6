-------------------------------- MODULE Sink --------------------------------
(***************************************************************************)
(* Room: sink.  What one sink does with outboxes that anybody may offer, at *)
(* any time, any number of times.                                           *)
(*                                                                         *)
(* Models: two generations of one pipeline (a state_root and its successor);*)
(* committed outboxes with puts and tombstones; engines, late ones too, that*)
(* offer any of them; four kinds of sink: with K5's record, with versions   *)
(* only (M1), files under a deterministic name, and a plain append; a       *)
(* rebuild that is asked for; a crash inside a write that is not one        *)
(* transaction.                                                             *)
(* Leaves out: how outboxes come to be committed (Checkpoint); lanes, which *)
(* are rows of the outbox like others.                                      *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Outboxes,     \* per generation 1..n a sequence of outboxes; these map ids to put or delete
          Kinds,        \* those to try: "record", "versions", "files", "append"
          Applies,      \* "next": iff last = N - 1; wrong: "greater" (iff N > last)
          CheckGeneration,  \* TRUE: in the transaction of the rows
          Together,     \* TRUE: record and rows in one transaction
          Tombstones,   \* "kept": (id, version) stays behind; wrong: "gone"
          Compare,      \* "greater"; wrong: "differs"
          FileNames,    \* "epoch"; wrong: "fresh"
          Claim,        \* what a plain append sink says of itself: "at_least_once"; wrong: "exactly_once"
          MaxOffers, MaxRebuilds
Generations == DOMAIN Outboxes
Put == "put"
Delete == "delete"
Ids == UNION {UNION {DOMAIN Outboxes[g][n] : n \in DOMAIN Outboxes[g]} : g \in Generations}

\* What kind of sink it is; fixed from the start.
VARIABLE kind
KindTypeInv == kind \in Kinds

\* Committed epochs of each generation.
VARIABLE committed
CommittedTypeInv == \A g \in Generations : committed[g] \in 0..Len(Outboxes[g])

\* The table: from ids to [version, from], the epoch and the generation that put the row.
VARIABLE table
TableTypeInv == DOMAIN table \subseteq Ids

\* What tombstones leave behind: from ids to versions.
VARIABLE tombs
TombsTypeInv == DOMAIN tombs \subseteq Ids

\* K5's record.  Generation 0 stands for none.
VARIABLE record
RecordTypeInv == record.generation \in {0} \cup Generations /\ record.last \in Nat

\* Rows written and record not yet: the number of the epoch, or 0.
VARIABLE half
HalfTypeInv == half \in 0..3

\* Append and file sinks: how many copies of each epoch's rows a reader sees.
VARIABLE copies
CopiesTypeInv == \A g \in Generations : copies[g] \in [DOMAIN Outboxes[g] -> Nat]

\* TRUE when an offer was refused with an error.
VARIABLE refused
RefusedTypeInv == refused \in BOOLEAN

\* History: the (generation, epoch) applied since the last rebuild.
VARIABLE aux_applied
AppliedTypeInv == \A a \in aux_applied : a[1] \in Generations

\* Offers and rebuilds so far.
VARIABLE aux_count
CountTypeInv == aux_count.offers \in 0..MaxOffers /\ aux_count.rebuilds \in 0..MaxRebuilds

vars == <<kind, committed, table, tombs, record, half, copies, refused, aux_applied, aux_count>>
SinkTypeInv == /\ KindTypeInv /\ CommittedTypeInv /\ TableTypeInv /\ TombsTypeInv
               /\ RecordTypeInv /\ HalfTypeInv
               /\ CopiesTypeInv /\ RefusedTypeInv /\ AppliedTypeInv /\ CountTypeInv

Init == /\ kind \in Kinds
        /\ committed = [g \in Generations |-> 0]
        /\ table = Nothing /\ tombs = Nothing
        /\ record = [generation |-> 0, last |-> 0]
        /\ half = 0
        /\ copies = [g \in Generations |-> [n \in DOMAIN Outboxes[g] |-> 0]]
        /\ refused = FALSE
        /\ aux_applied = {}
        /\ aux_count = [offers |-> 0, rebuilds |-> 0]

-----------------------------------------------------------------------------
\* MERGE.

Stored(id) == IF id \in DOMAIN table THEN table[id].version
              ELSE IF id \in DOMAIN tombs THEN tombs[id] ELSE 0
Wins(n, id) == IF Compare = "greater" THEN n > Stored(id) ELSE n # Stored(id)
Merged(g, n) ==
  LET box == Outboxes[g][n]
      winners == {id \in DOMAIN box : Wins(n, id)}
      puts == {id \in winners : box[id] = Put}
      deletes == winners \ puts
  IN [table |-> Over(Without(table, deletes), [id \in puts |-> [version |-> n, from |-> g]]),
      tombs |-> Without(IF Tombstones = "kept" THEN Over(tombs, [id \in deletes |-> n]) ELSE tombs, puts)]
Merge(g, n) == LET m == Merged(g, n) IN table' = m.table /\ tombs' = m.tombs

\* The table that outboxes 1..n of a generation make, written without versions.
RECURSIVE TableOf(_, _)
TableOf(g, n) ==
  IF n = 0 THEN Nothing
  ELSE LET box == Outboxes[g][n]
           puts == {id \in DOMAIN box : box[id] = Put}
       IN Over(Without(TableOf(g, n - 1), DOMAIN box \ puts), [id \in puts |-> [version |-> n, from |-> g]])

Own(g) == record.generation = g \/ ~CheckGeneration
Fits(g, n) == \/ record.generation = 0 /\ n = 1
              \/ /\ record.generation # 0 /\ Own(g)
                 /\ IF Applies = "next" THEN record.last = n - 1 ELSE n > record.last
Had(g, n) == record.generation # 0 /\ Own(g) /\ n <= record.last

-----------------------------------------------------------------------------
\* System: the sink answers an offer of outbox n of generation g.

OfferTo(g, n) == /\ n \in 1..committed[g] /\ half = 0 /\ aux_count.offers < MaxOffers
                 /\ aux_count' = [aux_count EXCEPT !.offers = @ + 1]

\* It fits: rows and record are written together.
Apply(g, n) ==
  /\ kind = "record" /\ OfferTo(g, n) /\ Fits(g, n)

  /\ Merge(g, n)
  /\ IF Together THEN record' = [generation |-> g, last |-> n] /\ half' = 0
     ELSE half' = n /\ UNCHANGED record
  /\ aux_applied' = aux_applied \cup {<<g, n>>}
  /\ UNCHANGED <<kind, committed, copies, refused>>

\* Only where record and rows are apart: the record follows.
Note ==
  /\ half # 0

  /\ record' = [generation |-> IF record.generation = 0 THEN 1 ELSE record.generation, last |-> half]
  /\ half' = 0
  /\ UNCHANGED <<kind, committed, table, tombs, copies, refused, aux_applied, aux_count>>

\* The sink has it already: nothing happens.
Skip(g, n) ==
  /\ kind = "record" /\ OfferTo(g, n) /\ Had(g, n)
  /\ UNCHANGED <<kind, committed, table, tombs, record, half, copies, refused, aux_applied>>

\* All else is an error.
Refuse(g, n) ==
  /\ kind = "record" /\ OfferTo(g, n) /\ ~Fits(g, n) /\ ~Had(g, n)

  /\ refused' = TRUE
  /\ UNCHANGED <<kind, committed, table, tombs, record, half, copies, aux_applied>>

\* A sink without K5's record goes by versions alone; it serves one generation.
ApplyByVersion(n) ==
  /\ kind = "versions" /\ OfferTo(1, n)

  /\ Merge(1, n)
  /\ aux_applied' = aux_applied \cup {<<1, n>>}
  /\ UNCHANGED <<kind, committed, record, half, copies, refused>>

\* A plain append sink writes whatever it is offered; a file sink writes the epoch's file, again.
Append1(n) ==
  /\ kind \in {"append", "files"} /\ OfferTo(1, n)

  /\ copies' = [copies EXCEPT ![1][n] = IF kind = "files" /\ FileNames = "epoch" THEN 1 ELSE @ + 1]
  /\ aux_applied' = aux_applied \cup {<<1, n>>}
  /\ UNCHANGED <<kind, committed, table, tombs, record, half, refused>>

\* A rebuild, asked for: in one transaction the table is emptied and the record set to (g, 0).
Rebuild(g) ==
  /\ kind = "record" /\ half = 0 /\ aux_count.rebuilds < MaxRebuilds /\ g >= record.generation

  /\ table' = Nothing /\ tombs' = Nothing
  /\ record' = [generation |-> g, last |-> 0]
  /\ aux_applied' = {}
  /\ refused' = FALSE
  /\ aux_count' = [aux_count EXCEPT !.rebuilds = @ + 1]
  /\ UNCHANGED <<kind, committed, half, copies>>

\* Environment: an engine commits its next epoch.
Commit(g) ==
  /\ committed[g] < Len(Outboxes[g])

  /\ committed' = [committed EXCEPT ![g] = @ + 1]
  /\ UNCHANGED <<kind, table, tombs, record, half, copies, refused, aux_applied, aux_count>>

\* Fault: the writer dies between rows and record.
Die ==
  /\ half # 0

  /\ half' = 0
  /\ UNCHANGED <<kind, committed, table, tombs, record, copies, refused, aux_applied, aux_count>>

Next == \/ \E g \in Generations : Commit(g) \/ Rebuild(g)
        \/ \E g \in Generations, n \in 1..3 : Apply(g, n) \/ Skip(g, n) \/ Refuse(g, n)
        \/ \E n \in 1..3 : ApplyByVersion(n) \/ Append1(n)
        \/ Note \/ Die
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* Laws.

\* LAW K5 TableIsItsRecord: the table is exactly what outboxes 1..last of the recorded generation make,
\* at every moment; a gap, another generation's outbox or a record outside the transaction breaks it.
\* LAW M2 TableIsItsRecord: duplicates, replays and slow zombies do not show in the table.
TableIsItsRecord == kind = "record" =>
  table = IF record.generation = 0 THEN Nothing ELSE TableOf(record.generation, record.last)

\* LAW K5 AppliedInOrder: no outbox is applied while an earlier one is missing.
AppliedInOrder == kind = "record" => \A a \in aux_applied : \A n \in 1..a[2] : <<a[1], n>> \in aux_applied

\* The epochs offered that change an id.
Offered(id) == {n \in 1..3 : <<1, n>> \in aux_applied /\ id \in DOMAIN Outboxes[1][n]}

\* LAW M1 NewestWins: per id the table shows the change with the greatest version among those
\* offered, in whatever order and however often; a tombstone that leaves nothing behind breaks it.
NewestWins == kind = "versions" => \A id \in Ids :
  IF Offered(id) = {} THEN id \notin DOMAIN table
  ELSE LET n == MaxOf(Offered(id))
       IN IF Outboxes[1][n][id] = Put THEN id \in DOMAIN table /\ table[id].version = n
          ELSE id \notin DOMAIN table

\* LAW M3 ExactlyOnceWhereClaimed: a sink that claims exactly-once, such as one file per epoch under a
\* deterministic name, never shows an epoch's rows twice; a plain append sink that claims it breaks it.
ExactlyOnceWhereClaimed ==
  kind = "files" \/ (kind = "append" /\ Claim = "exactly_once") =>
    \A n \in DOMAIN copies[1] : copies[1][n] <= 1

\* LAW M3 AtLeastOnce: what was offered to an append or file sink is there.
AtLeastOnce == kind \in {"append", "files"} => \A a \in aux_applied : copies[a[1]][a[2]] >= 1

\* Witness: an offer is refused (must be reached).
NeverRefused == ~refused
=============================================================================
