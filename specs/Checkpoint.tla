----------------------------- MODULE Checkpoint -----------------------------
(***************************************************************************)
(* Room: checkpoint.  Engines share one state_root; an epoch becomes true   *)
(* when its manifest is created, and the sink follows by the outboxes.      *)
(*                                                                         *)
(* Models: the durable steps of an epoch, in a given order; kills between   *)
(* any two of them; recovery in single steps (sink, list, load); several    *)
(* engines, each as slow as it likes (a zombie is a slow one); nonces in    *)
(* file names and manifests; a create that happens although it timed out;   *)
(* damage to files; another configuration; garbage collection; the sink     *)
(* with K5's record; a rebuild; the late lane.                              *)
(* Leaves out: what fsync does (Disk), sinks without a record and other     *)
(* generations (Sink), the link and its credits (Credits: the step "source" *)
(* is the acknowledgement there).                                           *)
(***************************************************************************)
EXTENDS Epochs
CONSTANTS Engines,
          Order,          \* the durable steps of an epoch
          MaxStarts, MaxTimeouts, MaxDamage, MaxRebuilds,
          MaxUnapplied,   \* max_unapplied_epochs
          Configs,        \* configurations that an engine may be started with
          RecoverBy,      \* "manifests"; wrong: "pointer", "folders"
          ReadFirst,      \* "sink"; wrong: "list" (the manifests before the sink)
          ListAgain,      \* TRUE: a missing file makes recovery list again
          OnDamage,       \* "stop"; wrong: "go_back", "ignore"
          Restored,       \* "all"; wrong: "no_w" (W and max_et are forgotten)
          OffsetsIn,      \* "manifest"; wrong: "source" (kept by the source commit alone)
          ItemsAs,        \* "runs": items in processing order; wrong: "ranges" (by partition)
          Publishing,     \* "outbox"; wrong: "direct" (from memory, as the step "sink")
          Names,          \* "nonce": file names carry it; wrong: "epoch"
          Nonces,         \* "fresh" at each start; wrong: "fixed"
          Create,         \* "if_absent"; wrong: "overwrite"
          OwnNonce,       \* TRUE: a manifest with one's own nonce is one's own
          CheckConfig,    \* TRUE
          Bounded,        \* TRUE: no epoch is started at max_unapplied_epochs
          Collects        \* "safe", "nothing"; wrong: "manifests", "unpublished", "above"

\* Data files: from names <<kind, epoch, nonce>> to [good, value].
VARIABLE files
FilesTypeInv == \A f \in DOMAIN files : f[1] \in {"state", "outbox"} /\ files[f].good \in BOOLEAN

\* Manifests: from epochs to [nonce, items, numbers, names, config]; numbers are W, max_et, last
\* and the counters.
VARIABLE manifests
ManifestsTypeInv == \A n \in DOMAIN manifests : n > 0 /\ manifests[n].config \in Configs

\* _thund_latest.json
VARIABLE pointer
PointerTypeInv == pointer \in Nat

\* The offsets that the source was told, last per partition.
VARIABLE told
ToldTypeInv == \A p \in P : told[p] \in 0..Len(Log[p])

\* The sink: the last epoch applied, and its table with the late lane.
VARIABLE sink
SinkTypeInv == sink.last \in Nat /\ sink.rebuilding \in BOOLEAN

\* Each engine: where it is, and what it has in memory.
VARIABLE engine
At == {"down", "sink", "list", "load", "idle", "stopped"} \cup {Order[i] : i \in DOMAIN Order}
EngineTypeInv == \A e \in Engines : engine[e].at \in At /\ engine[e].config \in Configs

\* Starts, timeouts, damages and rebuilds so far.
VARIABLE aux_count
CountTypeInv == /\ aux_count.starts \in 0..MaxStarts /\ aux_count.timeouts \in 0..MaxTimeouts
                /\ aux_count.damage \in 0..MaxDamage /\ aux_count.rebuilds \in 0..MaxRebuilds

\* History: every (epoch, writer) that created a manifest.
VARIABLE aux_created
CreatedTypeInv == \A c \in aux_created : c[1] \in Nat /\ c[2] \in Nat

\* History: what the items of manifests 1..n come to, for each n; computed when n is committed.
VARIABLE aux_ideal
IdealTypeInv == \A n \in DOMAIN aux_ideal : aux_ideal[n].state.late \in Nat

vars == <<files, manifests, pointer, told, sink, engine, aux_count, aux_created, aux_ideal>>
CheckpointTypeInv == /\ FilesTypeInv /\ ManifestsTypeInv /\ PointerTypeInv /\ ToldTypeInv
                     /\ SinkTypeInv /\ EngineTypeInv /\ CountTypeInv /\ CreatedTypeInv
                     /\ IdealTypeInv

-----------------------------------------------------------------------------
\* Helpers.

\* The start counter tells the writers apart; a nonce is what an engine knows of itself.
Down(e) == [at |-> "down", writer |-> 0, n |-> 0, state |-> StartState, items |-> << >>,
            out |-> NoOutbox, listed |-> 0, seen |-> 0, why |-> "", config |-> CHOOSE c \in Configs : TRUE]
NonceOf(writer) == IF Nonces = "fresh" THEN writer ELSE 1
Name(kind, n, writer) == <<kind, n, IF Names = "nonce" THEN NonceOf(writer) ELSE 0>>
Numbers(s) == [w |-> s.w, maxEt |-> s.maxEt, last |-> s.last, late |-> s.late]
Highest == IF DOMAIN manifests = {} THEN 0 ELSE MaxOf(DOMAIN manifests)
FoldersUpTo == {f[2] : f \in DOMAIN files} \cup {0}
Listed == CASE RecoverBy = "manifests" -> Highest
            [] RecoverBy = "pointer"   -> pointer
            [] OTHER                   -> MaxOf(FoldersUpTo)

Has(step) == \E i \in DOMAIN Order : Order[i] = step
After(step) == LET i == CHOOSE j \in DOMAIN Order : Order[j] = step
               IN IF i = Len(Order) THEN "idle" ELSE Order[i + 1]
Passed(e, step) == engine[e].at = "idle" \/
  (\E i, j \in DOMAIN Order : Order[i] = step /\ Order[j] = engine[e].at /\ i < j)
Loaded(e) == engine[e].at \notin {"down", "sink", "list", "load", "stopped"}

\* The last epoch that engine e knows to be committed.
Known(e) == IF Passed(e, "manifest") THEN engine[e].n ELSE engine[e].n - 1

\* The files that recovery of epoch n reads, and the state that they give.
NamesOf(n) == manifests[n].names
StateName(n) == CHOOSE f \in NamesOf(n) : f[1] = "state"
OutboxName(n) == CHOOSE f \in NamesOf(n) : f[1] = "outbox"
Good(f) == f \in DOMAIN files /\ (files[f].good \/ OnDamage = "ignore")
StateOf(numbers, open) == [last |-> numbers.last, maxEt |-> numbers.maxEt, w |-> numbers.w,
                           open |-> open, late |-> numbers.late]
Damaged(f) == [good |-> FALSE, value |-> IF f[1] = "state" THEN Nothing ELSE NoOutbox]
ItemsKept(items) == IF ItemsAs = "runs" THEN items
                    ELSE SelectSeq(items, LAMBDA i : i = 1) \o SelectSeq(items, LAMBDA i : i # 1 /\ i # Drain)
                         \o SelectSeq(items, LAMBDA i : i = Drain)

\* What the items of manifests 1..n come to.
Ideal(n) == IF n = 0 THEN StartPoint ELSE aux_ideal[n]
IsPoint(n) == n \in 0..Len(aux_ideal)

Init == /\ files = Nothing /\ manifests = Nothing /\ pointer = 0
        /\ told = [p \in P |-> 0]
        /\ sink = [last |-> 0, table |-> NoTable, rebuilding |-> FALSE]
        /\ engine = [e \in Engines |-> Down(e)]
        /\ aux_count = [starts |-> 0, timeouts |-> 0, damage |-> 0, rebuilds |-> 0]
        /\ aux_created = {}
        /\ aux_ideal = << >>

Becomes(e, r) == engine' = [engine EXCEPT ![e] = r]
Stops(e, why) == Becomes(e, [Down(e) EXCEPT !.at = "stopped", !.why = why, !.writer = engine[e].writer])

-----------------------------------------------------------------------------
\* System: start and recovery.

\* The engine starts, with a fresh nonce.
Start(e) ==
  /\ engine[e].at = "down" /\ aux_count.starts < MaxStarts

  /\ \E c \in Configs :
       Becomes(e, [Down(e) EXCEPT !.at = ReadFirst, !.writer = aux_count.starts + 1, !.config = c])
  /\ aux_count' = [aux_count EXCEPT !.starts = @ + 1]
  /\ UNCHANGED <<files, manifests, pointer, told, sink, aux_created, aux_ideal>>

IsAhead(last, listed) == last > listed /\ Publishing = "outbox"

\* Sinks are read first: else an epoch that is committed and applied in between looks like a sink
\* that is ahead.
ReadSink(e) ==
  /\ engine[e].at = "sink"

  /\ IF ReadFirst = "sink" THEN Becomes(e, [engine[e] EXCEPT !.at = "list", !.seen = sink.last])
     ELSE IF IsAhead(sink.last, engine[e].listed) THEN Stops(e, "sink ahead")
     ELSE Becomes(e, [engine[e] EXCEPT !.at = "load", !.seen = sink.last])
  /\ UNCHANGED <<files, manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

\* Then the manifests are listed.
List(e) ==
  /\ engine[e].at = "list"

  /\ IF ReadFirst = "sink" /\ IsAhead(engine[e].seen, Listed) THEN Stops(e, "sink ahead")
     ELSE Becomes(e, [engine[e] EXCEPT !.at = IF ReadFirst = "sink" THEN "load" ELSE "sink",
                                       !.listed = Listed])
  /\ UNCHANGED <<files, manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

\* The highest one is loaded with the state that it names.
Load(e) ==
  /\ engine[e].at = "load"

  /\ LET n == engine[e].listed
         Begin(k, s) ==
           LET w == IF Restored = "all" THEN s
                    ELSE [s EXCEPT !.w = NEVER, !.maxEt = StartState.maxEt]
               o == IF OffsetsIn = "manifest" THEN w ELSE [w EXCEPT !.last = told]
           IN Becomes(e, [engine[e] EXCEPT !.at = "idle", !.n = k, !.state = o, !.listed = 0])
     IN CASE n = 0 -> Begin(0, StartState)
          [] n # 0 /\ n \notin DOMAIN manifests ->
               \* Only where recovery goes by something else than manifests.
               LET found == {f \in DOMAIN files : f[1] = "state" /\ f[2] = n}
               IN IF found = {} THEN Begin(n, StartState)
                  ELSE \E f \in found : Begin(n, [StartState EXCEPT !.open = files[f].value])
          [] n \in DOMAIN manifests /\ CheckConfig /\ manifests[n].config # engine[e].config ->
               Stops(e, "other config")
          [] OTHER ->
               IF Good(StateName(n))
               THEN Begin(n, StateOf(manifests[n].numbers, files[StateName(n)].value))
               ELSE IF StateName(n) \notin DOMAIN files /\ ListAgain /\ Listed > n
               THEN Becomes(e, [engine[e] EXCEPT !.at = "list", !.listed = 0])
               ELSE IF OnDamage = "go_back"
               THEN Becomes(e, [engine[e] EXCEPT !.listed = n - 1])
               ELSE Stops(e, "damaged")
  /\ UNCHANGED <<files, manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

-----------------------------------------------------------------------------
\* System: an epoch, step by step.

\* Rows are run in memory.  No epoch is started while too many are not yet applied.
RunEpoch(e) ==
  /\ engine[e].at = "idle"
  /\ ~Bounded \/ engine[e].n - sink.last < MaxUnapplied

  /\ \E items \in EpochsFrom(engine[e].state) : \E r \in {Run(engine[e].state, items)} :
       Becomes(e, [engine[e] EXCEPT !.at = Order[1], !.n = @ + 1, !.state = r.state,
                                    !.items = items, !.out = r.out])
  /\ UNCHANGED <<files, manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

\* Memory that the step after the last one does not need is dropped.
Moves(e, step) ==
  LET next == After(step)
  IN Becomes(e, IF next = "idle" THEN [engine[e] EXCEPT !.at = "idle", !.items = << >>, !.out = NoOutbox]
                ELSE [engine[e] EXCEPT !.at = next])

StateFile(e) == Name("state", engine[e].n, engine[e].writer)
OutboxFile(e) == Name("outbox", engine[e].n, engine[e].writer)
\* Put-if-absent, where names are one's own; a plain put where they are not.
PutFile(f, v) == IF Names = "nonce" /\ f \in DOMAIN files THEN files
                 ELSE With(files, f, [good |-> TRUE, value |-> v])

WriteState(e) ==
  /\ engine[e].at = "state"

  /\ files' = PutFile(StateFile(e), engine[e].state.open)
  /\ Moves(e, "state")
  /\ UNCHANGED <<manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

WriteOutbox(e) ==
  /\ engine[e].at = "outbox"

  /\ files' = PutFile(OutboxFile(e), engine[e].out)
  /\ Moves(e, "outbox")
  /\ UNCHANGED <<manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

\* State and outbox in one step, for models in which it does not matter.
WriteFiles(e) ==
  /\ engine[e].at = "files"

  /\ files' = With(PutFile(StateFile(e), engine[e].state.open), OutboxFile(e),
                   [good |-> TRUE, value |-> engine[e].out])
  /\ Moves(e, "files")
  /\ UNCHANGED <<manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

NewManifest(e) == [nonce |-> NonceOf(engine[e].writer), items |-> ItemsKept(engine[e].items),
                   numbers |-> Numbers(engine[e].state),
                   names |-> {StateFile(e), OutboxFile(e)}, config |-> engine[e].config]
Creatable(e) == engine[e].n \notin DOMAIN manifests \/ Create = "overwrite"
Creates(e) ==
  /\ manifests' = With(manifests, engine[e].n, NewManifest(e))
  /\ aux_created' = aux_created \cup {<<engine[e].n, engine[e].writer>>}
  /\ aux_ideal' = IF engine[e].n # Len(aux_ideal) + 1 THEN aux_ideal
                  ELSE Append(aux_ideal, NextPoint(Ideal(engine[e].n - 1), ItemsKept(engine[e].items)))

\* The commit point.  If the manifest is there already, its nonce says whether it is one's own.
CreateManifest(e) ==
  /\ engine[e].at = "manifest"

  /\ IF Creatable(e) THEN Creates(e) /\ Moves(e, "manifest")
     ELSE /\ UNCHANGED <<manifests, aux_created, aux_ideal>>
          /\ IF OwnNonce /\ manifests[engine[e].n].nonce = NonceOf(engine[e].writer)
             THEN Moves(e, "manifest")
             ELSE Stops(e, "beaten")
  /\ UNCHANGED <<files, pointer, told, sink, aux_count>>

\* The pointer is a hint.
WritePointer(e) ==
  /\ engine[e].at = "pointer"

  /\ pointer' = engine[e].n
  /\ Moves(e, "pointer")
  /\ UNCHANGED <<files, manifests, told, sink, aux_count, aux_created, aux_ideal>>

\* The source is told the offsets, and its credits go back.
CommitSource(e) ==
  /\ engine[e].at = "source"

  /\ told' = engine[e].state.last
  /\ Moves(e, "source")
  /\ UNCHANGED <<files, manifests, pointer, sink, aux_count, aux_created, aux_ideal>>

\* Only where outboxes are not used: the sink is written from memory.
WriteSink(e) ==
  /\ engine[e].at = "sink write"

  /\ sink' = [sink EXCEPT !.last = engine[e].n, !.table = Merge(sink.table, engine[e].out)]
  /\ Moves(e, "sink write")
  /\ UNCHANGED <<files, manifests, pointer, told, aux_count, aux_created, aux_ideal>>

-----------------------------------------------------------------------------
\* System: what follows a commit.

\* The engine offers the outbox that follows the last one it saw applied.  The sink applies it in one
\* transaction with its record, or has it already, or refuses.
Publish(e) ==
  /\ Publishing = "outbox" /\ Loaded(e) /\ engine[e].seen < Known(e) /\ ~sink.rebuilding

  /\ LET n == engine[e].seen + 1 IN
     IF n <= sink.last
     THEN /\ Becomes(e, [engine[e] EXCEPT !.seen = n])
          /\ UNCHANGED sink
     ELSE IF sink.last = n - 1 /\ n \in DOMAIN manifests /\ Good(OutboxName(n))
     THEN /\ sink' = [sink EXCEPT !.last = n, !.table = Merge(sink.table, files[OutboxName(n)].value)]
          /\ Becomes(e, [engine[e] EXCEPT !.seen = n])
     ELSE /\ Stops(e, IF sink.last = n - 1 THEN "damaged" ELSE "gap")
          /\ UNCHANGED sink
  /\ UNCHANGED <<files, manifests, pointer, told, aux_count, aux_created, aux_ideal>>

\* What an engine that knows epoch n to be committed, and the sink to have `last`, may remove.
Removable(n, last) ==
  {f \in DOMAIN files :
     \/ f[2] <= n /\ (f[2] \in DOMAIN manifests => f \notin NamesOf(f[2]))   \* an orphan
     \/ f[1] = "state" /\ f[2] < n
     \/ f[1] = "outbox" /\ f[2] < n /\ (f[2] <= last \/ Collects = "unpublished")
     \/ Collects = "above" /\ f[2] > n}

\* Garbage collection, one file at a time.
Collect(e) ==
  /\ Collects # "nothing" /\ engine[e].at = "idle"

  /\ \/ /\ \E f \in Removable(engine[e].n, engine[e].seen) : files' = Without(files, {f})
        /\ UNCHANGED manifests
     \/ /\ Collects = "manifests"
        /\ \E n \in {k \in DOMAIN manifests : k < engine[e].n} : manifests' = Without(manifests, {n})
        /\ UNCHANGED files
  /\ UNCHANGED <<pointer, told, sink, engine, aux_count, aux_created, aux_ideal>>

\* The history in the manifests, run again.
RECURSIVE Again(_)
Again(n) == IF n = 0 THEN StartPoint
            ELSE The({NextPoint(point, manifests[n].items) : point \in {Again(n - 1)}})

\* After a rebuild was asked for: the table is filled again from the manifests (T7), in order.
Refill ==
  /\ sink.rebuilding

  /\ IF sink.last = Highest THEN sink' = [sink EXCEPT !.rebuilding = FALSE]
     ELSE \E point \in {Again(sink.last + 1)} :
            sink' = [sink EXCEPT !.last = @ + 1, !.table = Merge(sink.table, point.out)]
  /\ UNCHANGED <<files, manifests, pointer, told, engine, aux_count, aux_created, aux_ideal>>

EngineStep(e) == \/ Start(e) \/ ReadSink(e) \/ List(e) \/ Load(e) \/ RunEpoch(e)
                 \/ WriteState(e) \/ WriteOutbox(e) \/ WriteFiles(e) \/ CreateManifest(e)
                 \/ WritePointer(e) \/ CommitSource(e) \/ WriteSink(e)
System == \/ \E e \in Engines : EngineStep(e) \/ Publish(e) \/ Collect(e)
          \/ Refill

-----------------------------------------------------------------------------
\* Environment.

\* A rebuild is asked for while no engine runs: the table is emptied and the record set to 0.
Rebuild ==
  /\ aux_count.rebuilds < MaxRebuilds /\ \A e \in Engines : engine[e].at \in {"down", "stopped"}

  /\ sink' = [last |-> 0, table |-> NoTable, rebuilding |-> TRUE]
  /\ aux_count' = [aux_count EXCEPT !.rebuilds = @ + 1]
  /\ UNCHANGED <<files, manifests, pointer, told, engine, aux_created, aux_ideal>>

-----------------------------------------------------------------------------
\* Fault.

\* The engine is killed, between any two steps.
Kill(e) ==
  /\ engine[e].at \notin {"down", "stopped"} /\ aux_count.starts < MaxStarts

  /\ Becomes(e, Down(e))
  /\ UNCHANGED <<files, manifests, pointer, told, sink, aux_count, aux_created, aux_ideal>>

\* The create happens, but its answer is lost; the engine will try again.
Timeout(e) ==
  /\ engine[e].at = "manifest" /\ Creatable(e) /\ aux_count.timeouts < MaxTimeouts

  /\ Creates(e)
  /\ aux_count' = [aux_count EXCEPT !.timeouts = @ + 1]
  /\ UNCHANGED <<files, pointer, told, sink, engine>>

\* A file is damaged, or lost.
Damage ==
  /\ aux_count.damage < MaxDamage

  /\ \E f \in DOMAIN files : files' \in {With(files, f, Damaged(f)), Without(files, {f})}
  /\ aux_count' = [aux_count EXCEPT !.damage = @ + 1]
  /\ UNCHANGED <<manifests, pointer, told, sink, engine, aux_created, aux_ideal>>

Fault == (\E e \in Engines : Kill(e) \/ Timeout(e)) \/ Damage

Next == System \/ Rebuild \/ Fault
Fairness == /\ \A e \in Engines : WF_vars(EngineStep(e)) /\ WF_vars(Publish(e))
            /\ WF_vars(Refill)
Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
\* Laws.

\* LAW K1 NothingUncommittedLeaves: neither the source nor the sink knows more than the highest manifest.
NothingUncommittedLeaves ==
  /\ sink.last <= Highest
  /\ Highest = 0 => \A p \in P : told[p] = 0
  /\ Highest # 0 => \A p \in P : told[p] <= manifests[Highest].numbers.last[p]

\* LAW K1 UnappliedAreBounded: no more than max_unapplied_epochs wait for the sink.
UnappliedAreBounded == sink.rebuilding \/ aux_count.rebuilds > 0 \/ Highest - sink.last <= MaxUnapplied

\* LAW K1 ManifestNamesItsOwn: the files that a manifest names are those its writer wrote, whole, as
\* long as they are kept; a slow loser that writes under the same name breaks it.
ManifestNamesItsOwn ==
  aux_count.damage = 0 =>
    \A n \in DOMAIN manifests : \A f \in NamesOf(n) \cap DOMAIN files :
      files[f].good /\ (IF f[1] = "state" THEN files[f].value = Ideal(n).state.open
                        ELSE files[f].value = Ideal(n).out)

\* LAW K2 ManifestIsForever: a manifest, once created, is never changed, removed or created again.
ManifestIsForever ==
  [][\A n \in DOMAIN manifests : n \in DOMAIN manifests' /\ manifests'[n] = manifests[n]]_vars

\* LAW K2 OwnIsKnown: an engine never takes a manifest that it created itself for another's.
OwnIsKnown == \A e \in Engines : engine[e].why = "beaten" =>
  \E c \in aux_created : c[2] # engine[e].writer /\ <<c[1], engine[e].writer>> \notin aux_created

\* LAW K3 HistoryReplays: the items of the manifests, run again from the start, give the numbers of
\* every manifest: W, max_et, last and counters; ranges without their order would not.
HistoryReplays ==
  \A n \in DOMAIN manifests : IsPoint(n) /\ manifests[n].numbers = Numbers(Ideal(n).state)

\* LAW K4 RecoversHighest: recovery takes the highest epoch that has a manifest when it lists.
\* LAW K7 RecoversHighest: what it took it loads, or it stops; it never goes back.
RecoversHighest ==
  [][\A e \in Engines :
       /\ engine[e].at = "list" /\ engine'[e].at = "load" => engine'[e].listed = Highest
       /\ engine[e].at = "load" /\ engine'[e].at = "idle" => engine'[e].n = engine[e].listed
       /\ engine[e].at = "load" /\ engine'[e].at = "load" => engine'[e].listed = engine[e].listed]_vars

\* LAW K7 DamageIsReal: an engine that names damage has met some; files that were collected or not yet
\* written are none.
DamageIsReal == \A e \in Engines : engine[e].why = "damaged" => aux_count.damage > 0

\* LAW R1 StateIsCommitted: an engine that is between epochs has the state of an uninterrupted run
\* over the committed items: windows, W, max_et, offsets and counters.
\* LAW K4 StateIsCommitted: a folder without a manifest is ignored.
\* LAW K7 StateIsCommitted: a damaged file is never read as good.
\* LAW W1 StateIsCommitted: W and max_et of every partition are in the checkpoint.
StateIsCommitted ==
  \A e \in Engines : engine[e].at = "idle" =>
    engine[e].n <= Highest /\ IsPoint(engine[e].n) /\ engine[e].state = Ideal(engine[e].n).state

\* LAW M2 TableIsCommitted: the table is that of the committed epochs up to the sink's last, whatever is
\* replayed, by whomever; the late lane too.
\* LAW K5 TableIsCommitted: the sink applies outbox N iff its last is N - 1, and a rebuild from the
\* manifests gives the same table.
\* LAW A6 TableIsCommitted: lanes are part of the outbox: no crash loses or repeats a late row.
TableIsCommitted ==
  aux_count.damage = 0 =>
    sink.last <= Highest /\ IsPoint(sink.last) /\ sink.table = Ideal(sink.last).table

\* LAW K5 NeverAhead: no engine finds the sink ahead of the manifests, or a gap, where nobody made one.
NeverAhead == aux_count.rebuilds = 0 => \A e \in Engines : engine[e].why \notin {"sink ahead", "gap"}

\* LAW K6 OneWinner: of all engines one alone creates the manifest of an epoch; a store whose
\* put-if-absent does not hold, or a manifest that was collected, would let two.
OneWinner == \A c, d \in aux_created : c[1] = d[1] => c[2] = d[2]

\* LAW K6 OnlyWinnersGoOn: an engine that is past its manifest created it.
OnlyWinnersGoOn ==
  \A e \in Engines : Loaded(e) /\ engine[e].at # "idle" /\ Passed(e, "manifest") =>
    <<engine[e].n, engine[e].writer>> \in aux_created

\* LAW K8 OneConfig: all epochs of a state_root have one configuration.
OneConfig == \A m, n \in DOMAIN manifests : manifests[m].config = manifests[n].config

\* LAW K9 KeptIsWhole: garbage collection leaves the newest state, every outbox that the sink lacks, and
\* the files of an epoch under way.
KeptIsWhole ==
  aux_count.damage = 0 =>
    /\ Highest # 0 => StateName(Highest) \in DOMAIN files
    /\ ~sink.rebuilding /\ aux_count.rebuilds = 0 =>
         \A n \in DOMAIN manifests : n > sink.last => OutboxName(n) \in DOMAIN files

\* What the sink shows at the end: an engine is done and the sink has followed.
Done == \E e \in Engines : engine[e].at = "idle" /\ Drained(engine[e].state) /\ engine[e].n = Highest
        /\ (Publishing = "direct" \/ sink.last = Highest)

\* LAW R1 FinalTable: however often it was killed, the final table is that of the committed items.
FinalTable == Done => sink.table = Ideal(Highest).table

\* LAW R1 AsUninterrupted: where the order of rows is a function of the offsets, state and table are
\* those of a run that was never interrupted, however it was cut.
AsUninterrupted == Done /\ ~AnyOrder =>
  \E r \in {Uninterrupted} : sink.table = Merge(NoTable, r.out)

\* LAW K1 EveryEpochReachesTheSink: each committed epoch is applied in the end.
EveryEpochReachesTheSink ==
  \A n \in 1..3 : (n \in DOMAIN manifests) ~> (sink.last >= n)

\* LAW R1 EverythingEndsInTheSink: after the drain everything accepted is in the sink or in its lane.
EverythingEndsInTheSink ==
  <>[](Done /\ Sum(sink.table.rows) + Cardinality(sink.table.late)
               = Sum([p \in P |-> Len(Log[p])]))

\* The abstract specification that the committed history, its state and the table refine.
CommittedState == IF Highest = 0 THEN StartState
                  ELSE StateOf(manifests[Highest].numbers, files[StateName(Highest)].value)
Abstract == INSTANCE ExactlyOnce
            WITH history <- [n \in 1..Highest |-> [items |-> manifests[n].items, out |-> Ideal(n).out]],
                 state <- CommittedState, published <- sink.last, table <- sink.table
\* LAW K2 RefinesExactlyOnce: epochs happen at once and one after the other, and the sink follows
\* them one by one: Checkpoint refines ExactlyOnce.
RefinesExactlyOnce == Abstract!Spec

\* Witnesses: each must be reached.
NeverLeavesOutboxBehind ==
  ~\E f \in DOMAIN files : /\ f[1] = "outbox" /\ f[2] \notin DOMAIN manifests
                           /\ \A e \in Engines : engine[e].at = "down"
NeverBeaten == \A e \in Engines : engine[e].why # "beaten"
=============================================================================
