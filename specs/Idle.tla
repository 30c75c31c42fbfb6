-------------------------------- MODULE Idle --------------------------------
(***************************************************************************)
(* Room: watermark.  A partition from which nothing comes for a while holds *)
(* W no more, until it is heard of again.                                   *)
(*                                                                         *)
(* Models: quiet clocks; rows that are fetched and wait; readings between   *)
(* epochs; what makes a partition active again; partitions that are added   *)
(* and removed; the items of an epoch, its commit, and an engine that is    *)
(* killed and goes on from the last commit; which partition holds W (W7).   *)
(* Leaves out: the other late rules, the guard and drains (Watermark); the  *)
(* durable steps of a commit (Checkpoint); idle_timeout_ms = 0; since when  *)
(* a partition holds W.                                                     *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Choices,      \* per partition 1..n a sequence: what the time of its row 1, 2, ... may be
          Delay,        \* delta
          Timeout,      \* idle_timeout_ms
          MaxItems,     \* items in one epoch
          MaxChanges,   \* additions and removals
          MaxKills,
          Clocks,       \* "quiet": run while the engine waits for rows and holds none of p; wrong: "always"
          Reading,      \* "between" epochs; wrong: "inside" (in one too, where it is not recorded)
          Going,        \* "together"; wrong: "one_by_one"
          AllIdle,      \* "holds"; wrong: "greatest": W follows the largest max_et
          Waking,       \* "any" row; wrong: "valid"
          Resumed,      \* "clamped"; wrong: "candidate": W is the candidate when a partition wakes
          Restarting,   \* "keeps" the flags; wrong: "wakes" all
          Record,       \* "read": the idle set as it was read; wrong: "at_cut", as it is then
          LateTest,     \* "before": by W before the row; wrong: "after"
          HolderAmong,  \* "active"; wrong: "assigned", idle ones too
          Freed         \* what W would be: "clamped"; wrong: "candidate"
ASSUME Timeout \in Nat \ {0}

Parts == DOMAIN Choices
Bad == -999      \* an invalid event time: a mark, never used as a number
Nobody == 0

\* What a manifest keeps: the partitions assigned, those idle, how many rows of each are accepted, max_et,
\* W, and the identities of late rows.
VARIABLE state
StateOK(s) == /\ s.assigned \in SUBSET Parts /\ s.idle \in SUBSET Parts
              /\ \A p \in Parts : s.accepted[p] \in 0..Len(Choices[p]) /\ s.maxEt[p] \in Int
              /\ s.w \in NEVER..END
              /\ \A r \in s.late : r[1] \in Parts
StateTypeInv == StateOK(state)

\* The same at the last commit.
VARIABLE committed
CommittedTypeInv == StateOK(committed)

\* The items of the epoch so far, as the manifest will have them.
VARIABLE items
ItemsTypeInv == \A i \in DOMAIN items : items[i][1] \in {"row", "idle", "add", "remove"}

\* Rows of p that are fetched and not yet accepted.
VARIABLE waiting
WaitingTypeInv == waiting \in [Parts -> 0..1]

\* The idle clocks; what is longer than the timeout is not told apart.
VARIABLE quiet
QuietTypeInv == quiet \in [Parts -> 0..Timeout]

\* History: for how long the engine waited for rows and had none of p.
VARIABLE aux_silence
SilenceTypeInv == aux_silence \in [Parts -> 0..Timeout]

\* The last row judged, with W, the idle and the assigned partitions just before, or the empty record.
VARIABLE aux_judged
NoRow == [lane |-> "none"]
JudgedTypeInv == aux_judged.lane \in {"none", "admitted", "late", "invalid"}

\* Changes of the set of partitions, and kills.
VARIABLE aux_changes
ChangesTypeInv == aux_changes \in 0..MaxChanges
VARIABLE aux_kills
KillsTypeInv == aux_kills \in 0..MaxKills

vars == <<state, committed, items, waiting, quiet, aux_silence, aux_judged, aux_changes, aux_kills>>

IdleTypeInv ==
  /\ StateTypeInv /\ CommittedTypeInv /\ ItemsTypeInv /\ WaitingTypeInv /\ QuietTypeInv
  /\ SilenceTypeInv /\ JudgedTypeInv /\ ChangesTypeInv /\ KillsTypeInv

Zero == [p \in Parts |-> 0]
First == [assigned |-> Parts, idle |-> {}, accepted |-> Zero,
          maxEt |-> [p \in Parts |-> NEVER], w |-> NEVER, late |-> {}]
Init == /\ state = First /\ committed = First
        /\ items = << >>
        /\ waiting = Zero /\ quiet = Zero /\ aux_silence = Zero
        /\ aux_judged = NoRow
        /\ aux_changes = 0 /\ aux_kills = 0

-----------------------------------------------------------------------------
\* What the items do.

Active(s) == s.assigned \ s.idle

\* The candidate over the partitions A, or NEVER where there is none.
Candidate(A, s) == IF A = {} \/ \E p \in A : s.maxEt[p] = NEVER THEN NEVER
                   ELSE MinOf({s.maxEt[p] : p \in A}) - Delay
Greatest(s) == MaxOf({NEVER} \cup {s.maxEt[p] - Delay : p \in {q \in s.assigned : s.maxEt[q] # NEVER}})

Moved(s) == [s EXCEPT !.w = IF AllIdle = "greatest" /\ Active(s) = {} THEN Max2(@, Greatest(s))
                            ELSE Max2(@, Candidate(Active(s), s))]

RowTo(s, p, et) ==
  LET wakes == Waking = "any" \/ et # Bad
      t == [s EXCEPT !.accepted[p] = @ + 1,
                     !.idle = IF wakes THEN @ \ {p} ELSE @,
                     !.maxEt[p] = IF et = Bad THEN @ ELSE Max2(@, et)]
      after == IF Resumed = "candidate" /\ p \in s.idle \ t.idle
               THEN [t EXCEPT !.w = Candidate(Active(t), t)] ELSE Moved(t)
      bound == IF LateTest = "after" THEN after.w ELSE s.w
  IN [after EXCEPT !.late = IF et # Bad /\ et < bound THEN @ \cup {<<p, s.accepted[p] + 1>>} ELSE @]

RECURSIVE OneByOne(_, _)
OneByOne(s, A) == IF A = {} THEN s
                  ELSE LET p == MinOf(A) IN OneByOne(Moved([s EXCEPT !.idle = @ \cup {p}]), A \ {p})
IdleTo(s, A) == IF Going = "together" THEN Moved([s EXCEPT !.idle = @ \cup A]) ELSE OneByOne(s, A)

AddTo(s, p) == Moved([s EXCEPT !.assigned = @ \cup {p}, !.idle = @ \ {p}])
RemoveTo(s, p) == Moved([s EXCEPT !.assigned = @ \ {p}])

Do(s, item) == CASE item[1] = "row"    -> RowTo(s, item[2], item[3])
                 [] item[1] = "idle"   -> IdleTo(s, item[2])
                 [] item[1] = "add"    -> AddTo(s, item[2])
                 [] item[1] = "remove" -> RemoveTo(s, item[2])
RECURSIVE Replay(_, _)
Replay(s, list) == IF list = << >> THEN s
                   ELSE The({Replay(t, Tail(list)) : t \in {Do(s, Head(list))}})

\* The items that the manifest keeps.
NoIdle == SelectSeq(items, LAMBDA item : item[1] # "idle")
Manifest == IF Record = "read" THEN items
            ELSE IF state.idle \subseteq committed.idle THEN NoIdle
            ELSE <<<<"idle", state.idle \ committed.idle>>>> \o NoIdle

-----------------------------------------------------------------------------
\* What holds W, for a user to read (W7).

\* The active partition with the least max_et; one that has none is the least of all.
Holder == LET A == IF HolderAmong = "active" THEN Active(state) ELSE state.assigned
          IN IF A = {} THEN Nobody
             ELSE MinOf({p \in A : \A q \in A : state.maxEt[p] <= state.maxEt[q]})

\* What W would be, were p not there.
FreeOf(p) == LET candidate == Candidate(Active(state) \ {p}, state)
             IN IF Freed = "clamped" THEN Max2(state.w, candidate) ELSE candidate

-----------------------------------------------------------------------------
\* System.

\* The next row of p is accepted and judged; it wakes p before it moves W.
Take(p) ==
  /\ waiting[p] > 0 /\ Len(items) < MaxItems

  /\ \E et \in Choices[p][state.accepted[p] + 1] :
       /\ state' = RowTo(state, p, et)
       /\ items' = Append(items, <<"row", p, et>>)
       /\ aux_judged' = [lane |-> IF et = Bad THEN "invalid"
                                  ELSE IF state'.late # state.late THEN "late" ELSE "admitted",
                         p |-> p, et |-> et, w |-> state.w,
                         idle |-> state.idle, assigned |-> state.assigned]
  /\ waiting' = [waiting EXCEPT ![p] = @ - 1]
  /\ quiet' = [quiet EXCEPT ![p] = 0]
  /\ aux_silence' = [aux_silence EXCEPT ![p] = 0]
  /\ UNCHANGED <<committed, aux_changes, aux_kills>>

\* One more moment on the clock c of each partition in A.
Longer(c, A) == [p \in Parts |-> IF p \in A THEN Min2(c[p] + 1, Timeout) ELSE c[p]]
Silent == {p \in Active(state) : waiting[p] = 0}

\* The engine waited for rows for a moment. Between epochs it reads the idle clocks then, and a reading
\* that finds a partition idle begins an epoch.
Tick ==
  /\ quiet' = Longer(quiet, IF Clocks = "quiet" THEN Silent ELSE Active(state))
  /\ aux_silence' = Longer(aux_silence, Silent)
  /\ LET found == {p \in Active(state) : quiet'[p] = Timeout}
     IN IF found = {} \/ (items # << >> /\ Reading = "between")
        THEN UNCHANGED <<state, items>>
        ELSE /\ state' = IdleTo(state, found)
             /\ items' = IF items = << >> THEN <<<<"idle", found>>>> ELSE items
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<committed, waiting, aux_changes, aux_kills>>

\* The engine works for a moment, while rows wait for it. No clock runs.
Work ==
  /\ \E p \in Parts : waiting[p] > 0

  /\ quiet' = IF Clocks = "quiet" THEN quiet ELSE Longer(quiet, Active(state))
  /\ UNCHANGED <<state, committed, items, waiting, aux_silence, aux_judged, aux_changes, aux_kills>>

\* The epoch is cut and committed.
Cut ==
  /\ items # << >>

  /\ committed' = state
  /\ items' = << >>
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<state, waiting, quiet, aux_silence, aux_changes, aux_kills>>

System == (\E p \in Parts : Take(p)) \/ Tick \/ Work \/ Cut

-----------------------------------------------------------------------------
\* Environment.

\* A row of p is fetched; it may have to wait, for the engine or for a row before it.
Fetch(p) ==
  /\ p \in state.assigned /\ waiting[p] = 0 /\ state.accepted[p] < Len(Choices[p])

  /\ waiting' = [waiting EXCEPT ![p] = 1]
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<state, committed, items, quiet, aux_silence, aux_changes, aux_kills>>

\* A partition is assigned, or assigned again: it is active, and its clock starts.
Add(p) ==
  /\ p \notin state.assigned /\ aux_changes < MaxChanges /\ Len(items) < MaxItems

  /\ state' = AddTo(state, p)
  /\ items' = Append(items, <<"add", p>>)
  /\ aux_changes' = aux_changes + 1
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<committed, waiting, quiet, aux_silence, aux_kills>>

\* A partition is no longer assigned: it keeps its flag and has no clock; what was fetched is let go.
Remove(p) ==
  /\ p \in state.assigned /\ aux_changes < MaxChanges /\ Len(items) < MaxItems

  /\ state' = RemoveTo(state, p)
  /\ items' = Append(items, <<"remove", p>>)
  /\ waiting' = [waiting EXCEPT ![p] = 0]
  /\ quiet' = [quiet EXCEPT ![p] = 0]
  /\ aux_silence' = [aux_silence EXCEPT ![p] = 0]
  /\ aux_changes' = aux_changes + 1
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<committed, aux_kills>>

Environment == \E p \in Parts : Fetch(p) \/ Add(p) \/ Remove(p)

\* Fault: the engine is killed; the next one goes on from the last commit, with new clocks.
Kill ==
  /\ aux_kills < MaxKills

  /\ state' = IF Restarting = "keeps" THEN committed ELSE [committed EXCEPT !.idle = {}]
  /\ items' = << >>
  /\ waiting' = Zero /\ quiet' = Zero /\ aux_silence' = Zero
  /\ aux_kills' = aux_kills + 1
  /\ aux_judged' = NoRow
  /\ UNCHANGED <<committed, aux_changes>>

Next == System \/ Environment \/ Kill
Spec == /\ Init /\ [][Next]_vars
        /\ \A p \in Parts : WF_vars(Take(p))
        /\ WF_vars(Tick) /\ WF_vars(Cut)

-----------------------------------------------------------------------------
\* Laws.

Lives == aux_kills' = aux_kills
Found == state'.idle \ state.idle
Woken == state.idle \ state'.idle
Heard == {p \in Parts : state'.accepted[p] > state.accepted[p]}
Added == state'.assigned \ state.assigned

\* LAW W4 IdleIsSilence: a partition that is found idle gave no row for the whole timeout, while the engine
\* waited for rows and held none of it; the engine's own slowness makes none idle.
IdleIsSilence == [][Lives => \A p \in Found : aux_silence'[p] = Timeout]_vars

\* LAW W4 SilentGoesIdle: a partition from which nothing comes any more is idle in the end.
SilentGoesIdle == \A p \in Parts : []<>(p \notin state.assigned \/ p \in state.idle)

\* LAW W4 ReadTogether: partitions found idle in one reading go together, so that no order among them
\* shows: W is what the partitions left over allow.
\* LAW W3 ReadTogether: and W follows the reading at once.
ReadTogether ==
  [][Lives /\ Found # {} => state'.w = Max2(state.w, Candidate(Active(state) \ Found, state))]_vars

\* LAW W4 AllIdleHolds: where no active partition is left, W stands still.
AllIdleHolds == [][Lives /\ Active(state') = {} => state'.w = state.w]_vars

\* LAW W4 RowWakes: a row of p, valid or not, makes p active at once; so does adding it again.
RowWakes == [][Lives => (Heard \cup Added) \cap state'.idle = {}]_vars

\* LAW W4 OnlyRowsWake: nothing else does; after a restart the flags are those of the commit.
OnlyRowsWake == [][IF Lives THEN Woken \subseteq Heard \cup Added
                   ELSE state'.idle = committed.idle]_vars

\* LAW W4 RemovedKeepsFlag: a removed partition keeps its flag and has no clock.
RemovedKeepsFlag ==
  [][\A p \in Parts \ state'.assigned : /\ Lives => (p \in state'.idle <=> p \in state.idle)
                                        /\ quiet'[p] = 0]_vars

\* LAW K3 ReadingIsFirst: idleness is read between epochs only, and what it finds is the first item.
ReadingIsFirst == [][Lives /\ Found # {} => items = << >> /\ items' = <<<<"idle", Found>>>>]_vars

\* LAW K3 ItemsReplay: the items that the manifest keeps, run from the last commit, give the same idle
\* partitions, the same W and the same late rows, wherever the epoch is cut.
ItemsReplay == Replay(committed, Manifest) = state

\* LAW W5 ResumedLowersNothing: a partition that goes idle, comes back, is added or is removed does not
\* lower W, and nothing forgets its max_et.
\* LAW W3 ResumedLowersNothing: W never falls.
ResumedLowersNothing ==
  [][Lives => state'.w >= state.w /\ \A p \in Parts : state'.maxEt[p] >= state.maxEt[p]]_vars

\* LAW A1 RowRule: a valid row is late exactly if its time is less than W as it stood just before it. A row
\* that wakes its partition may lift W above its own time, so the moment of the test shows.
RowRule == aux_judged.lane \in {"admitted", "late"} =>
             (aux_judged.lane = "late" <=> aux_judged.et < aux_judged.w)

\* LAW W7 HolderHolds: the holder is active, and the candidate without it is not lower; without any other
\* partition the candidate is the same.
HolderHolds ==
  IF Active(state) = {} THEN Holder = Nobody
  ELSE /\ Holder \in Active(state)
       /\ \A p \in Active(state) \ {Holder} :
            /\ Candidate(Active(state) \ {p}, state) = Candidate(Active(state), state)
            /\ Candidate(Active(state) \ {Holder}, state) >= Candidate(Active(state), state)

\* LAW W7 FreeIsNotLower: without the holder, or any other partition, W would not be lower.
FreeIsNotLower == \A p \in Parts : FreeOf(p) >= state.w

\* LAW W7 FreeIsTrue: where a partition is removed, W is what was said that it would be.
FreeIsTrue == [][Lives => \A p \in state.assigned \ state'.assigned : state'.w = FreeOf(p)]_vars

\* Witness: the row that wakes its partition is late (must be reached).
NeverLateAtWaking == ~(aux_judged.lane = "late" /\ aux_judged.p \in aux_judged.idle)

\* Witness: two partitions go idle in one reading, which moves W, as a third holds it no more (must be
\* reached).
NeverTogether == ~(items # << >> /\ items[1][1] = "idle" /\ Cardinality(items[1][2]) = 2
                   /\ Active(state) # {} /\ committed.w < state.w)

\* Witness: all are idle, and a row of one lifts W (must be reached).
NeverAllIdleThenOne == ~(aux_judged.lane # "none" /\ aux_judged.assigned \subseteq aux_judged.idle
                         /\ Cardinality(aux_judged.assigned) > 1 /\ state.w > aux_judged.w)
=============================================================================
