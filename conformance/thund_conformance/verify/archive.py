"""Start the JVM faster: TLC's classes are loaded once, and kept in an archive for later starts.

It takes up to a third off each start, most where the Java came without an archive of its own. A
Java that cannot do it goes on without.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from thund_conformance.verify import tlc
from thund_conformance.verify.java import Toolchain
from thund_conformance.verify.processes import Processes

MODULE = r"""---- MODULE Warm ----
EXTENDS Integers, Sequences, FiniteSets, TLC
VARIABLES x, f
Init == x = 0 /\ f = [a |-> <<>>, b |-> {1}]
Step == x < 2 /\ x' = x + 1 /\ f' = [f EXCEPT !.a = Append(@, x), !.b = @ \cup {x}]
Spec == Init /\ [][Step]_<<x, f>> /\ WF_x(Step)
Inv == \A n \in f.b : n < 3 /\ Len(f.a) = x /\ Cardinality(f.b) > 0
Up == [][x' >= x]_x
Ends == <>(x = 2)
====
"""
CFG = "SPECIFICATION Spec\nINVARIANT Inv\nPROPERTIES Up Ends\n"
SECONDS_MAX = 60.0


def with_archive(toolchain: Toolchain, folder: Path, processes: Processes) -> Toolchain:
    """The toolchain with an archive of classes in `folder`, or as it was if that cannot be.

    A small run lists the classes it loads, then the JVM writes them down. (An archive written
    at the exit of a run needs one that came with the Java, and not every Java has that.)
    """
    (folder / "Warm.tla").write_text(MODULE, encoding="utf-8")
    (folder / "Warm.cfg").write_text(CFG, encoding="utf-8")
    classes, archive = folder / "classes.lst", folder / "classes.jsa"
    listing = replace(toolchain, options=(f"-XX:DumpLoadedClassList={classes}",))
    job = tlc.Job(folder, "Warm", "Warm.cfg", seconds_max=SECONDS_MAX)
    run = tlc.run_tlc(listing, job, processes)
    if run.verdict != tlc.OK or not classes.is_file():
        return toolchain
    with (folder / "dump.txt").open("wb") as errors:
        dump = processes.start(
            [
                *(str(toolchain.java), "-XX:+UseSerialGC", "-Xshare:dump"),
                *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={archive}"),
                *("-cp", str(toolchain.jar)),
            ],
            folder=folder,
            errors=errors,
        )
        assert dump.stdout is not None
        dump.stdout.read()
        failed = processes.finish(dump) != 0
    if failed or not archive.is_file():
        return toolchain
    return replace(toolchain, options=(f"-XX:SharedArchiveFile={archive}",))
