---------------------------- MODULE MCCheckpoint ----------------------------
(* Logs with late rows, and orders of an epoch's steps, right and wrong. *)
EXTENDS Checkpoint
\* In the order of the offsets 0 is late, and [2, 4) closes before the drain.
LogLate == << <<2, 0, 4>>, <<4>> >>
LogTwo == << <<2, 0>>, <<3>> >>
LogShort == << <<2>>, <<3>> >>
LogOne == << <<2, 5>> >>
LogThree == << <<2, 0>>, <<4>> >>
LogTiny == << <<2>> >>

Right == <<"state", "outbox", "manifest", "pointer", "source">>
Short == <<"files", "manifest", "pointer", "source">>
Shorter == <<"files", "manifest">>

PointerFirst == <<"files", "pointer", "manifest", "source">>
ManifestFirst == <<"manifest", "files", "pointer", "source">>
SourceFirst == <<"files", "source", "manifest", "pointer">>
SinkBefore == <<"files", "sink write", "manifest">>
SinkAfter == <<"files", "manifest", "sink write">>
=============================================================================
