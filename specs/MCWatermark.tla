---------------------------- MODULE MCWatermark ----------------------------
(* Small choices of rows for Watermark. *)
EXTENDS Watermark
\* Any two rows of each of two partitions.
AnyTwo == << <<{0, 1, 2, Bad}, {0, 1, 2, Bad}>>, <<{-1, 1, 3, Bad}, {-1, 1, 3, Bad}>> >>
\* The last rows leave windows behind.
Rising == << <<{0, 1, Bad}, {5, 6}>>, <<{0, 1, Bad}, {5, 6}>> >>
\* Times on both sides of a window's end, and of its end and a grace of 1.
AroundEnds == << <<{0, 2, 4, Bad}, {1, 2, 3}>>, <<{-1, 3, 5}, {1, 4}>> >>
AroundEndsLess == << <<{0, 4, Bad}, {1, 3}>>, <<{-1, 5}, {1, 4}>> >>
\* One partition, whose second row leaves the first one's window behind.
Leaving == << <<{0, 1, Bad}, {5, 6}>> >>
\* A batch whose last row is far ahead of its first.
Steep == << <<{1}, {4}>>, <<{4}>> >>
\* Two rows of the first partition are late with one time.
LateTwice == << <<{4}, {0}, {0}>>, <<{4}>> >>
=============================================================================
