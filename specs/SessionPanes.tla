---------------------------- MODULE SessionPanes ----------------------------
(***************************************************************************)
(* Room: windows.  The panes of sessions, accumulating and retracting.      *)
(*                                                                         *)
(* Models: Sessions, whose epochs in update mode are shown as panes too;    *)
(* tombstones take back; a merged session counts on from the id it keeps.   *)
(* Leaves out: discarding panes, which sessions do not have: the rows of a  *)
(* session that another one takes were shown under an id that goes.         *)
(***************************************************************************)
EXTENDS Sessions, Panes

SessionPanesTypeInv == SessionsTypeInv /\ PanesTypeInv /\ LogTypeInv

InitPanes == Init /\ PanesInit

-----------------------------------------------------------------------------
\* System: the steps of Sessions, and what they do to panes.

TakePanes == Take /\ UNCHANGED <<panes, log>>
ClosePanes == Close /\ UNCHANGED <<panes, log>>

\* Ids of sessions that took another one.
Takers == {id \in DOMAIN touched :
             \E g \in gone : g[1] = id[1] /\ id[2] < g[2] /\ g[2] < touched[id].end}
CutPanes == /\ Cut
            /\ ShowPanes(touched, touched, Tombs("update"),
                         {id \in DOMAIN touched : w >= touched[id].end}, Takers, DOMAIN open)

\* Environment: those of Sessions.
RisePanes == Rise /\ UNCHANGED <<panes, log>>

\* Fault: a kill and a start between two epochs.
RestartSessions == /\ touched = Nothing /\ closing = Nothing /\ w = cutW
                   /\ RestartPanes
                   /\ UNCHANGED vars

NextPanes == TakePanes \/ ClosePanes \/ CutPanes \/ RisePanes \/ RestartSessions
SpecPanes == InitPanes /\ [][NextPanes]_<<vars, panes, log>>

-----------------------------------------------------------------------------
\* Laws.

\* LAW E6 AccumulatingMakesTheTable: the panes with the highest numbers, without those that were taken
\* back for nothing, are the table of MERGE.
AccumulatingMakesTheTable == AccumulatedIs(table["update"])

\* LAW E6 RetractingMakesTheTable: what was shown and not taken back is the table of MERGE.
RetractingMakesTheTable == RetractedIs(table["update"])

\* LAW F3 PanesAreBounded: after each epoch numbers and timings are kept of open sessions only.
PanesAreBounded == NothingNew => DOMAIN panes = DOMAIN open

\* Witness: a session whose pane was on time is early again, since a row has moved its end (must be
\* reached).
NeverEarlyAgain ==
  \A i, j \in DOMAIN log :
    /\ log[i].kind = "shown" /\ log[j].kind = "shown" /\ i < j /\ log[i].id = log[j].id
    /\ log[i].timing # "early"
    => log[j].timing # "early"
=============================================================================
