------------------------------- MODULE Values -------------------------------
(***************************************************************************)
(* Small pure helpers that every other module shares: extremes, partial     *)
(* functions and sums.  It knows nothing of streams.                        *)
(*                                                                         *)
(* The(S) is how a value is bound once.  TLC evaluates LET and operator     *)
(* arguments by name inside primed and ENABLED contexts; taking the one     *)
(* element of {f(x) : x \in {expr}} forces expr to be evaluated first.      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

\* The watermark before any candidate, and after a drain; no event time of a model reaches them.
NEVER == -1000
END == 1000

Max2(a, b) == IF a >= b THEN a ELSE b
Min2(a, b) == IF a <= b THEN a ELSE b
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
The(S) == CHOOSE x \in S : TRUE

\* Partial functions.
Nothing == [x \in {} |-> 0]
With(f, k, v) == [x \in DOMAIN f \cup {k} |-> IF x = k THEN v ELSE f[x]]
Only(f, K) == [x \in DOMAIN f \cap K |-> f[x]]
Without(f, K) == [x \in DOMAIN f \ K |-> f[x]]
\* f with g laid over it: where both are defined g shows.
Over(f, g) == [x \in DOMAIN f \cup DOMAIN g |-> IF x \in DOMAIN g THEN g[x] ELSE f[x]]

RECURSIVE SumOver(_, _)
SumOver(f, S) == IF S = {} THEN 0
                 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + SumOver(f, S \ {x})
Sum(f) == SumOver(f, DOMAIN f)
=============================================================================
