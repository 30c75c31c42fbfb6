---------------------------- MODULE WindowPanes ----------------------------
(***************************************************************************)
(* Room: windows.  The panes of tumbling and hopping windows.               *)
(*                                                                         *)
(* Models: Windows, whose epochs in update mode are shown as panes too; a   *)
(* restart between two epochs, which goes on with the state.                *)
(***************************************************************************)
EXTENDS Windows, Panes
CONSTANT Freshness      \* "epoch": discarding panes are of the epoch's rows alone; wrong: "open" (of all
                        \* rows, as long as the window is open)

\* The bags of rows up to which discarding panes have been shown.
VARIABLE shownUpTo
UpToTypeInv == DOMAIN shownUpTo \subseteq DOMAIN aux_rows

WindowPanesTypeInv == WindowsTypeInv /\ PanesTypeInv /\ LogTypeInv /\ UpToTypeInv

InitPanes == Init /\ PanesInit /\ shownUpTo = Nothing

-----------------------------------------------------------------------------
\* System: the steps of Windows, and what they do to panes.

FreshOf(id) ==
  OfBag([r \in Rows |-> aux_rows[id][r] - IF id \in DOMAIN shownUpTo THEN shownUpTo[id][r] ELSE 0])

TakePanes == Take /\ UNCHANGED <<panes, log, shownUpTo>>
ClosePanes == Close /\ UNCHANGED <<panes, log, shownUpTo>>
CutPanes == /\ Cut
            /\ ShowPanes(touched, [id \in DOMAIN touched |-> FreshOf(id)], {},
                         {id \in DOMAIN touched : w >= End(id)}, {}, DOMAIN open)
            /\ shownUpTo' = IF Freshness = "epoch" THEN aux_rows ELSE shownUpTo

\* Environment: those of Windows.
RisePanes == Rise /\ UNCHANGED <<panes, log, shownUpTo>>

\* Fault: a kill and a start between two epochs.
RestartWindows == /\ touched = Nothing /\ closing = Nothing /\ w = cutW
                  /\ RestartPanes
                  /\ UNCHANGED <<vars, shownUpTo>>

NextPanes == TakePanes \/ ClosePanes \/ CutPanes \/ RisePanes \/ RestartWindows
SpecPanes == InitPanes /\ [][NextPanes]_<<vars, panes, log, shownUpTo>>

-----------------------------------------------------------------------------
\* Laws.

\* LAW E6 AccumulatingMakesTheTable: the panes with the highest numbers are the table of MERGE.
AccumulatingMakesTheTable == AccumulatedIs(table["update"])

\* LAW E6 RetractingMakesTheTable: what was shown and not taken back is the table of MERGE.
RetractingMakesTheTable == RetractedIs(table["update"])

\* What the discarding panes of an id merge to.
DiscardedTo(id) ==
  [n |-> SumOver([i \in DOMAIN log |-> log[i].fresh.n], ShownOf(id)),
   sum |-> SumOver([i \in DOMAIN log |-> log[i].fresh.sum], ShownOf(id)),
   min |-> MinOf({log[i].fresh.min : i \in ShownOf(id)}),
   max |-> MaxOf({log[i].fresh.max : i \in ShownOf(id)})]

\* LAW E6 DiscardingMakesTheTable: the discarding panes of an id merge to its row in the table of MERGE.
DiscardingMakesTheTable == table["update"] = [id \in Ids("shown") |-> DiscardedTo(id)]

\* LAW E6 OnTimeOnce: a window has early panes, then at most one on time, then late ones.
OnTimeOnce ==
  \A i, j \in DOMAIN log :
    /\ log[i].kind = "shown" /\ log[j].kind = "shown" /\ i < j /\ log[i].id = log[j].id
    /\ log[i].timing # "early"
    => log[j].timing = "late"

\* LAW F3 PanesAreBounded: after each epoch numbers and timings are kept of open windows only.
PanesAreBounded == touched = Nothing /\ closing = Nothing /\ w = cutW => DOMAIN panes = DOMAIN open

\* Witness: a window shows an early pane, one on time and a late one (must be reached).
NeverAllTimings ==
  \A id \in Ids("shown") : {log[i].timing : i \in ShownOf(id)} # {"early", "on_time", "late"}
=============================================================================
