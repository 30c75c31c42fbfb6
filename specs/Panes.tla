------------------------------- MODULE Panes -------------------------------
(***************************************************************************)
(* Room: windows.  What an epoch's rows become for a sink that can only     *)
(* append: panes with a number and a timing, taken back where they are      *)
(* replaced.  WindowPanes and SessionPanes say what an epoch shows.         *)
(*                                                                         *)
(* One log carries the three styles.  Accumulating: rows that are shown,    *)
(* and tombstones.  Discarding: what is shown, but of the epoch's rows only.*)
(* Retracting: all of it.                                                   *)
(* Leaves out: append and complete mode, which have no panes.               *)
(***************************************************************************)
EXTENDS Values
CONSTANTS PaneCounts,   \* "state": numbers and timings are in the state; wrong: "memory" (a restart
                        \* forgets them), "unmerged" (a session that takes another starts again)
          TakingBack,   \* "old": a retraction has what was shown; wrong: "new" (what is shown next)
          TombPanes     \* "taken_back": so is the pane of an id with a tombstone; wrong: "none"

\* The state: from ids of open windows to the panes shown, the last one's timing and what it showed.
VARIABLE panes
PanesTypeInv == \A id \in DOMAIN panes : /\ panes[id].count \in Nat \ {0}
                                         /\ panes[id].timing \in {"early", "on_time", "late"}

\* The sink: entries [id, number, timing, kind, row, fresh, passed]. kind is "shown", "replaced" or
\* "gone"; fresh the aggregates of the epoch's rows alone; passed, for the laws, whether W had passed the
\* end when the epoch ended.
VARIABLE log
LogTypeInv == \A i \in DOMAIN log : /\ log[i].kind \in {"shown", "replaced", "gone"}
                                     /\ log[i].number \in Nat

PanesInit == panes = Nothing /\ log = << >>

-----------------------------------------------------------------------------
Timing(before, id, passed) ==
  IF ~passed THEN "early"
  ELSE IF id \in DOMAIN before /\ before[id].timing # "early" THEN "late" ELSE "on_time"

Back(before, id, kind, row) ==
  [id |-> id, number |-> before[id].count - 1, timing |-> before[id].timing, kind |-> kind,
   row |-> row, fresh |-> row, passed |-> FALSE]

Pane(before, id, row, fresh, passed) ==
  [id |-> id, number |-> IF id \in DOMAIN before THEN before[id].count ELSE 0,
   timing |-> Timing(before, id, passed), kind |-> "shown",
   row |-> row, fresh |-> fresh, passed |-> passed]

\* The entries of one id: what it replaces is taken back first.
EntriesOf(before, id, row, fresh, passed) ==
  (IF id \in DOMAIN before
   THEN << Back(before, id, "replaced", IF TakingBack = "old" THEN before[id].row ELSE row) >>
   ELSE << >>)
  \o << Pane(before, id, row, fresh, passed) >>

RECURSIVE InARow(_, _)
InARow(f, S) == IF S = {} THEN << >>
                ELSE LET x == CHOOSE y \in S : TRUE IN f[x] \o InARow(f, S \ {x})

\* An epoch shows rows, with those of the epoch alone, and tombstones; passed are the ids whose end W
\* has passed, again those of sessions that took another one, and stay those that are still open.
ShowPanes(rows, fresh, tombs, passed, again, stay) ==
  \E before \in {Without(panes, IF PaneCounts = "unmerged" THEN again ELSE {})} :
    /\ log' = log \o InARow([id \in tombs |-> << Back(panes, id, "gone", panes[id].row) >>],
                            IF TombPanes = "none" THEN {} ELSE tombs)
                  \o InARow([id \in DOMAIN rows |->
                               EntriesOf(before, id, rows[id], fresh[id], id \in passed)], DOMAIN rows)
    /\ panes' = [id \in (DOMAIN panes \cup DOMAIN rows) \cap stay |->
                   IF id \notin DOMAIN rows THEN panes[id]
                   ELSE [count |-> 1 + IF id \in DOMAIN before THEN before[id].count ELSE 0,
                         timing |-> Timing(before, id, id \in passed), row |-> rows[id]]]

\* After a kill and a start between two epochs.
RestartPanes == /\ panes' = IF PaneCounts = "memory" THEN Nothing ELSE panes
                /\ UNCHANGED log

-----------------------------------------------------------------------------
\* What a reader makes of the log.

ShownOf(id) == {i \in DOMAIN log : log[i].id = id /\ log[i].kind = "shown"}
Ids(kind) == {log[i].id : i \in {j \in DOMAIN log : log[j].kind = kind}}

\* Accumulating: of each id the pane with the highest number, unless it was taken back for nothing.
Highest(id) == CHOOSE i \in ShownOf(id) : \A j \in ShownOf(id) : log[j].number <= log[i].number
AccumulatedIs(table) == table = [id \in Ids("shown") \ Ids("gone") |-> log[Highest(id)].row]

\* Retracting: what was shown once more often than taken back, whatever the numbers.
Count(kinds, id, row) ==
  Cardinality({i \in DOMAIN log : log[i].id = id /\ log[i].kind \in kinds /\ log[i].row = row})
RetractedIs(table) ==
  /\ DOMAIN table \subseteq Ids("shown")
  /\ \A x \in {<<log[i].id, log[i].row>> : i \in DOMAIN log} :
       Count({"shown"}, x[1], x[2]) - Count({"replaced", "gone"}, x[1], x[2])
         = IF x[1] \in DOMAIN table /\ table[x[1]] = x[2] THEN 1 ELSE 0

-----------------------------------------------------------------------------
\* Laws.

Before(i) == {j \in ShownOf(log[i].id) : j < i}

\* LAW E6 NumbersFromZero: the panes of an id are numbered 0, 1, 2, ... for ever.
NumbersFromZero ==
  \A i \in DOMAIN log : log[i].kind = "shown" => log[i].number = Cardinality(Before(i))

\* LAW E6 TimingsAreTold: a pane is early while W has not passed its window's end, on time the first
\* time after, then late.
TimingsAreTold ==
  \A i \in DOMAIN log : log[i].kind = "shown" =>
    log[i].timing = IF ~log[i].passed THEN "early"
                    ELSE IF Before(i) = {} THEN "on_time"
                    ELSE IF log[MaxOf(Before(i))].timing = "early" THEN "on_time" ELSE "late"

\* LAW E6 TakenBackAsShown: what is taken back is the last pane of its id, as it was shown; and a pane
\* that replaces one comes just after this is taken back.
TakenBackAsShown ==
  \A i \in DOMAIN log :
    IF log[i].kind = "shown"
    THEN log[i].number > 0 => i > 1 /\ log[i - 1].kind = "replaced" /\ log[i - 1].id = log[i].id
    ELSE /\ Before(i) # {}
         /\ LET last == log[MaxOf(Before(i))]
            IN log[i].row = last.row /\ log[i].number = last.number /\ log[i].timing = last.timing

\* LAW E6 NothingAfterGone: an id that was taken back for nothing is never shown again.
NothingAfterGone == \A i, j \in DOMAIN log : log[i].kind = "gone" /\ log[j].id = log[i].id => j <= i
=============================================================================
