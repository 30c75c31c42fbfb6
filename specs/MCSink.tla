------------------------------- MODULE MCSink -------------------------------
(* Outboxes for Sink: ids that are put, deleted and put again; a second generation. *)
EXTENDS Sink, TLC
Two == << << ("a" :> Put @@ "b" :> Put), ("a" :> Delete @@ "c" :> Put), ("b" :> Put) >>,
          << ("a" :> Put), ("b" :> Put) >> >>
One == << << ("a" :> Put @@ "b" :> Put), ("a" :> Delete @@ "c" :> Put), ("b" :> Delete @@ "a" :> Put) >> >>
=============================================================================
