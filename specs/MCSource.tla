------------------------------ MODULE MCSource ------------------------------
(* Logs for Source: holes in the offsets, ties and disorder in the order column. *)
EXTENDS Source
Row(o, k) == [offset |-> o, order |-> k]
MCLogs == {
  << <<Row(0, 1), Row(1, 0)>>, <<Row(0, 1), Row(3, 2)>> >>,
  << <<Row(0, 2), Row(4, 0)>>, <<Row(1, 1), Row(2, 1)>> >>,
  << <<Row(2, 3), Row(7, 4)>>, <<Row(0, 3)>> >> }
=============================================================================
