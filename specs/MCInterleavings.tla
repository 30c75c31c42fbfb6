-------------------------- MODULE MCInterleavings --------------------------
(* Small logs for Interleavings. *)
EXTENDS Interleavings
\* Three partitions, one with three rows.
ThreeOneOne == << <<{2, 4}, {0, 2, Bad}, {0, 2, 4}>>, <<{0, 3}>>, <<{1, 3}>> >>
\* Two partitions with two rows each.
TwoAndTwo == << <<{0, 2, 4}, {0, 2, 4, Bad}>>, <<{0, 3}, {0, 1, 3}>> >>
\* One partition.
OneLog == << <<{0, 2, 4}, {0, 2, 4}>> >>
=============================================================================
