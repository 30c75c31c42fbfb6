--------------------------- MODULE Interleavings ---------------------------
(***************************************************************************)
(* Room: watermark.  The same logs, read in every interleaving and cut in   *)
(* every way: what of it shows in the rows that are admitted in the end.    *)
(*                                                                         *)
(* Models: Watermark over logs that are chosen first, all the small ones;   *)
(* partitions that are fixed, which means assigned before the first row, or *)
(* that are added at any time; a drain after the last row.                  *)
(* Leaves out: removals, the guard; the table, since after a drain it is    *)
(* the aggregates of the admitted rows, in any order (G4 and E4, Windows).  *)
(***************************************************************************)
EXTENDS Watermark
CONSTANT Assigning      \* "fixed"; wrong, for the theorems: "any_time"

\* The logs: of each partition the event times of its rows.
VARIABLE log
LogsOf(p) == {l \in [DOMAIN Choices[p] -> UNION {Choices[p][i] : i \in DOMAIN Choices[p]}] :
                \A i \in DOMAIN l : l[i] \in Choices[p][i]}
Logs == {l \in [Parts -> UNION {LogsOf(p) : p \in Parts}] : \A p \in Parts : l[p] \in LogsOf(p)}
LogTypeInv == \A p \in Parts : log[p] \in LogsOf(p)

InterleavingsTypeInv == WatermarkTypeInv /\ LogTypeInv

InitLog == Init /\ log \in Logs

-----------------------------------------------------------------------------
\* System and environment: those steps of Watermark that go by the logs.

Fixed == assigned = Parts
TakeLog(p) == /\ Assigning = "fixed" => Fixed
              /\ Take(p)
              /\ aux_judged'.et = log[p][accepted[p] + 1]
              /\ UNCHANGED log
CutLog == Cut /\ UNCHANGED log
AddLog(p) == Add(p) /\ UNCHANGED log
AskLog == Fixed /\ Unread(Parts) = {} /\ Ask /\ UNCHANGED log
DrainLog == Drain /\ UNCHANGED log

NextLog == (\E p \in Parts : TakeLog(p) \/ AddLog(p)) \/ CutLog \/ AskLog \/ DrainLog
SpecLog == InitLog /\ [][NextLog]_<<vars, log>>

-----------------------------------------------------------------------------
\* What the logs say, without any run.

Valid == {<<p, i>> \in UNION {{p} \X DOMAIN log[p] : p \in Parts} : log[p][i] # Bad}

\* Rows more than delta behind an earlier row of their own log: no order between logs is in it.
BehindTheirOwn == {r \in Valid : \E j \in 1..(r[2] - 1) :
                     <<r[1], j>> \in Valid /\ log[r[1]][r[2]] < log[r[1]][j] - Delay}

\* The late rows when the partitions are read one after another, without a cut.
RECURSIVE OneByOne(_)
OneByOne(p) == IF p \notin Parts THEN << >> ELSE [i \in DOMAIN log[p] |-> <<p, i>>] \o OneByOne(p + 1)
Row(s, p, et) ==
  LET m == [s.maxEt EXCEPT ![p] = Max2(@, et)]
      candidate == IF \E q \in Parts : m[q] = NEVER THEN NEVER ELSE MinOf({m[q] : q \in Parts}) - Delay
  IN [maxEt |-> m,
      w |-> IF Update = "row" THEN Max2(s.w, candidate) ELSE s.w,
      isLate |-> CASE LateRule = "window"    -> EndOf(StartOf(et)) + Grace <= s.w
                   [] LateRule = "partition" -> et < s.w \/ et < s.maxEt[p] - Delay
                   [] OTHER                  -> et < s.w,
      late |-> s.late]
RECURSIVE LateIn(_, _)
LateIn(s, rows) ==
  IF rows = << >> THEN s.late
  ELSE LET r == Head(rows)
       IN IF r \notin Valid THEN LateIn(s, Tail(rows))
          ELSE The({LateIn([next EXCEPT !.late = IF next.isLate THEN @ \cup {r} ELSE @], Tail(rows))
                    : next \in {Row(s, r[1], log[r[1]][r[2]])}})
LateOneByOne == LateIn([maxEt |-> [p \in Parts |-> NEVER], w |-> NEVER, isLate |-> FALSE, late |-> {}],
                       OneByOne(1))

Admitted == Valid \ lateLane

-----------------------------------------------------------------------------
\* Laws.

\* LAW T8 AdmittedByLogs: after a drain the admitted rows are those that are at most delta behind
\* each earlier row of their own log. That is a function of the logs, so no cut and no interleaving
\* shows in it, nor in the table, which is their aggregates.
AdmittedByLogs == phase = "drained" => Admitted = Valid \ BehindTheirOwn

\* LAW T8 OrderNeverShows: after a drain the admitted rows are those of another run over the same
\* logs: partition after partition, without a cut.
OrderNeverShows == phase = "drained" => Admitted = Valid \ LateOneByOne

\* LAW T5 NoneLateInBound: where no row is more than delta behind the maximum of its own log, no row
\* is late, whatever the rule and the interleaving.
NoneLateInBound == lateLane # {} => BehindTheirOwn # {}

\* Witness: rows are admitted and late, and W has risen in a drained run (must be reached).
NeverBoth == ~(phase = "drained" /\ Admitted # {} /\ lateLane # {} /\ aux_best > NEVER)
=============================================================================
