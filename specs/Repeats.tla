------------------------------ MODULE Repeats ------------------------------
(***************************************************************************)
(* Room: watermark.  What becomes of a row, all lanes together: invalid,    *)
(* filtered, late, repeated or admitted.                                    *)
(*                                                                         *)
(* Models: rows with an id, on several partitions; a filter; ids that are   *)
(* remembered until W has passed them; epochs, at whose end the memory is   *)
(* tidied; the three late rules, since what a repeat meets depends on them. *)
(* Leaves out: how idle and removed partitions move W (Watermark, Idle):    *)
(* all are assigned at first; null and NaN in ids, which are values like    *)
(* others; the memory's place in the checkpoint.                            *)
(***************************************************************************)
EXTENDS Grid, Values
CONSTANTS Choices,      \* per partition 1..n a sequence: what its row 1, 2, ... may be
          Delay, Grace,
          Remember,     \* how long beyond its event time an id is remembered
          LateRule,     \* "row" (A1), "window" (A2), "partition" (A3)
          Order,        \* "filtered_late"; wrong: "late_filtered"
          Filter,       \* "after" W has moved; wrong: "before": a filtered row moves nothing
          Counting,     \* "all"; wrong: "not_repeated"
          Forgotten,    \* "passed": W > et + Remember; wrong: "reached" (>=), "at_cut" (each epoch anew)
          Tidied,       \* TRUE: what is forgotten leaves the memory at each cut
          Asked,        \* "memory_and_w"; wrong: "memory": what is in memory is remembered
          OneByOne      \* where the logs are fixed: the rows <<p, n>> that a run admits which reads
                        \* one partition after another

Parts == DOMAIN Choices
Bad == -999      \* an invalid event time: a mark, never used as a number

\* A row is [et, id, passes]; a filter that says null is one that it does not pass.
RowsOf(times, ids) == [et : times, id : ids, passes : BOOLEAN]
OneRow(et, id) == {[et |-> et, id |-> id, passes |-> TRUE]}
Ids == {r.id : r \in UNION {UNION {Choices[p][n] : n \in DOMAIN Choices[p]} : p \in Parts}}

Lanes == {"admitted", "late", "invalid", "filtered", "repeated"}

\* max_et, and W.
VARIABLE maxEt
MaxEtTypeInv == \A p \in Parts : maxEt[p] \in Int
VARIABLE w
WTypeInv == w \in NEVER..END

\* Counters of each partition.
VARIABLE count
CountTypeInv == \A p \in Parts : count[p] \in [Lanes -> 0..Len(Choices[p])]

\* The memory: for each id the event time of the row that brought it.
VARIABLE seen
SeenTypeInv == DOMAIN seen \subseteq Ids /\ \A id \in DOMAIN seen : seen[id] \in Int \ {Bad}

\* Whether a row was accepted since the last cut.
VARIABLE begun
BegunTypeInv == begun \in BOOLEAN

\* How many rows of each partition were accepted.
VARIABLE aux_accepted
AcceptedTypeInv == \A p \in Parts : aux_accepted[p] \in 0..Len(Choices[p])

\* History: the admitted rows.
VARIABLE aux_admitted
AdmittedTypeInv == \A a \in aux_admitted : a.id \in Ids /\ a.et \in Int \ {Bad}

\* The last row judged, or the empty record.
VARIABLE aux_judged
NoRow == [lane |-> "none"]
JudgedTypeInv == aux_judged.lane \in Lanes \cup {"none"}

vars == <<maxEt, w, count, seen, begun, aux_accepted, aux_admitted, aux_judged>>

RepeatsTypeInv ==
  /\ MaxEtTypeInv /\ WTypeInv /\ CountTypeInv /\ SeenTypeInv /\ BegunTypeInv
  /\ AcceptedTypeInv /\ AdmittedTypeInv /\ JudgedTypeInv

Init == /\ maxEt = [p \in Parts |-> NEVER]
        /\ w = NEVER
        /\ count = [p \in Parts |-> [l \in Lanes |-> 0]]
        /\ seen = Nothing
        /\ begun = FALSE
        /\ aux_accepted = [p \in Parts |-> 0]
        /\ aux_admitted = {}
        /\ aux_judged = NoRow

-----------------------------------------------------------------------------
\* Admission.

IsLate(p, et, m, bound) ==
  CASE LateRule = "window"    -> EndOf(StartOf(et)) + Grace <= bound
    [] LateRule = "partition" -> et < bound \/ et < m[p] - Delay
    [] OTHER                  -> et < bound

\* Whether a memory of an id with this time is over.
IsOver(et, bound) == CASE Forgotten = "reached" -> bound >= et + Remember
                      [] OTHER                 -> bound > et + Remember
IsRepeated(id) == id \in DOMAIN seen /\ (Asked = "memory" \/ ~IsOver(seen[id], w))

Judge(p, r) ==
  LET invalid  == r.et = Bad
      filtered == ~r.passes
      late     == ~invalid /\ IsLate(p, r.et, maxEt, w)
      repeated == IsRepeated(r.id)
  IN IF invalid THEN "invalid"
     ELSE IF Order = "late_filtered" /\ late THEN "late"
     ELSE IF filtered THEN "filtered"
     ELSE IF late THEN "late"
     ELSE IF repeated THEN "repeated"
     ELSE "admitted"

Candidate(m) == IF \E p \in Parts : m[p] = NEVER THEN NEVER ELSE MinOf({m[p] : p \in Parts}) - Delay

-----------------------------------------------------------------------------
\* System.

\* A row of p is accepted and judged; then W moves.
Take(p) ==
  /\ aux_accepted[p] < Len(Choices[p])

  /\ \E r \in Choices[p][aux_accepted[p] + 1] :
       LET lane == Judge(p, r)
           moves == lane # "invalid" /\ (Filter = "after" \/ r.passes)
       IN /\ maxEt' = IF moves THEN [maxEt EXCEPT ![p] = Max2(@, r.et)] ELSE maxEt
          /\ w' = Max2(w, Candidate(maxEt'))
          /\ count' = IF lane = "repeated" /\ Counting = "not_repeated" THEN count
                      ELSE [count EXCEPT ![p][lane] = @ + 1]
          /\ seen' = IF lane = "admitted" THEN With(seen, r.id, r.et) ELSE seen
          /\ aux_admitted' = IF lane # "admitted" THEN aux_admitted
                             ELSE aux_admitted \cup {[id |-> r.id, et |-> r.et,
                                                      row |-> <<p, aux_accepted[p] + 1>>]}
          /\ aux_judged' = [lane |-> lane, p |-> p, et |-> r.et, id |-> r.id, passes |-> r.passes]
  /\ begun' = TRUE
  /\ aux_accepted' = [aux_accepted EXCEPT ![p] = @ + 1]

\* The epoch is cut, and the memory tidied.
Cut ==
  /\ begun

  /\ seen' = CASE Forgotten = "at_cut" -> Nothing
               [] ~Tidied              -> seen
               [] OTHER                -> Only(seen, {id \in DOMAIN seen : ~IsOver(seen[id], w)})
  /\ begun' = FALSE
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<maxEt, w, count, aux_accepted, aux_admitted>>

Next == (\E p \in Parts : Take(p)) \/ Cut
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* Laws.

\* Admitted before the row, and W has not passed it.
StillRemembered(id, before, bound) == \E a \in before : a.id = id /\ bound <= a.et + Remember

\* LAW A5 EveryRowCounted: accepted = admitted + late + invalid + filtered + repeated, for each partition.
EveryRowCounted == \A p \in Parts : aux_accepted[p] = Sum(count[p])

\* LAW A5 JudgedInOrder: a row is invalid, else filtered, else late, else repeated, else admitted: the
\* first of these that it is.
\* LAW A7 JudgedInOrder: a row is repeated exactly if its id was admitted with a time that W has not passed,
\* by remember; where the epoch was cut does not show.
JudgedInOrder ==
  [][aux_judged'.lane # "none" =>
       LET j == aux_judged'
       IN j.lane = CASE j.et = Bad                            -> "invalid"
                     [] ~j.passes                             -> "filtered"
                     [] IsLate(j.p, j.et, maxEt, w)           -> "late"
                     [] StillRemembered(j.id, aux_admitted, w) -> "repeated"
                     [] OTHER                                 -> "admitted"]_vars

\* LAW A7 NoRepeatAdmitted: no row is admitted whose id is still remembered.
NoRepeatAdmitted ==
  [][aux_judged'.lane = "admitted" => ~StillRemembered(aux_judged'.id, aux_admitted, w)]_vars

\* LAW A7 EveryRepeatFound: a row that comes again with its own time is never admitted twice, however short
\* the memory: when it is forgotten, it is late. The window rule would break it.
EveryRepeatFound ==
  [][aux_judged'.lane = "admitted" =>
       ~\E a \in aux_admitted : a.id = aux_judged'.id /\ a.et = aux_judged'.et]_vars

\* LAW A7 MemoryIsBounded: after each epoch nothing is remembered that W has passed.
\* LAW F3 MemoryIsBounded: so its size is bounded by the rows between W and the newest.
MemoryIsBounded == ~begun => \A id \in DOMAIN seen : w <= seen[id] + Remember

\* LAW A8 FilteredMoves: a valid row moves max_et, and so W, whether it passes the filter or not.
FilteredMoves ==
  [][aux_judged'.lane \notin {"none", "invalid"} =>
       /\ maxEt'[aux_judged'.p] = Max2(maxEt[aux_judged'.p], aux_judged'.et)
       /\ w' = Max2(w, Candidate(maxEt'))]_vars

\* LAW A8 FilteredIsNothingElse: a row that the filter does not pass is neither late, nor admitted, nor
\* remembered.
FilteredIsNothingElse ==
  [][aux_judged'.lane # "none" /\ aux_judged'.et # Bad /\ ~aux_judged'.passes =>
       /\ aux_judged'.lane = "filtered"
       /\ UNCHANGED <<seen, aux_admitted>>]_vars

\* What deduplicate takes from T8: two rows of one id that are not the same row may be read in either order,
\* and the first is admitted.
OrderNeverShows ==
  (\A p \in Parts : aux_accepted[p] = Len(Choices[p])) => {a.row : a \in aux_admitted} = OneByOne

\* Witness: an id is admitted again once W has passed its first row (must be reached).
NeverAdmittedAgain == \A a, b \in aux_admitted : a.id = b.id => a = b
=============================================================================
