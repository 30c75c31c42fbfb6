-------------------------------- MODULE Disk --------------------------------
(***************************************************************************)
(* Room: checkpoint.  One commit on a local disk, and the power cut that    *)
(* may come at any moment of it.                                            *)
(*                                                                         *)
(* Models: a folder for the epoch, a data file, the manifest by temporary   *)
(* name and link; what the system still holds in memory; fsync of files and *)
(* folders; a power cut that keeps any part of what was not synced.         *)
(* Leaves out: several files (one stands for all), and what recovery does   *)
(* with them (Checkpoint).                                                  *)
(*                                                                         *)
(* A fact is something that a sync makes durable:                           *)
(*   folder    the epoch's name in state_root                               *)
(*   entry     the data file's name in the epoch's folder                   *)
(*   data      the data file's content                                      *)
(*   manifest  the manifest's content                                       *)
(*   name      the manifest's final name in the epoch's folder              *)
(***************************************************************************)
EXTENDS Values
CONSTANTS Steps,      \* the order in which a commit does its steps
          MaxCuts
Facts == {"folder", "entry", "data", "manifest", "name"}
\* What each step writes, and what each step makes durable.
Writes(step) == CASE step = "make folder"   -> {"folder"}
                  [] step = "write data"    -> {"entry", "data"}
                  [] step = "write manifest" -> {"manifest"}
                  [] step = "link manifest" -> {"name"}
                  [] step = "write manifest in place" -> {"manifest", "name"}
                  [] OTHER -> {}
Syncs(step) == CASE step = "sync root"     -> {"folder"}
                 [] step = "sync data"     -> {"data"}
                 [] step = "sync manifest" -> {"manifest"}
                 [] step = "sync folder"   -> {"entry", "name"}
                 [] OTHER -> {}

\* How many steps of the commit are done.
VARIABLE done
DoneTypeInv == done \in 0..Len(Steps)

\* Facts that hold in memory only.
VARIABLE cache
CacheTypeInv == cache \subseteq Facts

\* Facts on the disk.
VARIABLE disk
DiskTypeInv == disk \subseteq Facts

\* The commit was announced: credits went back, sinks may apply the outbox.
VARIABLE announced
AnnouncedTypeInv == announced \in BOOLEAN

\* "on" or "off"
VARIABLE power
PowerTypeInv == power \in {"on", "off"}

\* Power cuts so far.
VARIABLE aux_cuts
CutsTypeInv == aux_cuts \in 0..MaxCuts

vars == <<done, cache, disk, announced, power, aux_cuts>>
DiskTypesInv == /\ DoneTypeInv /\ CacheTypeInv /\ DiskTypeInv /\ AnnouncedTypeInv
                /\ PowerTypeInv /\ CutsTypeInv

Init == done = 0 /\ cache = {} /\ disk = {} /\ announced = FALSE /\ power = "on" /\ aux_cuts = 0

\* A name is there after a cut only if the folder that holds it is.
Committed(facts) == {"folder", "name"} \subseteq facts
Whole(facts) == {"entry", "data", "manifest"} \subseteq facts

\* System: the next step of the commit.
Step ==
  /\ power = "on" /\ done < Len(Steps)

  /\ LET step == Steps[done + 1] IN
     /\ cache' = (cache \cup (Writes(step) \ disk)) \ Syncs(step)
     /\ disk' = disk \cup (Syncs(step) \cap (cache \cup Writes(step)))
     /\ announced' = (announced \/ step = "announce")
  /\ done' = done + 1
  /\ UNCHANGED <<power, aux_cuts>>

\* Fault: the power is cut; any part of what was in memory reached the disk.
Cut ==
  /\ power = "on" /\ aux_cuts < MaxCuts

  /\ \E kept \in SUBSET cache : disk' = disk \cup kept
  /\ cache' = {} /\ power' = "off" /\ aux_cuts' = aux_cuts + 1
  /\ UNCHANGED <<done, announced>>

\* System: a new start.  It finds the epoch committed, or does it again under new file names.
Start ==
  /\ power = "off"

  /\ power' = "on"
  /\ IF Committed(disk) THEN done' = Len(Steps) /\ announced' = TRUE /\ UNCHANGED disk
     ELSE done' = 0 /\ disk' = disk \cap {"folder"} /\ UNCHANGED announced
  /\ UNCHANGED <<cache, aux_cuts>>

Next == Step \/ Cut \/ Start
Spec == Init /\ [][Next]_vars /\ WF_vars(Step) /\ WF_vars(Start)

\* LAW K10 CommittedIsWhole: after a power cut a manifest that has its name is readable, and so is every
\* file it names; a sync that is missing or comes too late breaks it.
\* LAW K2 CommittedIsWhole: the manifest appears under its name whole or not at all; written in place
\* it can be torn.
CommittedIsWhole == power = "off" /\ Committed(disk) => Whole(disk)

\* LAW K10 AnnouncedIsDurable: what was announced as committed is still committed after a power cut.
AnnouncedIsDurable == power = "off" /\ announced => Committed(disk)

\* LAW K2 CommitsInTheEnd: however often the power is cut, the epoch is committed in the end.
CommitsInTheEnd == <>[](announced /\ Committed(disk))

\* Witness: a cut leaves a folder without a manifest (must be reached).
NeverOrphan == ~(power = "off" /\ "folder" \in disk /\ ~Committed(disk))
=============================================================================
