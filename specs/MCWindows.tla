----------------------------- MODULE MCWindows -----------------------------
(* Small sets of integers for Windows; a .cfg cannot write negative ones. *)
EXTENDS Windows
Around == {-3, -1, 0, 1}
OneTime == {0}
Forward == {0, 1, 2}
MarksAround == {-2, 0, 1}
MarksNear == {0, 1}
MarksForward == {1, 2, 3}
OneNumber == {1}
Mixed == {-2, 1, 3}
=============================================================================
