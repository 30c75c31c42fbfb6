------------------------------- MODULE MCDisk -------------------------------
(* The order of a commit, and orders that are wrong. *)
EXTENDS Disk
Good == <<"make folder", "sync root", "write data", "sync data", "sync folder",
          "write manifest", "sync manifest", "link manifest", "sync folder", "announce">>
NoFolderSync == <<"make folder", "sync root", "write data", "sync data",
          "write manifest", "sync manifest", "link manifest", "sync folder", "announce">>
NoLastSync == <<"make folder", "sync root", "write data", "sync data", "sync folder",
          "write manifest", "sync manifest", "link manifest", "announce">>
InPlace == <<"make folder", "sync root", "write data", "sync data", "sync folder",
          "write manifest in place", "sync manifest", "sync folder", "announce">>
=============================================================================
