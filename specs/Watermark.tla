----------------------------- MODULE Watermark -----------------------------
(***************************************************************************)
(* Room: watermark.  Event times per partition become one bound W that      *)
(* never falls; rows are judged against it as they come.                    *)
(*                                                                         *)
(* Models: several partitions that are added, removed and added again; rows *)
(* in any interleaving, valid or not; the candidate min(max_et) - delta; W  *)
(* that rows move, or that moves when an epoch is cut; the three late       *)
(* rules; the guard against times far ahead with its clock readings; lanes; *)
(* a drain that is asked for.                                               *)
(* Leaves out: idle partitions (Idle); the filter and repeated rows         *)
(* (Repeats); what windows do with W (Windows); duplicates, which the       *)
(* sequencer has dropped before (Credits).                                  *)
(***************************************************************************)
EXTENDS Grid, Values
CONSTANTS Choices,      \* per partition 1..n a sequence: what the time of its row 1, 2, ... may be
          Delay,        \* delta
          Grace,        \* Delta
          Ahead,        \* max_future_ms, or 1000 where the guard is off
          Clocks,       \* the readings that the clock may give, increasing
          MaxChanges,   \* additions and removals
          Clamp,        \* "all": W := max(W, candidate); wrong: "none", "rows" (not on changes)
          Formula,      \* "min_of_max"; wrong: "min_of_all" (deep dive), "ignore_silent"
          Moves,        \* "all": after each row and each change; wrong: "rows"
          Update,       \* "row", "epoch": what moves W, each row or the cut; wrong: "both" (rows in an epoch)
          LateRule,     \* "row" (A1), "window" (A2), "partition" (A3)
          LateTest,     \* "strict": as the rule says; "after_row": by W after the row, which is the same;
                        \* wrong: "or_equal", "after_batch" (by W after all rows of the partition),
                        \* "no_grace", "into_closed" (A2), "no_w", "of_all" (A3)
          InvalidRow,   \* "passed"; wrong: "moves", "stops", "uncounted"
          Removed,      \* "kept": a removed partition's numbers are kept; wrong: "forgotten"
          LaneKey,      \* "offset"; wrong: "time"
          DrainRule,    \* "asked"; wrong: "unasked", "early"
          AfterDrain    \* "stop"; wrong: "go_on"

Parts == DOMAIN Choices

\* An event time that is null, NaN, undecodable or out of range: a mark, never used as a number.
Bad == -999
Off == 1000

\* Partitions assigned now.
VARIABLE assigned
AssignedTypeInv == assigned \in SUBSET Parts

\* How many rows of each partition are accepted; kept for removed ones too.
VARIABLE accepted
AcceptedTypeInv == \A p \in Parts : accepted[p] \in 0..Len(Choices[p])

\* max_et: the largest valid event time accepted from p, or NEVER.
VARIABLE maxEt
MaxEtTypeInv == \A p \in Parts : maxEt[p] \in Int

\* Used by the wrong formula "min_of_all" only: the least event time ever accepted.
VARIABLE minEt
MinEtTypeInv == minEt \in Int

\* The watermark.
VARIABLE w
WTypeInv == w \in NEVER..END

\* The last clock reading.
VARIABLE clock
ClockTypeInv == clock \in Clocks

\* Counters of each partition.
VARIABLE count
CountTypeInv == count \in [Parts -> [admitted : Nat, late : Nat, invalid : Nat]]

\* The late lane: the identities of late rows.
VARIABLE lateLane
LateLaneTypeInv == \A r \in lateLane : r[1] \in Parts

\* Whether the caller asked for a drain.
VARIABLE asked
AskedTypeInv == asked \in BOOLEAN

\* "running", "drained", or "stopped" when more rows were found after a drain.
VARIABLE phase
PhaseTypeInv == phase \in {"running", "drained", "stopped"}

\* The last row judged, with W as it stood just before, or the empty record.
VARIABLE aux_judged
NoRow == [lane |-> "none"]
JudgedTypeInv == aux_judged.lane \in {"none", "admitted", "late", "invalid"}

\* History: the valid event times accepted from each partition.
VARIABLE aux_times
TimesTypeInv == \A p \in Parts : aux_times[p] \subseteq Int

\* History: the largest candidate there ever was.
VARIABLE aux_best
BestTypeInv == aux_best \in NEVER..END

\* Changes of the set of partitions so far.
VARIABLE aux_changes
ChangesTypeInv == aux_changes \in 0..MaxChanges

vars == <<assigned, accepted, maxEt, minEt, w, clock, count, lateLane, asked, phase,
          aux_judged, aux_times, aux_best, aux_changes>>

WatermarkTypeInv ==
  /\ AssignedTypeInv /\ AcceptedTypeInv /\ MaxEtTypeInv /\ MinEtTypeInv /\ WTypeInv /\ ClockTypeInv
  /\ CountTypeInv /\ LateLaneTypeInv /\ AskedTypeInv /\ PhaseTypeInv /\ JudgedTypeInv
  /\ TimesTypeInv /\ BestTypeInv /\ ChangesTypeInv

Init == /\ assigned = {}
        /\ accepted = [p \in Parts |-> 0]
        /\ maxEt = [p \in Parts |-> NEVER]
        /\ minEt = END
        /\ w = NEVER
        /\ clock = MinOf(Clocks)
        /\ count = [p \in Parts |-> [admitted |-> 0, late |-> 0, invalid |-> 0]]
        /\ lateLane = {}
        /\ asked = FALSE
        /\ phase = "running"
        /\ aux_judged = NoRow
        /\ aux_times = [p \in Parts |-> {}]
        /\ aux_best = NEVER
        /\ aux_changes = 0

-----------------------------------------------------------------------------
\* The bound.

\* The candidate over the active partitions A, or NEVER if there is none.
Candidate(A, m, least) ==
  LET heard == {p \in A : m[p] # NEVER}
      B == IF Formula = "ignore_silent" THEN heard ELSE A
  IN IF Formula = "min_of_all" THEN (IF least = END THEN NEVER ELSE least - Delay)
     ELSE IF B = {} \/ \E p \in B : m[p] = NEVER THEN NEVER
     ELSE MinOf({m[p] : p \in B}) - Delay

AfterRow(A, m, least) == IF Clamp = "none" THEN Candidate(A, m, least)
                         ELSE Max2(w, Candidate(A, m, least))
AfterChange(A, m, least) == CASE Moves = "rows" -> w
                              [] Moves # "rows" /\ Clamp = "all" -> Max2(w, Candidate(A, m, least))
                              [] OTHER -> IF A = {} THEN w ELSE Candidate(A, m, least)

\* The same from the history alone, for the laws.
CandidateOf(A, times) == IF A = {} \/ \E p \in A : times[p] = {} THEN NEVER
                         ELSE MinOf({MaxOf(times[p]) : p \in A}) - Delay

\* Admission: what becomes of a row, judged with W and the clock as they stand.
IsBad(et) == et = Bad \/ (Ahead # Off /\ et # Bad /\ et > clock + Ahead)
\* Used by the wrong test "after_batch" only: what p has still to give, where each row has one time.
Rest(p) == UNION {Choices[p][i] : i \in {j \in DOMAIN Choices[p] : j > accepted[p]}} \ {Bad}
JudgedBy(p, et) ==
  CASE LateTest = "after_row"   -> AfterRow(assigned, [maxEt EXCEPT ![p] = Max2(@, et)], Min2(minEt, et))
    [] LateTest = "after_batch" -> AfterRow(assigned, [maxEt EXCEPT ![p] = MaxOf({@} \cup Rest(p))], minEt)
    [] OTHER                    -> w
\* The row's time is before bound.
Before(et, bound) == IF LateTest = "or_equal" THEN et <= bound ELSE et < bound
\* bound has passed the row's window.
Missed(et, bound) ==
  LET end == EndOf(StartOf(et))
  IN CASE LateTest = "no_grace"    -> end <= bound
       [] LateTest = "into_closed" -> end + Grace < bound
       [] OTHER                    -> end + Grace <= bound
\* More than delta behind the largest time of p; NEVER is too small for that.
Behind(p, et) == et < (IF LateTest = "of_all" THEN MaxOf({maxEt[q] : q \in Parts}) ELSE maxEt[p]) - Delay
IsLate(p, et) ==
  CASE LateRule = "window"    -> Missed(et, JudgedBy(p, et))
    [] LateRule = "partition" -> Behind(p, et) \/ (LateTest # "no_w" /\ Before(et, JudgedBy(p, et)))
    [] OTHER                  -> Before(et, JudgedBy(p, et))
Judge(p, et) == CASE IsBad(et) -> "invalid"
                  [] ~IsBad(et) /\ IsLate(p, et) -> "late"
                  [] OTHER -> "admitted"

Unread(A) == {p \in A : accepted[p] < Len(Choices[p])}

-----------------------------------------------------------------------------
\* System.

\* The next row of p is accepted and judged, and W moves, unless it waits for the cut.
Take(p) ==
  /\ phase = "running" \/ (phase = "drained" /\ AfterDrain = "go_on")
  /\ p \in Unread(assigned)

  /\ \E et \in Choices[p][accepted[p] + 1] :
       LET lane == Judge(p, et)
           valid == lane # "invalid"
           moved == IF valid THEN et ELSE IF InvalidRow = "moves" THEN 0 ELSE NEVER
           fatal == lane = "invalid" /\ InvalidRow = "stops"
       IN /\ accepted' = IF fatal THEN accepted ELSE [accepted EXCEPT ![p] = @ + 1]
          /\ phase' = IF fatal THEN "stopped" ELSE phase
          /\ maxEt' = [maxEt EXCEPT ![p] = Max2(@, moved)]
          /\ minEt' = IF valid THEN Min2(minEt, et) ELSE minEt
          /\ w' = IF w = END \/ Update = "epoch" THEN w ELSE AfterRow(assigned, maxEt', minEt')
          /\ count' = IF lane = "invalid" /\ InvalidRow \in {"uncounted", "stops"} THEN count
                      ELSE [count EXCEPT ![p] = [@ EXCEPT ![lane] = @ + 1]]
          /\ lateLane' = IF lane # "late" THEN lateLane
                         ELSE lateLane \cup {<<p, IF LaneKey = "offset" THEN accepted[p] + 1 ELSE et>>}
          /\ aux_judged' = [lane |-> lane, p |-> p, et |-> et, w |-> w, clock |-> clock]
          /\ aux_times' = IF valid THEN [aux_times EXCEPT ![p] = @ \cup {et}] ELSE aux_times
          /\ aux_best' = IF Update = "row" THEN Max2(aux_best, CandidateOf(assigned, aux_times'))
                         ELSE aux_best
  /\ UNCHANGED <<assigned, clock, asked, aux_changes>>

\* The epoch is cut, and W moves if it waited for that; a cut that moves nothing is no step.
Cut ==
  /\ Update # "row" /\ phase = "running"
  /\ Candidate(assigned, maxEt, minEt) > w

  /\ w' = Candidate(assigned, maxEt, minEt)
  /\ aux_best' = Max2(aux_best, CandidateOf(assigned, aux_times))
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<assigned, accepted, maxEt, minEt, clock, count, lateLane, asked, phase,
                 aux_times, aux_changes>>

\* The caller asked and every row is accepted: W := +infinity, and all windows close.
Drain ==
  /\ phase = "running" /\ assigned # {}
  /\ asked \/ DrainRule = "unasked"
  /\ Unread(assigned) = {} \/ DrainRule = "early"

  /\ phase' = "drained"
  /\ w' = END
  /\ UNCHANGED <<assigned, accepted, maxEt, minEt, clock, count, lateLane, asked,
                 aux_judged, aux_times, aux_best, aux_changes>>

\* More rows after a drain: stop and say so.
FindMore ==
  /\ phase = "drained" /\ AfterDrain = "stop" /\ Unread(assigned) # {}

  /\ phase' = "stopped"
  /\ UNCHANGED <<assigned, accepted, maxEt, minEt, w, clock, count, lateLane, asked,
                 aux_judged, aux_times, aux_best, aux_changes>>

System == (\E p \in Parts : Take(p)) \/ Cut \/ Drain \/ FindMore

-----------------------------------------------------------------------------
\* Environment.

\* A partition is assigned, or assigned again: it goes on with its last and max_et.
Add(p) ==
  /\ p \notin assigned /\ aux_changes < MaxChanges /\ phase # "stopped"

  /\ assigned' = assigned \cup {p}
  /\ maxEt' = IF Removed = "kept" THEN maxEt ELSE [maxEt EXCEPT ![p] = NEVER]
  /\ w' = IF w = END THEN END ELSE AfterChange(assigned', maxEt', minEt)
  /\ aux_changes' = aux_changes + 1
  /\ aux_best' = Max2(aux_best, CandidateOf(assigned', aux_times))
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<accepted, minEt, clock, count, lateLane, asked, phase, aux_times>>

\* A partition is no longer assigned: it holds W no more.
Remove(p) ==
  /\ p \in assigned /\ aux_changes < MaxChanges /\ phase = "running"

  /\ assigned' = assigned \ {p}
  /\ w' = AfterChange(assigned', maxEt, minEt)
  /\ aux_changes' = aux_changes + 1
  /\ aux_best' = Max2(aux_best, CandidateOf(assigned', aux_times))
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<accepted, maxEt, minEt, clock, count, lateLane, asked, phase, aux_times>>

\* The clock is read.
Tick ==
  /\ phase = "running" /\ clock < MaxOf(Clocks)

  /\ clock' = MinOf({c \in Clocks : c > clock})
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<assigned, accepted, maxEt, minEt, w, count, lateLane, asked, phase,
                 aux_times, aux_best, aux_changes>>

\* The caller asks for a drain.
Ask ==
  /\ ~asked /\ assigned # {}

  /\ asked' = TRUE
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<assigned, accepted, maxEt, minEt, w, clock, count, lateLane, phase,
                 aux_times, aux_best, aux_changes>>

Environment == (\E p \in Parts : Add(p) \/ Remove(p)) \/ Tick \/ Ask

Next == System \/ Environment
Spec == /\ Init /\ [][Next]_vars
        /\ WF_vars(\E p \in Parts : Take(p)) /\ WF_vars(Cut) /\ WF_vars(Drain) /\ WF_vars(FindMore)

-----------------------------------------------------------------------------
\* Laws.

\* LAW W1 MaxEtIsMax: max_et[p] is the largest valid event time accepted from p, removed or not.
MaxEtIsMax == \A p \in Parts : maxEt[p] = IF aux_times[p] = {} THEN NEVER ELSE MaxOf(aux_times[p])

\* LAW W2 BoundIsBest: W is the largest candidate there ever was, until a drain; W that misses
\* a partition's least maximum, or that waits where it may rise, would break it.
\* LAW W3 BoundIsBest: W follows each row (or each cut, where rows do not move it) and each change of
\* the set of partitions at once.
BoundIsBest == phase = "running" => w = aux_best

\* LAW W3 EpochFreezes: where W moves with epochs, no row moves it.
EpochFreezes == [][Update # "row" /\ accepted' # accepted => w' = w]_vars

\* LAW W2 SilentHolds: while an active partition has no max_et, or none is active, W stands still.
SilentHolds == [][(assigned' = {} \/ \E p \in assigned' : aux_times'[p] = {}) => w' = w \/ w' = END]_vars

\* LAW W3 Monotone: W never falls.
Monotone == [][w' >= w]_vars

\* LAW W5 ChangeKeepsAll: a partition that is added, removed or added again lowers nothing and forgets
\* nothing: W does not fall, and last, max_et and counters go on.
ChangeKeepsAll == [][assigned' # assigned => w' >= w /\ UNCHANGED <<accepted, maxEt, count>>]_vars

\* LAW W6 DrainOnlyWhenAsked: W is +infinity only after the caller asked, with every row of the
\* assigned partitions accepted.
DrainOnlyWhenAsked == [][w' = END /\ w # END => asked /\ Unread(assigned) = {}]_vars

\* LAW W6 NothingAfterDrain: rows found after a drain are not accepted, and the run stops and says so.
NothingAfterDrain == [][phase # "running" => UNCHANGED <<accepted, w>>]_vars

\* LAW W6 MoreRowsAreSaid: a drained run that has more rows stops in the end.
MoreRowsAreSaid == (phase = "drained" /\ Unread(assigned) # {})
                     ~> (phase = "stopped" \/ Unread(assigned) = {})

\* LAW A1 RowRule: a valid row is late exactly if its event time is less, strictly, than W as it stood
\* just before it.
RowRule == LateRule = "row" /\ aux_judged.lane \in {"admitted", "late"} =>
             (aux_judged.lane = "late" <=> aux_judged.et < aux_judged.w)

\* LAW A2 WindowRule: a valid row is late exactly if W, as it stood just before it, has reached the end
\* of its window and Delta more; else it is admitted, also where its time is before W.
WindowRule == LateRule = "window" /\ aux_judged.lane \in {"admitted", "late"} =>
  (aux_judged.lane = "late" <=> EndOf(StartOf(aux_judged.et)) + Grace <= aux_judged.w)

\* LAW A3 PartitionRule: a valid row is late exactly if its time is less than W, or than some time
\* accepted from its own partition before it, less delta.
PartitionRule ==
  [][LateRule = "partition" /\ accepted' # accepted /\ aux_judged'.lane # "invalid" =>
       (aux_judged'.lane = "late" <=>
          aux_judged'.et < w \/ \E t \in aux_times[aux_judged'.p] : aux_judged'.et < t - Delay)]_vars

\* LAW F2 NothingEntersClosed: by none of the rules does a row enter a window that W has closed.
\* LAW A2 NothingEntersClosed: what is admitted before W goes to a window that is still open.
\* LAW A3 NothingEntersClosed: a partition that is behind all others puts nothing into closed windows.
NothingEntersClosed ==
  aux_judged.lane = "admitted" => aux_judged.w < EndOf(StartOf(aux_judged.et)) + Grace

\* LAW A4 InvalidMovesNothing: an invalid row moves neither max_et nor W; only its offset is passed.
InvalidMovesNothing ==
  [][aux_judged'.lane = "invalid" /\ accepted' # accepted => UNCHANGED <<maxEt, w, lateLane>>]_vars

\* LAW A4 InvalidIsKnown: a row is invalid exactly if it has no event time or one beyond the guard of
\* the last clock reading.
InvalidIsKnown == aux_judged.lane # "none" =>
  (aux_judged.lane = "invalid" <=>
     aux_judged.et = Bad \/ (Ahead # Off /\ aux_judged.et # Bad
                             /\ aux_judged.et > aux_judged.clock + Ahead))

\* LAW A4 NothingStopsTheStream: every row of an assigned partition is accepted in the end, unless the
\* run was drained before.
NothingStopsTheStream ==
  \A p \in Parts : []<>(p \notin assigned \/ w = END \/ accepted[p] = Len(Choices[p]))

\* LAW A5 EveryRowCounted: accepted = admitted + late + invalid, for each partition; here no row is filtered
\* or repeated.
EveryRowCounted ==
  \A p \in Parts : accepted[p] = count[p].admitted + count[p].late + count[p].invalid

\* LAW A6 LateLaneByOffset: the late lane keeps every late row under its partition and offset; two rows of
\* one event time stay two.
LateLaneByOffset ==
  \A p \in Parts : Cardinality({r \in lateLane : r[1] = p}) = count[p].late

\* The windows that the rows of all assigned partitions have left behind.
SomeTimes == UNION {UNION {Choices[p][i] : i \in DOMAIN Choices[p]} : p \in Parts} \ {Bad}
LeftBehind(t) ==
  /\ t \in UNION {aux_times[p] : p \in Parts}
  /\ assigned # {} /\ \A p \in assigned : aux_times[p] # {}
  /\ EndOf(StartOf(t)) + Grace <= CandidateOf(assigned, aux_times)

\* LAW F1 EveryClosableCloses: a window that the rows of all assigned partitions have left behind, by
\* delta and Delta, is passed by W in the end; a W that never rises would leave it open for ever.
EveryClosableCloses == \A t \in SomeTimes : LeftBehind(t) ~> (w >= EndOf(StartOf(t)) + Grace)

\* Witness: a row is late (must be reached).
NeverLate == \A p \in Parts : count[p].late = 0

\* Witness: a row before W is admitted, which the window rule alone does (must be reached).
NeverAdmittedBeforeW == aux_judged.lane = "admitted" => aux_judged.et >= aux_judged.w

\* Witness: a row is late that is not before W, which the partition rule alone does (must be reached).
NeverLateByItsOwn == aux_judged.lane = "late" => aux_judged.et < aux_judged.w
=============================================================================
