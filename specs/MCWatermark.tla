---------------------------- MODULE MCWatermark ----------------------------
(* Small choices of rows for Watermark. *)
EXTENDS Watermark
\* Any two rows of each of two partitions.
AnyTwo == << <<{0, 1, 2, Bad}, {0, 1, 2, Bad}>>, <<{-1, 1, 3, Bad}, {-1, 1, 3, Bad}>> >>
\* The last rows leave windows behind.
Rising == << <<{0, 1, Bad}, {5, 6}>>, <<{0, 1, Bad}, {5, 6}>> >>
\* Two rows of the first partition are late with one time.
LateTwice == << <<{4}, {0}, {0}>>, <<{4}>> >>
=============================================================================
