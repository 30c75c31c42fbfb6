------------------------------ MODULE Calendar ------------------------------
(***************************************************************************)
(* Room: windows.  Which calendar window an instant belongs to.             *)
(*                                                                         *)
(* Models: a zone in miniature: a distance from UTC that changes at some    *)
(* instants; every zone of two changes; local units that begin at given     *)
(* local times, so that days, weeks and months are one thing; hours.  Days  *)
(* of 4 moments and changes by 1 have all that days of 24 hours have: days  *)
(* of 3 and of 5, a midnight that the clock jumps over, and one that it     *)
(* shows twice.                                                             *)
(* Leaves out: real zones and months; the line is cut off at both ends, and *)
(* the laws look at its middle.                                             *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Unit,        \* "day": units begin at LocalStarts; "hour": they have HourSize moments
          LocalStarts, \* a sequence of local times, from before the line to beyond it
          HourSize,
          Offsets,     \* offsets of the windows
          Distances,   \* distances from UTC
          From, To,    \* the middle of the line
          Margin,      \* how far the line goes on at both ends
          Rule         \* "law"; wrong: "fixed" (as long as the local unit), "label" (a stretch of one
                       \* local unit), "truncate" (the unit of a negative local time is the next one)

Line == (From - Margin)..(To + Margin)
Middle == From..To
Zones == {[t \in Line |-> IF t < c[1] THEN d[1] ELSE IF t < c[2] THEN d[2] ELSE d[3]] :
            c \in {x \in Middle \X Middle : x[1] < x[2]}, d \in Distances \X Distances \X Distances}

\* The zone: at each instant a distance from UTC.
VARIABLE zone
ZoneTypeInv == zone \in [Line -> Distances]

\* The offset of the windows.
VARIABLE offset
OffsetTypeInv == offset \in Offsets

\* Of each unit the first instant whose local time has reached its start.
VARIABLE first
FirstTypeInv == \A n \in DOMAIN first : first[n] \in Line \cup {To + Margin + 1}

\* The window of each instant, and the number of its unit.
VARIABLE window
WindowTypeInv == \A t \in Middle : window[t].start \in Int /\ window[t].end \in Int

vars == <<zone, offset, first, window>>
CalendarTypeInv == ZoneTypeInv /\ OffsetTypeInv /\ FirstTypeInv /\ WindowTypeInv

-----------------------------------------------------------------------------
\* Days, weeks and months.

Local(t) == t + zone[t]
Units == DOMAIN LocalStarts
Start(n) == LocalStarts[n] + offset

\* The line's end stands for all that is beyond it.
First(n) == MinOf({t \in Line : Local(t) >= Start(n)} \cup {To + Margin + 1})

\* The unit that the local time of t lies in, as the clock shows it.
Shown(t) == IF Rule = "truncate" /\ Local(t) < 0 THEN MinOf({n \in Units : Start(n) >= Local(t)})
            ELSE MaxOf({n \in Units : Start(n) <= Local(t)})

\* From the unit that is shown on to the last one that was reached: a clock that was put back shows an old
\* unit in the window of a newer one.
RECURSIVE Reached(_, _)
Reached(n, t) == IF first[n + 1] <= t THEN Reached(n + 1, t) ELSE n

\* The longest stretch of instants around t with the mark that t has.
RECURSIVE Since(_, _)
Since(mark, t) == IF t - 1 \in Line /\ mark[t - 1] = mark[t] THEN Since(mark, t - 1) ELSE t
RECURSIVE Until(_, _)
Until(mark, t) == IF t + 1 \in Line /\ mark[t + 1] = mark[t] THEN Until(mark, t + 1) ELSE t + 1
Stretch(unit, mark, t) == [unit |-> unit, start |-> Since(mark, t), end |-> Until(mark, t)]

DayAt(t) ==
  The({CASE Rule = "label" -> Stretch(n, [u \in Line |-> Shown(u)], t)
         [] Rule = "fixed" -> [unit |-> n, start |-> t - (Local(t) - Start(n)),
                               end |-> t - (Local(t) - Start(n + 1))]
         [] OTHER          -> The({[unit |-> r, start |-> first[r], end |-> first[r + 1]]
                                   : r \in {Reached(n, t)}})
       : n \in {Shown(t)}})

-----------------------------------------------------------------------------
\* Hours.

HourOf(t) == (Local(t) - offset) \div HourSize
Mark(t) == IF Rule = "label" THEN <<HourOf(t)>> ELSE <<HourOf(t), zone[t]>>
HourAt(t) == Stretch(HourOf(t), [u \in Line |-> Mark(u)], t)

Init == /\ zone \in Zones
        /\ offset \in Offsets
        /\ first = [n \in Units |-> First(n)]
        /\ window = [t \in Middle |-> IF Unit = "hour" THEN HourAt(t) ELSE DayAt(t)]
Next == UNCHANGED vars
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* Laws.

\* LAW G5 EachInstantOnce: the windows part the line: each instant is in one, and in no other.
EachInstantOnce ==
  \A t \in Middle :
    /\ window[t].start <= t /\ t < window[t].end
    /\ \A u \in Middle : window[u].start <= t /\ t < window[u].end => window[u] = window[t]

\* LAW G5 StartsAtFirst: a window starts at the first instant whose local time has reached its unit's start,
\* and ends where the next one starts. A midnight that is jumped over starts where the clock lands.
StartsAtFirst ==
  \A t \in Middle :
    /\ \E n \in Units : window[t].start = first[n]
    /\ \E n \in Units : window[t].end = first[n]
    /\ \A n \in Units : first[n] <= window[t].start \/ window[t].end <= first[n]

\* LAW G5 OneWindowPerUnit: a midnight that is shown twice starts one window, not two.
OneWindowPerUnit ==
  \A t, u \in Middle : window[t].unit = window[u].unit => window[t] = window[u]

\* The clock shows the start of unit n.
Shows(n) == first[n] \in Line /\ Local(first[n]) = Start(n)

\* LAW G5 LengthFollowsClock: between two starts that the clock shows there are the moments of the local unit,
\* less those that the clock was put forward, and more those that it was put back.
LengthFollowsClock ==
  \A n \in {m \in Units : m + 1 \in Units /\ Shows(m) /\ Shows(m + 1)} :
    \A t \in Middle \cap (first[n]..(first[n + 1] - 1)) :
      window[t].end - window[t].start
        = Start(n + 1) - Start(n) + zone[first[n]] - zone[first[n + 1]]

\* LAW G5 StartsIncrease: the starts of two units are apart, unless the clock jumps over the whole first
\* one, which then has no window.
StartsIncrease ==
  \A n \in {m \in Units : first[m] \in Middle} :
    \/ first[n] < first[n + 1]
    \/ first[n] = first[n + 1] /\ Local(first[n] - 1) < Start(n) /\ Local(first[n]) >= Start(n + 1)

\* LAW G5 HourIsOneDistance: a window of an hour has one local hour and one distance from UTC, and so no more
\* moments than an hour; the instants beside it differ in one of the two.
HourIsOneDistance ==
  \A t \in Middle :
    /\ \A u \in window[t].start..(window[t].end - 1) : HourOf(u) = HourOf(t) /\ zone[u] = zone[t]
    /\ window[t].end - window[t].start <= HourSize
    /\ \A u \in {window[t].start - 1, window[t].end} : HourOf(u) # HourOf(t) \/ zone[u] # zone[t]

\* Witness: a zone in which the clock jumps over one midnight and shows another twice (must be reached).
JumpedOver(n) == first[n] \in Middle /\ Local(first[n]) > Start(n)
ShownTwice(n) == Cardinality({t \in Middle : Local(t) = Start(n)}) = 2
NeverBoth == ~((\E n \in Units : JumpedOver(n)) /\ (\E n \in Units : ShownTwice(n)))
=============================================================================
