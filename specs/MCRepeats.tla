------------------------------ MODULE MCRepeats ------------------------------
(* Small choices of rows for Repeats. *)
EXTENDS Repeats
\* One partition: three rows, each any.
AnyThree == << [n \in 1..3 |-> RowsOf({0, 1, 2, 3, Bad}, {1, 2})] >>
\* Two partitions, with rows of one id.
TwoLogs == << [n \in 1..2 |-> RowsOf({0, 2, 3}, {1})], [n \in 1..2 |-> RowsOf({0, 1, 3, Bad}, {1})] >>
\* Two rows of one id, with different times.
Unlike == << << OneRow(0, 1) >>, << OneRow(1, 1) >> >>
Nil == {}
FirstOnly == {<<1, 1>>}
=============================================================================
