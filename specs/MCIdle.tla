------------------------------- MODULE MCIdle -------------------------------
(* Small choices of rows for Idle. *)
EXTENDS Idle
\* Two partitions, the first far ahead at first.
TwoEach == << <<{3, Bad}, {1}>>, <<{0}, {2, Bad}>> >>
\* One row of each.
OneEach == << <<{1, 3, Bad}>>, <<{0, 2}>> >>
\* Three partitions, of which two fall silent.
Three == << <<{1}>>, <<{0}>>, <<{4}>> >>
=============================================================================
