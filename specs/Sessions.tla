------------------------------ MODULE Sessions ------------------------------
(***************************************************************************)
(* Room: windows.  Admitted rows and a rising W become sessions: covers     *)
(* that overlap merge, sessions that W has passed close, and each epoch has *)
(* an outbox with rows and tombstones for each output mode.                 *)
(*                                                                         *)
(* Models: a row covers [et, et + Gap); W that rises in any way, +infinity  *)
(* at last; epochs cut anywhere; row rule and window rule (A1, A2); the     *)
(* three output modes side by side, so that they can be compared.           *)
(* Leaves out: aggregates other than the count (Windows); how W comes about *)
(* (Watermark); crashes (Checkpoint); panes (SessionPanes).                 *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Keys, Times,
          Marks,        \* values that W may take on its way
          Gap, Grace,   \* Grace is Delta
          MaxRows, MaxEpochs,
          Touching,     \* "apart": et = end starts a new session; "joined": it joins, which is sound
                        \* only with CloseAt = "passed"
          CloseAt,      \* "reached": W >= end + Delta; "passed": W > end + Delta; wrong: "cut" (the
                        \* same as reached, but looked at only when an epoch is cut)
          Joining,      \* "all" sessions that overlap the row's cover; wrong: "one" of them
          Admission,    \* "row": et >= W (A1); "window": et + Delta >= W or inside an open session (A2);
                        \* wrong: "outside" (et + Delta >= W), "cover" (et + Gap + Delta > W or inside),
                        \* "merged" (et + Gap + Delta > W or a cover that overlaps an open session)
          UpdateTombs,  \* "taken": shown ids that a merge or an extension took; wrong: "none", "closed"
                        \* (also shown ids that are closed)
          CompleteTombs \* "taken"; wrong: "none"

Modes == {"append", "update", "complete"}
IdOK(id) == id[1] \in Keys /\ id[2] \in Times
RowOK(row) == row.n \in 1..MaxRows /\ row.end \in Int

\* The watermark, as the room above hands it in.
VARIABLE w
WTypeInv == w \in Marks \cup {NEVER, END}

\* Open sessions: from ids <<key, start>> to their end and the number of their rows.
VARIABLE open
OpenTypeInv == \A id \in DOMAIN open : IdOK(id) /\ RowOK(open[id])

\* Rows of sessions closed in this epoch, for the outbox of append mode.
VARIABLE closing
ClosingTypeInv == \A id \in DOMAIN closing : IdOK(id) /\ RowOK(closing[id])

\* Rows of ids that had a row admitted or merged into them in this epoch, for that of update mode.
VARIABLE touched
TouchedTypeInv == \A id \in DOMAIN touched : IdOK(id) /\ RowOK(touched[id])

\* Rows of closed sessions, kept for the outbox of complete mode.
VARIABLE kept
KeptTypeInv == \A id \in DOMAIN kept : IdOK(id) /\ RowOK(kept[id])

\* Ids of the sessions that were open at the last cut: each was shown under its start.
VARIABLE shown
ShownTypeInv == \A id \in shown : IdOK(id)

\* Those of them that a merge or an extension to an earlier start took away in this epoch.
VARIABLE gone
GoneTypeInv == gone \subseteq shown

\* The last epoch's number, and W at its cut.
VARIABLE epoch
EpochTypeInv == epoch \in 0..MaxEpochs
VARIABLE cutW
CutWTypeInv == cutW \in Marks \cup {NEVER, END}

\* The table in each mode after the outboxes so far.
VARIABLE table
TableTypeInv == table \in [Modes -> {table[m] : m \in Modes}]

\* History: the bag of rows admitted, as a function from <<key, et>> to how many, and those of them that
\* were admitted in this epoch.
VARIABLE aux_rows
RowsTypeInv == /\ DOMAIN aux_rows \subseteq Keys \X Times
               /\ \A r \in DOMAIN aux_rows : aux_rows[r] \in 1..MaxRows
VARIABLE aux_new
NewTypeInv == aux_new \subseteq DOMAIN aux_rows

\* History: what each closed session showed when it was first closed, and how often it was closed.
VARIABLE aux_closed
ClosedTypeInv == \A id \in DOMAIN aux_closed : IdOK(id) /\ aux_closed[id].times \in 1..MaxRows

\* History, per id: puts in append mode; corrections in update mode, which are puts of epochs that began
\* with W at or after the end; rows admitted with W in [end, end + Delta).
VARIABLE aux_puts
PutsTypeInv == \A id \in DOMAIN aux_puts : aux_puts[id].append \in Nat

vars == <<w, open, closing, touched, kept, shown, gone, epoch, cutW, table,
          aux_rows, aux_new, aux_closed, aux_puts>>

SessionsTypeInv ==
  /\ WTypeInv /\ OpenTypeInv /\ ClosingTypeInv /\ TouchedTypeInv /\ KeptTypeInv /\ ShownTypeInv
  /\ GoneTypeInv /\ EpochTypeInv /\ CutWTypeInv /\ TableTypeInv /\ RowsTypeInv /\ NewTypeInv
  /\ ClosedTypeInv /\ PutsTypeInv

Init == /\ w = NEVER
        /\ open = Nothing /\ closing = Nothing /\ touched = Nothing /\ kept = Nothing
        /\ shown = {} /\ gone = {}
        /\ epoch = 0 /\ cutW = NEVER
        /\ table = [m \in Modes |-> Nothing]
        /\ aux_rows = Nothing /\ aux_new = {} /\ aux_closed = Nothing /\ aux_puts = Nothing

-----------------------------------------------------------------------------
\* Covers [a, b) and [c, d) that merge.
Meet(a, b, c, d) == IF Touching = "apart" THEN a < d /\ c < b ELSE a <= d /\ c <= b

Of(k) == {id \in DOMAIN open : id[1] = k}
Inside(k, et) == \E id \in Of(k) : id[2] <= et /\ et < open[id].end
Neighbours(k, et) == {id \in Of(k) : Meet(id[2], open[id].end, et, et + Gap)}
Joined(k, et) == IF Joining = "all" THEN Neighbours(k, et)
                 ELSE {id \in Neighbours(k, et) : \A other \in Neighbours(k, et) : id[2] <= other[2]}

Admits(k, et) == CASE Admission = "row"     -> et >= w
                   [] Admission = "window"  -> et + Grace >= w \/ Inside(k, et)
                   [] Admission = "outside" -> et + Grace >= w
                   [] Admission = "cover"   -> et + Gap + Grace > w \/ Inside(k, et)
                   [] OTHER                 -> et + Gap + Grace > w \/ Neighbours(k, et) # {}

ClosesAt(id) == open[id].end + Grace
Due == {id \in DOMAIN open : IF CloseAt = "passed" THEN w > ClosesAt(id) ELSE w >= ClosesAt(id)}

CountIn(f, x) == IF x \in DOMAIN f THEN f[x] ELSE 0
PutsOf(id) == IF id \in DOMAIN aux_puts THEN aux_puts[id]
              ELSE [append |-> 0, corrections |-> 0, after |-> 0]

\* What the epoch would emit in mode m, were it cut now: rows and tombstones.
Outbox(m) == CASE m = "append" -> closing
               [] m = "update" -> touched
               [] OTHER        -> Over(open, kept)
TombsOf(rule) == CASE rule = "taken"  -> gone
                   [] rule = "closed" -> (gone \cup shown) \ (DOMAIN open \cup DOMAIN touched)
                   [] OTHER           -> {}
Tombs(m) == CASE m = "append" -> {}
              [] m = "update" -> TombsOf(UpdateTombs)
              [] OTHER        -> TombsOf(CompleteTombs)

-----------------------------------------------------------------------------
\* System.

\* A row is taken and merged with the open sessions of its key that its cover overlaps; sessions that W
\* has passed are closed before.
Take ==
  /\ CloseAt = "cut" \/ Due = {}
  /\ w # END
  /\ Sum(aux_rows) < MaxRows

  /\ \E k \in Keys, et \in Times :
       /\ Admits(k, et)
       /\ \E joined \in {Joined(k, et)} :
          \E id \in {<<k, MinOf({et} \cup {j[2] : j \in joined})>>},
             merged \in {[end |-> MaxOf({et + Gap} \cup {open[j].end : j \in joined}),
                          n |-> 1 + SumOver([j \in joined |-> open[j].n], joined)]} :
          /\ open' = With(Without(open, joined), id, merged)
          /\ touched' = With(Without(touched, joined), id, merged)
          /\ gone' = gone \cup ((joined \ {id}) \cap shown)
          /\ aux_rows' = With(aux_rows, <<k, et>>, CountIn(aux_rows, <<k, et>>) + 1)
          /\ aux_new' = aux_new \cup {<<k, et>>}
          /\ aux_puts' = IF id \in DOMAIN open /\ w >= open[id].end
                         THEN With(aux_puts, id, [PutsOf(id) EXCEPT !.after = @ + 1])
                         ELSE aux_puts
  /\ UNCHANGED <<w, closing, kept, shown, epoch, cutW, table, aux_closed>>

\* The sessions that W has passed are closed: their rows are final and their state is gone.
Close ==
  /\ Due # {}

  /\ open' = Without(open, Due)
  /\ closing' = Over(closing, Only(open, Due))
  /\ kept' = Over(kept, Only(open, Due))
  /\ aux_closed' = Over(aux_closed,
       [id \in Due |-> IF id \in DOMAIN aux_closed THEN [aux_closed[id] EXCEPT !.times = @ + 1]
                       ELSE [row |-> open[id], times |-> 1]])
  /\ UNCHANGED <<w, touched, shown, gone, epoch, cutW, table, aux_rows, aux_new, aux_puts>>

\* The epoch is cut, and each mode's outbox merged into its table: tombstones delete.
Cut ==
  /\ Due = {} /\ epoch < MaxEpochs
  /\ DOMAIN touched \cup DOMAIN closing # {} \/ w # cutW

  /\ table' = [m \in Modes |-> Over(Without(table[m], Tombs(m)), Outbox(m))]
  /\ LET corrected == {id \in DOMAIN touched \cap shown : cutW >= table["update"][id].end}
     IN aux_puts' = [id \in DOMAIN aux_puts \cup DOMAIN closing \cup corrected |->
          [PutsOf(id) EXCEPT !.append = @ + (IF id \in DOMAIN closing THEN 1 ELSE 0),
                             !.corrections = @ + (IF id \in corrected THEN 1 ELSE 0)]]
  /\ epoch' = epoch + 1 /\ cutW' = w
  /\ closing' = Nothing /\ touched' = Nothing /\ gone' = {} /\ aux_new' = {}
  /\ shown' = DOMAIN open
  /\ UNCHANGED <<w, open, kept, aux_rows, aux_closed>>

\* Environment: W rises; at last a drain makes it +infinity.
Rise == /\ CloseAt = "cut" \/ Due = {}
        /\ w' \in {m \in Marks \cup {END} : m > w}
        /\ UNCHANGED <<open, closing, touched, kept, shown, gone, epoch, cutW, table,
                       aux_rows, aux_new, aux_closed, aux_puts>>

System == Take \/ Close \/ Cut
Environment == Rise
Next == System \/ Environment
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* The sessions of the admitted rows, from their bag alone: no order and no W is in them.

Apart(t, u) == IF Touching = "apart" THEN u >= t + Gap ELSE u > t + Gap
TimesOf(k) == {t \in Times : <<k, t>> \in DOMAIN aux_rows}
StartsIn(T) == {u \in T : \A t \in T : t < u => Apart(t, u)}
\* A session goes from its start to the last time before the next start.
LastOf(T, S, s) == MaxOf({t \in T : \A u \in S : u <= s \/ t < u})
RowOf(k, s, last) == [end |-> last + Gap,
                      n |-> SumOver(aux_rows, {<<k, t>> : t \in {x \in TimesOf(k) : s <= x /\ x <= last}})]
Result == The({[id \in UNION {{k} \X starts[k] : k \in Keys} |->
                  RowOf(id[1], id[2], LastOf(TimesOf(id[1]), starts[id[1]], id[2]))]
               : starts \in {[k \in Keys |-> StartsIn(TimesOf(k))]}})

ClosedRows == [id \in DOMAIN aux_closed |-> aux_closed[id].row]
NothingNew == aux_new = {} /\ closing = Nothing /\ w = cutW

-----------------------------------------------------------------------------
\* Laws.

\* LAW G3 SessionsAreOfTheBag: the open and the closed sessions are what merging the covers of the
\* admitted rows gives, whatever the order in which they came and W rose.
SessionsAreOfTheBag == Over(open, ClosedRows) = Result

\* LAW G3 NeverOverlap: sessions of one key never overlap, open or closed.
NeverOverlap ==
  \A a \in {<<id, open[id].end>> : id \in DOMAIN open}
           \cup {<<id, aux_closed[id].row.end>> : id \in DOMAIN aux_closed},
     b \in {<<id, open[id].end>> : id \in DOMAIN open} :
    a[1][1] = b[1][1] /\ a # b => a[2] <= b[1][2] \/ b[2] <= a[1][2]

\* LAW A1 RowRuleNeverCorrects: under the row rule nothing enters a session once W >= end.
\* LAW F4 RowRuleNeverCorrects: so nothing is ever corrected.
RowRuleNeverCorrects == Admission = "row" => \A id \in DOMAIN aux_puts : aux_puts[id].after = 0

\* LAW A2 SessionRule: under the window rule a row is late exactly if et + Delta < W and it lies in no
\* session of its key that is not closed by W.
SessionRule ==
  Admission # "row" /\ Due = {} =>
    \A result \in {Result}, k \in Keys, et \in Times :
      Admits(k, et) <=> \/ et + Grace >= w
                        \/ \E id \in DOMAIN result : /\ id[1] = k /\ id[2] <= et /\ et < result[id].end
                                                     /\ result[id].end + Grace > w

\* LAW F1 ClosedInTime: no row is taken and no epoch cut while W has passed an open session's end + Delta.
ClosedInTime ==
  [][epoch' # epoch \/ aux_rows' # aux_rows => \A id \in DOMAIN open : w < ClosesAt(id)]_vars

\* LAW F1 ClosedOnce: a session is closed once, and append mode puts its final row once.
\* LAW E1 ClosedOnce: one row per (key, session).
ClosedOnce == /\ \A id \in DOMAIN aux_closed : aux_closed[id].times = 1
              /\ \A id \in DOMAIN aux_puts : aux_puts[id].append <= 1

\* LAW F2 ClosedIsFinal: the id of a closed session never opens again.
ClosedIsFinal == DOMAIN aux_closed \cap DOMAIN open = {}

\* LAW F2 TablesKeepClosed: after each epoch the table of every mode has each closed session's row.
TablesKeepClosed ==
  NothingNew => \A m \in Modes, id \in DOMAIN aux_closed :
    id \in DOMAIN table[m] /\ table[m][id] = aux_closed[id].row

\* LAW F3 StateIsBounded: after each epoch the state holds only sessions with end + Delta > W, and
\* nothing of others.
StateIsBounded == NothingNew => /\ \A id \in DOMAIN open : ClosesAt(id) > w
                                /\ shown = DOMAIN open /\ gone = {}

\* LAW F4 CorrectionsAreBounded: an id is put again after its end at most once per row admitted to it
\* in [end, end + Delta).
CorrectionsAreBounded == \A id \in DOMAIN aux_puts : aux_puts[id].corrections <= aux_puts[id].after

\* LAW E1 AppendAtClose: append mode shows exactly the sessions closed before the last cut.
AppendAtClose == Over(table["append"], closing) = ClosedRows

\* LAW E2 UpdateWhatWasTouched: each epoch's outbox in update mode has one row for each id that had a
\* row admitted or merged into it, and a tombstone for each id shown before that is no longer the id of
\* a session; never both for one id.
UpdateWhatWasTouched ==
  [][epoch' # epoch =>
       \A result \in {Result} :
         /\ Outbox("update") = Only(result, {id \in DOMAIN result :
              \E r \in aux_new : r[1] = id[1] /\ id[2] <= r[2] /\ r[2] < result[id].end})
         /\ Tombs("update") = DOMAIN table["update"] \ DOMAIN result]_vars

\* LAW E2 UpdateIsWhole: after each epoch the table of update mode is the sessions so far.
UpdateIsWhole == NothingNew => table["update"] = Result

\* LAW E3 CompleteIsWhole: after each epoch the table of complete mode is the sessions so far.
CompleteIsWhole == NothingNew => table["complete"] = Result

\* LAW E4 DrainedTablesAgree: after a drain and its epoch the table is the same in all three modes: the
\* sessions of the admitted rows.
DrainedTablesAgree == cutW = END => \A m \in Modes : table[m] = Result

\* A bound for models of many rows: no row comes twice.
OnceEach == \A r \in DOMAIN aux_rows : aux_rows[r] = 1

\* Witness: three sessions that were shown become one in one epoch (must be reached).
NeverThreeInOne == Cardinality(gone) < 2

\* Witness: a session that was shown is extended to an earlier start (must be reached).
NeverEarlier == gone = {} \/ \E id \in DOMAIN touched : id \in shown
=============================================================================
