------------------------------- MODULE Windows -------------------------------
(***************************************************************************)
(* Room: windows.  Admitted rows and a rising W become aggregates, closings *)
(* and, epoch by epoch, the outbox of each output mode.                     *)
(*                                                                         *)
(* Models: tumbling and hopping windows on negative and positive times;     *)
(* keys and their dictionary; partial aggregates (count, sum, min, max) and *)
(* the value they show; W that rises in any way, +infinity at last; epochs  *)
(* cut anywhere; the three output modes side by side, to be compared.       *)
(* Leaves out: how W comes about (Watermark): here it rises as it likes,    *)
(* which covers every way that the watermark has; crashes (Checkpoint);     *)
(* sessions (Sessions); panes (WindowPanes).                                *)
(***************************************************************************)
EXTENDS Grid, Values
CONSTANTS Keys, Times,
          Numbers,      \* values of rows
          Marks,        \* values that W may take on its way
          Slide,        \* a window starts at each Offset modulo Slide; Slide = Size: tumbling
          Grace,        \* Delta
          FitMax,       \* the largest sum that the output column can show
          MaxRows, MaxEpochs,
          Admission,    \* "row": et >= W (A1); "window": a window of the row has end + Delta > W (A2);
                        \* wrong: "first" (the earliest of them has), "any"
          Judging,      \* "before": by W just before the row; wrong: "after" (by W after its batch)
          Hops,         \* "all": every window that holds et; wrong: "quotient" (Size div Slide of them)
          Counting,     \* "exact"; wrong: "rows" (late_window_drops counts a row once), "windows"
                        \* (a row is admitted once for each of its windows)
          CloseAt,      \* "reached": W >= end + Delta; wrong: "passed" (>)
          Evict,        \* "at_once"; wrong: "never", "twice" (never, and closed again each epoch)
          Dictionary,   \* "open": keys of open windows only; wrong: "all"
          Adding,       \* "wide"; wrong: "bounded" (partial sums stop at FitMax)
          Showing,      \* "checked"; wrong: "wrapped"
          UpdateRule,   \* "touched"; wrong: "open" (forgets closed), "all_open"
          CompleteRule  \* "kept"; wrong: "open" (forgets closed rows)

ASSUME Slide \in 1..Size

Modes == {"append", "update", "complete"}
\* What a column shows for a sum that does not fit: a mark, never used as a number.
Unfit == 999

\* The watermark, as the room above hands it in.
VARIABLE w
WTypeInv == w \in Marks \cup {NEVER, END}

\* Open windows: from ids <<key, start>> to partial aggregates.
VARIABLE open
IdOK(id) == id[1] \in Keys /\ id[2] \in Int
OpenTypeInv == \A id \in DOMAIN open : IdOK(id) /\ open[id].n \in Nat

\* The key dictionary: what the state knows of keys.
VARIABLE dictionary
DictionaryTypeInv == dictionary \subseteq Keys

\* Rows of windows closed in this epoch, for the outbox of append mode.
VARIABLE closing
ClosingTypeInv == \A id \in DOMAIN closing : IdOK(id)

\* Rows of ids that had a row admitted in this epoch, for the outbox of update mode.
VARIABLE touched
TouchedTypeInv == \A id \in DOMAIN touched : IdOK(id)

\* Rows of closed windows, kept for the outbox of complete mode.
VARIABLE kept
KeptTypeInv == \A id \in DOMAIN kept : IdOK(id)

\* The last epoch's number.
VARIABLE epoch
EpochTypeInv == epoch \in 0..MaxEpochs

\* The table in each mode after the outboxes so far.
VARIABLE table
TableTypeInv == table \in [Modes -> {table[m] : m \in Modes}]

\* Counters: rows admitted, and late_window_drops.
VARIABLE counts
CountsTypeInv == counts \in [{"admitted", "drops"} -> Nat]

\* History: the bag of rows admitted, as a function from <<key, et, number>> to how many.
VARIABLE aux_admitted
AdmittedTypeInv == DOMAIN aux_admitted \subseteq Keys \X Times \X Numbers

\* History: for each id how many admitted rows missed it.
VARIABLE aux_missed
MissedTypeInv == \A id \in DOMAIN aux_missed : IdOK(id) /\ aux_missed[id] \in 1..MaxRows

\* History: for each id the bag of its rows, as a function from <<et, number>> to how many.
VARIABLE aux_rows
Rows == Times \X Numbers
RowsTypeInv == \A id \in DOMAIN aux_rows : aux_rows[id] \in [Rows -> 0..MaxRows]

\* History: what each closed window showed when it was first closed, and how often it was closed.
VARIABLE aux_closed
ClosedTypeInv == \A id \in DOMAIN aux_closed : aux_closed[id].times \in 1..(MaxRows + MaxEpochs)

\* History: ids with a row admitted in this epoch.
VARIABLE aux_touched
AuxTouchedTypeInv == aux_touched \subseteq DOMAIN aux_rows

\* History, per id: puts in append mode; corrections in update mode, which are puts of epochs that began
\* with W at or after the end; rows admitted with W in [end, end + Delta).
VARIABLE aux_puts
PutsTypeInv == \A id \in DOMAIN aux_puts : aux_puts[id].append \in Nat

\* W at the last cut.
VARIABLE cutW
CutWTypeInv == cutW \in Marks \cup {NEVER, END}

vars == <<w, open, dictionary, closing, touched, kept, epoch, table, counts, aux_admitted,
          aux_missed, aux_rows, aux_closed, aux_touched, aux_puts, cutW>>

WindowsTypeInv ==
  /\ WTypeInv /\ OpenTypeInv /\ DictionaryTypeInv /\ ClosingTypeInv /\ TouchedTypeInv
  /\ KeptTypeInv /\ EpochTypeInv /\ TableTypeInv /\ CountsTypeInv /\ AdmittedTypeInv
  /\ MissedTypeInv /\ RowsTypeInv /\ ClosedTypeInv /\ AuxTouchedTypeInv /\ PutsTypeInv /\ CutWTypeInv

Init == /\ w = NEVER
        /\ open = Nothing /\ dictionary = {}
        /\ closing = Nothing /\ touched = Nothing /\ kept = Nothing
        /\ epoch = 0
        /\ table = [m \in Modes |-> Nothing]
        /\ counts = [admitted |-> 0, drops |-> 0]
        /\ aux_admitted = Nothing /\ aux_missed = Nothing
        /\ aux_rows = Nothing /\ aux_closed = Nothing /\ aux_touched = {}
        /\ aux_puts = Nothing /\ cutW = NEVER

-----------------------------------------------------------------------------
\* Aggregates: a partial is [n, sum, min, max]; it is what a commutative monoid makes of the rows.

AddTo(sum, v) == IF Adding = "bounded" THEN Min2(sum + v, FitMax) ELSE sum + v
One(v) == [n |-> 1, sum |-> AddTo(0, v), min |-> v, max |-> v]
Plus(a, v) == [n |-> a.n + 1,
               sum |-> AddTo(a.sum, v),
               min |-> Min2(a.min, v), max |-> Max2(a.max, v)]

\* The row that a partial shows; only here a sum is checked against its column.
ShowSum(sum) == IF sum <= FitMax THEN sum
                ELSE IF Showing = "checked" THEN Unfit ELSE sum - 2 * FitMax
Show(a) == [n |-> a.n, sum |-> ShowSum(a.sum), min |-> a.min, max |-> a.max]

\* The same from the bag of rows, for the laws: no order is left in it.
BagSize(bag) == Sum(bag)
BagSum(bag) == Sum([r \in Rows |-> bag[r] * r[2]])
Held(bag) == {r[2] : r \in {x \in Rows : bag[x] > 0}}
OfBag(bag) == [n |-> BagSize(bag),
               sum |-> IF BagSum(bag) <= FitMax THEN BagSum(bag) ELSE Unfit,
               min |-> MinOf(Held(bag)), max |-> MaxOf(Held(bag))]

End(id) == EndOf(id[2])
ClosesAt(id) == End(id) + Grace
Closable == {id \in DOMAIN open : IF CloseAt = "reached" THEN w >= ClosesAt(id) ELSE w > ClosesAt(id)}
\* A closed window that was not evicted is closed once only, unless that is what is wrong.
Due == IF Evict = "at_once" THEN Closable ELSE {id \in Closable : id \notin DOMAIN closing \cup DOMAIN kept}

\* The starts of a row's windows, and of those that are closed by a watermark.
StartsFor(et) == IF Hops = "all" THEN StartsOf(et, Slide)
                 ELSE {LastStart(et, Slide) - n * Slide : n \in 0..((Size \div Slide) - 1)}
PassedFor(et, at) == {s \in StartsFor(et) : EndOf(s) + Grace <= at}
Missed(et, at) == IF Admission = "any" THEN {} ELSE PassedFor(et, at)
Admits(et, at) == CASE Admission = "row"    -> et >= at
                    [] Admission = "window" -> PassedFor(et, at) # StartsFor(et)
                    [] Admission = "first"  -> MinOf(StartsFor(et)) \notin PassedFor(et, at)
                    [] OTHER                -> TRUE

CountIn(f, x) == IF x \in DOMAIN f THEN f[x] ELSE 0
OneMore(f, S) == Over(f, [x \in S |-> CountIn(f, x) + 1])
\* The counters after a row that is admitted to ids and missed others.
Counted(ids, missed) ==
  [admitted |-> counts.admitted + IF Counting = "windows" THEN Cardinality(ids) ELSE 1,
   drops |-> counts.drops + IF Counting = "rows" THEN Min2(1, Cardinality(missed)) ELSE Cardinality(missed)]

BagOf(id) == IF id \in DOMAIN aux_rows THEN aux_rows[id] ELSE [r \in Rows |-> 0]
PutsOf(id) == IF id \in DOMAIN aux_puts THEN aux_puts[id]
              ELSE [append |-> 0, corrections |-> 0, after |-> 0]

\* What the epoch would emit in mode m, were it cut now.
Shown == [id \in DOMAIN open |-> Show(open[id])]
Outbox(m) == CASE m = "append" -> closing
               [] m = "update" -> IF UpdateRule = "all_open" THEN Over(Shown, touched) ELSE touched
               [] OTHER -> IF CompleteRule = "kept" THEN Over(Shown, kept) ELSE Shown

-----------------------------------------------------------------------------
\* System.

\* A row is taken into its windows; those that W has passed are closed before.
Take ==
  /\ Due = {} /\ w # END
  /\ Sum(aux_admitted) < MaxRows

  /\ \E k \in Keys, et \in Times, v \in Numbers,
        at \in {w} \cup (IF Judging = "before" THEN {} ELSE {m \in Marks : m > w}) :
       /\ Admits(et, at)
       /\ LET missed == {<<k, s>> : s \in Missed(et, at)}
              ids == {<<k, s>> : s \in StartsFor(et)} \ missed
              partial == [id \in ids |-> IF id \in DOMAIN open THEN Plus(open[id], v) ELSE One(v)]
              corrected == {id \in ids : w >= End(id) /\ w < ClosesAt(id)}
          IN /\ w' = at
             /\ open' = Over(open, partial)
             /\ touched' = Over(touched, [id \in ids |-> Show(partial[id])])
             /\ dictionary' = dictionary \cup {k}
             /\ counts' = Counted(ids, missed)
             /\ aux_admitted' = OneMore(aux_admitted, {<<k, et, v>>})
             /\ aux_missed' = OneMore(aux_missed, missed)
             /\ aux_rows' = Over(aux_rows, [id \in ids |-> [BagOf(id) EXCEPT ![<<et, v>>] = @ + 1]])
             /\ aux_touched' = aux_touched \cup ids
             /\ aux_puts' = Over(aux_puts, [id \in corrected |-> [PutsOf(id) EXCEPT !.after = @ + 1]])
  /\ UNCHANGED <<closing, kept, epoch, table, aux_closed, cutW>>

\* The windows that W has passed are closed: their rows are final and their state is gone.
Close ==
  /\ Due # {}

  /\ open' = IF Evict = "at_once" THEN Without(open, Due) ELSE open
  /\ dictionary' = IF Dictionary = "open" THEN {id[1] : id \in DOMAIN open'} ELSE dictionary
  /\ closing' = Over(closing, [id \in Due |-> Show(open[id])])
  /\ kept' = Over(kept, [id \in Due |-> Show(open[id])])
  /\ touched' = IF UpdateRule = "open" THEN Without(touched, Due) ELSE touched
  /\ aux_closed' = Over(aux_closed,
       [id \in Due |-> IF id \in DOMAIN aux_closed
                       THEN [aux_closed[id] EXCEPT !.times = @ + 1]
                       ELSE [row |-> Show(open[id]), times |-> 1]])
  /\ UNCHANGED <<w, epoch, table, counts, aux_admitted, aux_missed, aux_rows, aux_touched,
                 aux_puts, cutW>>

\* The epoch is cut, and each mode's outbox merged into its table.
Cut ==
  /\ Due = {} /\ epoch < MaxEpochs
  /\ DOMAIN touched \cup DOMAIN closing # {} \/ w # cutW

  /\ table' = [m \in Modes |-> IF m = "complete" THEN Outbox(m) ELSE Over(table[m], Outbox(m))]
  /\ LET corrected == {id \in DOMAIN Outbox("update") : cutW >= End(id)}
     IN aux_puts' = [id \in DOMAIN aux_puts \cup DOMAIN closing \cup corrected |->
          [PutsOf(id) EXCEPT !.append = @ + (IF id \in DOMAIN closing THEN 1 ELSE 0),
                             !.corrections = @ + (IF id \in corrected THEN 1 ELSE 0)]]
  /\ epoch' = epoch + 1
  /\ closing' = Nothing /\ touched' = Nothing
  /\ kept' = IF Evict = "twice" THEN Nothing ELSE kept
  /\ aux_touched' = {} /\ cutW' = w
  /\ UNCHANGED <<w, open, dictionary, counts, aux_admitted, aux_missed, aux_rows, aux_closed>>

\* Environment: W rises; at last a drain makes it +infinity.
Rise == /\ Due = {}
        /\ w' \in {m \in Marks \cup {END} : m > w}
        /\ UNCHANGED <<open, dictionary, closing, touched, kept, epoch, table, counts,
                       aux_admitted, aux_missed, aux_rows, aux_closed, aux_touched, aux_puts, cutW>>

System == Take \/ Close \/ Cut
Environment == Rise
Next == System \/ Environment
Spec == Init /\ [][Next]_vars /\ WF_vars(Close) /\ WF_vars(Cut)

-----------------------------------------------------------------------------
\* Laws.

\* LAW G1 RowsInsideTheirWindow: every admitted row lies in its window [start, end), and starts are
\* on the grid; truncation instead of floor breaks it on negative times.
\* LAW G2 RowsInsideTheirWindow: the same for hopping windows.
RowsInsideTheirWindow ==
  \A id \in DOMAIN aux_rows :
    /\ (id[2] - Offset) % Slide = 0
    /\ \A r \in Rows : aux_rows[id][r] > 0 => id[2] <= r[1] /\ r[1] < End(id)

\* Every start of the grid whose window holds one of the times.
Starts == {s \in (MinOf(Times) - Size + 1)..MaxOf(Times) : (s - Offset) % Slide = 0}
Holds(s, et) == s <= et /\ et < s + Size

\* LAW G2 EveryWindowHasItsRows: each window of the grid has all the admitted rows that it holds, but
\* those that missed it, also where Size is not a multiple of Slide.
EveryWindowHasItsRows ==
  \A k \in Keys, s \in Starts :
    BagSize(BagOf(<<k, s>>)) + CountIn(aux_missed, <<k, s>>)
      = SumOver(aux_admitted, {r \in DOMAIN aux_admitted : r[1] = k /\ Holds(s, r[2])})

\* LAW A1 RowRuleMissesNone: under the row rule an admitted row misses none of its windows.
RowRuleMissesNone == Admission = "row" => aux_missed = Nothing

\* LAW A2 LateMissesAll: a row is late only if each of its windows is closed.
LateMissesAll ==
  Admission # "row" => \A et \in Times : (\E s \in Starts : Holds(s, et) /\ s + Size + Grace > w)
                                         => Admits(et, w)

\* LAW A2 MissesTheClosed: an admitted row misses no window but those closed by W as it stood just
\* before the row, and enters none of these.
MissesTheClosed ==
  [][/\ \A id \in DOMAIN aux_missed' : aux_missed'[id] # CountIn(aux_missed, id) => w >= ClosesAt(id)
     /\ \A id \in DOMAIN aux_rows' : aux_rows'[id] # BagOf(id) => w < ClosesAt(id)]_vars

\* LAW A2 DropsAreCounted: late_window_drops counts each window that an admitted row missed.
DropsAreCounted == counts.drops = Sum(aux_missed)

\* LAW A5 RowsAreCounted: an admitted row is counted once, however many windows it is in.
RowsAreCounted == counts.admitted = Sum(aux_admitted)

\* LAW G4 OrderNeverShows: what an open window would show is a function of the bag of its rows; partial
\* sums that stop at a bound break it.
OrderNeverShows ==
  \A id \in DOMAIN open : id \notin DOMAIN aux_closed => Show(open[id]) = OfBag(aux_rows[id])

\* LAW G4 SumsAreChecked: a sum that is shown is exact, or reported as one that does not fit; it never
\* wraps.
SumsAreChecked ==
  \A id \in DOMAIN touched :
    touched[id].sum = IF BagSum(aux_rows[id]) > FitMax THEN Unfit ELSE BagSum(aux_rows[id])

\* LAW F1 ClosedInTime: no row is taken and no epoch cut while W has passed an open window's end + Delta.
ClosedInTime ==
  [][epoch' # epoch \/ aux_rows' # aux_rows =>
       \A id \in DOMAIN open : w >= ClosesAt(id) => id \in DOMAIN aux_closed]_vars

\* LAW F1 ClosedOnce: a window is closed once, and append mode puts its final row once.
\* LAW E1 ClosedOnce: one row per (key, window).
ClosedOnce == /\ \A id \in DOMAIN aux_closed : aux_closed[id].times = 1
              /\ \A id \in DOMAIN aux_puts : aux_puts[id].append <= 1

\* LAW F1 EveryClosableWindowCloses: a window that W has passed is closed in the end.
EveryClosableWindowCloses ==
  \A k \in Keys, s \in Starts :
    (<<k, s>> \in DOMAIN open /\ w >= ClosesAt(<<k, s>>)) ~> (<<k, s>> \in DOMAIN aux_closed)

\* LAW F2 ClosedIsFinal: a closed window gets no further row, so its result never changes and it never
\* opens again.
ClosedIsFinal == [][\A id \in DOMAIN aux_closed : aux_rows'[id] = aux_rows[id]
                                                  /\ (id \in DOMAIN open' => id \in DOMAIN open)]_vars

\* LAW F2 TablesKeepClosed: a closed window's row, once in a table, stays as it is in every mode.
TablesKeepClosed ==
  \A m \in Modes, id \in DOMAIN aux_closed :
    id \in DOMAIN table[m] /\ id \notin aux_touched => table[m][id] = aux_closed[id].row

\* LAW F3 StateIsBounded: after each epoch the state holds only windows with end + Delta > W, and the
\* dictionary only their keys.
StateIsBounded ==
  closing = Nothing /\ touched = Nothing /\ w = cutW =>
    /\ \A id \in DOMAIN open : ClosesAt(id) > w
    /\ dictionary = {id[1] : id \in DOMAIN open}

\* LAW F4 CorrectionsAreBounded: an id is put again after its end at most once per row admitted to it
\* in [end, end + Delta).
CorrectionsAreBounded == \A id \in DOMAIN aux_puts : aux_puts[id].corrections <= aux_puts[id].after

\* LAW F4 RowRuleNeverCorrects: under the row rule nothing enters a window once W >= end, so nothing
\* is ever corrected and the grace shows no other result.
RowRuleNeverCorrects == Admission = "row" => \A id \in DOMAIN aux_puts : aux_puts[id].after = 0

\* LAW E1 AppendAtClose: append mode shows exactly the windows closed before the last cut, each
\* with its final row.
AppendAtClose ==
  /\ DOMAIN table["append"] \cup DOMAIN closing = DOMAIN aux_closed
  /\ \A id \in DOMAIN table["append"] : table["append"][id] = OfBag(aux_rows[id])

\* LAW E2 UpdateWhatWasTouched: each epoch's outbox in update mode has one row for each id that had a
\* row admitted in it, also if it closed in it, and no other.
UpdateWhatWasTouched ==
  [][epoch' # epoch => /\ DOMAIN Outbox("update") = aux_touched
                       /\ \A id \in aux_touched : Outbox("update")[id] = OfBag(aux_rows[id])]_vars

\* LAW E3 CompleteIsWhole: each epoch's outbox in complete mode is the whole result, closed rows too.
CompleteIsWhole ==
  [][epoch' # epoch => Outbox("complete") = [id \in DOMAIN aux_rows |-> OfBag(aux_rows[id])]]_vars

\* LAW E4 DrainedTablesAgree: after a drain and its epoch the table is the same in all three modes:
\* the aggregates of the admitted rows.
DrainedTablesAgree ==
  cutW = END => \A m \in Modes : table[m] = [id \in DOMAIN aux_rows |-> OfBag(aux_rows[id])]

\* LAW E4 DrainedRowsAreShown: after a drain every admitted row's window is in the table in the end.
DrainedRowsAreShown ==
  (w = END /\ epoch < MaxEpochs) ~> (DOMAIN aux_rows = DOMAIN table["append"])

\* Witness: a row is admitted to some of its windows only (must be reached).
NeverMissesSome == aux_missed = Nothing

\* Witness: a row is admitted in the grace (must be reached).
NeverAdmittedAfterEnd == \A id \in DOMAIN aux_puts : aux_puts[id].after = 0

\* Witness: a window is corrected twice, for a row in the grace each (must be reached).
NeverCorrectedTwice == \A id \in DOMAIN aux_puts : aux_puts[id].corrections < 2
=============================================================================
