------------------------------ MODULE Recompute ------------------------------
(***************************************************************************)
(* Room: pipeline.  The default mode: each run computes the table from the  *)
(* whole log and replaces it.                                               *)
(*                                                                         *)
(* Models: a log that grows; several runs at once; a sink that keeps        *)
(* (generation, last) and replaces its table in one transaction; runs that  *)
(* die anywhere; a sink that belongs to an incremental pipeline.            *)
(* Leaves out: the computation, which is a function of how many rows were   *)
(* read, and the fallback to this mode where no state_root is configured,   *)
(* which is no more than a choice at start.                                 *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Runs,        \* processes that may run a trigger at the same time
          MaxRows,
          MaxKills,
          FirstRead,   \* "sink": last is read before the rows; wrong: "rows" (last at the write)
          Beaten,      \* "again": computes again; wrong: "skip"
          CheckMode,   \* TRUE: a sink of the other mode stops the run
          Owners       \* generations the sink may have at first: "none", "incremental"

\* Rows in the log.
VARIABLE log
LogTypeInv == log \in 0..MaxRows

\* The sink: generation, last, and of how many rows its table is the result.
VARIABLE sink
SinkTypeInv == /\ sink.generation \in {"none", "recompute", "incremental"}
               /\ sink.last \in Nat /\ sink.rows \in Nat

\* Each run: what it does next, the last it read and the rows it read.
VARIABLE run
RunTypeInv == \A r \in Runs : run[r].at \in {"rest", "last", "rows", "write", "stopped"}

\* TRUE where rows appeared since a run last began.
VARIABLE due
DueTypeInv == due \in BOOLEAN

\* Kills so far.
VARIABLE aux_kills
KillsTypeInv == aux_kills \in 0..MaxKills

vars == <<log, sink, run, due, aux_kills>>
RecomputeTypeInv == LogTypeInv /\ SinkTypeInv /\ RunTypeInv /\ DueTypeInv /\ KillsTypeInv

Rest == [at |-> "rest", last |-> 0, rows |-> 0]
Init == /\ log = 0
        /\ sink \in [generation : Owners, last : {0}, rows : {0}]
        /\ run = [r \in Runs |-> Rest]
        /\ due = FALSE
        /\ aux_kills = 0

\* System: a trigger starts a run.
Begin(r) ==
  /\ run[r].at = "rest" /\ due

  /\ run' = [run EXCEPT ![r] = [Rest EXCEPT !.at = "last"]]
  /\ due' = FALSE
  /\ UNCHANGED <<log, sink, aux_kills>>

\* System: it reads the sink's last, and stops where the sink is of the other mode.
ReadLast(r) ==
  /\ run[r].at = "last"

  /\ run' = [run EXCEPT ![r] = IF CheckMode /\ sink.generation = "incremental"
                               THEN [@ EXCEPT !.at = "stopped"]
                               ELSE [@ EXCEPT !.at = "rows", !.last = sink.last]]
  /\ UNCHANGED <<log, sink, due, aux_kills>>

\* System: it reads all rows from offset 0, as many as there are, and computes.
ReadRows(r) ==
  /\ run[r].at = "rows"

  /\ run' = [run EXCEPT ![r] = [@ EXCEPT !.at = "write", !.rows = log]]
  /\ UNCHANGED <<log, sink, due, aux_kills>>

\* System: it replaces the table as version last + 1, unless it was beaten to it.
Write(r) ==
  /\ run[r].at = "write"

  /\ IF FirstRead = "rows" \/ sink.last = run[r].last
     THEN /\ sink' = [generation |-> "recompute", last |-> sink.last + 1, rows |-> run[r].rows]
          /\ run' = [run EXCEPT ![r] = Rest]
     ELSE /\ run' = [run EXCEPT ![r] = IF Beaten = "again" THEN [Rest EXCEPT !.at = "last"] ELSE Rest]
          /\ UNCHANGED sink
  /\ UNCHANGED <<log, due, aux_kills>>

\* Environment: a row appears.
Appear ==
  /\ log < MaxRows

  /\ log' = log + 1 /\ due' = TRUE
  /\ UNCHANGED <<sink, run, aux_kills>>

\* Fault: a run dies; its trigger comes again.
Kill(r) ==
  /\ run[r].at \in {"last", "rows", "write"} /\ aux_kills < MaxKills

  /\ run' = [run EXCEPT ![r] = Rest]
  /\ due' = TRUE /\ aux_kills' = aux_kills + 1
  /\ UNCHANGED <<log, sink>>

Next == \/ \E r \in Runs : Begin(r) \/ ReadLast(r) \/ ReadRows(r) \/ Write(r)
        \/ Appear
        \/ \E r \in Runs : Kill(r)
Fairness == \A r \in Runs : WF_vars(Begin(r) \/ ReadLast(r) \/ ReadRows(r) \/ Write(r))
Spec == Init /\ [][Next]_vars /\ Fairness

\* LAW R2 NeverOlder: the table never goes back to fewer rows; a run that reads the sink's last only when
\* it writes would put an older result over a newer one.
NeverOlder == [][sink'.rows >= sink.rows]_vars

\* LAW R2 TableCatchesUp: the table is the result of the whole log in the end; a beaten run that
\* gives up instead of computing again would leave it behind.
TableCatchesUp == <>[](sink.rows = log \/ sink.generation = "incremental")

\* LAW R2 OtherModeStops: a sink of an incremental pipeline is never touched.
OtherModeStops == [][sink.generation = "incremental" => UNCHANGED sink]_vars

\* Witness: a run is beaten to the write (must be reached).
NeverBeatenToIt == \A r \in Runs : run[r].at = "write" => run[r].last = sink.last
=============================================================================
