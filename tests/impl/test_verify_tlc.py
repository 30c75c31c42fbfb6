"""TLC is run and understood: every kind of end, also those where exit code and words disagree."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from thund_conformance.verify import tlc
from thund_conformance.verify.archive import with_archive
from thund_conformance.verify.environment import read_environment
from thund_conformance.verify.java import Toolchain, find_toolchain
from thund_conformance.verify.processes import Processes
from thund_conformance.verify.report import trace_rows
from thund_conformance.verify.values import Function, ModelValue, State, read_value, write_value

COUNTER = r"""---- MODULE Counter ----
EXTENDS Naturals, Sequences, TLC
CONSTANT N
VARIABLES x, f
vars == <<x, f>>
Init == x = 0 /\ f = [a |-> <<>>, b |-> 7]
Inc == x < N /\ x' = x + 1 /\ f' = [f EXCEPT !.b = x]
Reset == x = N /\ x' = 0 /\ UNCHANGED f
Spec == Init /\ [][Inc]_vars
Fair == Spec /\ WF_vars(Inc)
Round == Init /\ [][Inc \/ Reset]_vars /\ WF_vars(Inc \/ Reset)
TypeInv == x \in 0..N
Small == x < 3
Positive == x > 0
ByTwo == [][x' = x + 2]_x
Abstract == INSTANCE Abstract WITH y <- x
Refines == Abstract!Spec
Stops == <>[](x = N)
Never == <>(x = 100)
Boom == x < 2 \/ Assert(FALSE, "boom")
Chatty == PrintT(<<"at", x>>)
====
"""
ABSTRACT = r"""---- MODULE Abstract ----
EXTENDS Naturals
VARIABLE y
Spec == y = 0 /\ [][y' = y + 2]_y
====
"""
ASSUMED = "---- MODULE Assumed ----\nEXTENDS Counter\nASSUME N > 100\n====\n"
UNPARSED = "---- MODULE Unparsed ----\nEXTENDS Counter\nFoo == /\\\n====\n"
VALUES: State = {
    "text": 'a"b\\c\n\td/ é',
    "numbers": (-3, frozenset({1, 2, 9}), frozenset()),
    "empty": (),
    "pairs": Function({ModelValue("m1"): Function({0: True, 2: ("a",)}), ModelValue("m2"): ()}),
    "record": Function({"a": 1, "b_1": frozenset({("x", 1), ("y", 2)})}),
}
NAMES = ", ".join(VALUES)
CONJUNCTS = " /\\ ".join(f"{name} = {write_value(value)}" for name, value in VALUES.items())
PRINTER = f"""---- MODULE Printer ----
EXTENDS Integers, Sequences, TLC
CONSTANTS m1, m2
VARIABLES {NAMES}
Init == {CONJUNCTS}
Next == UNCHANGED <<{NAMES}>>
Never == empty # <<>>
====
"""
N = "CONSTANT N = 4\n"
CASES: dict[str, tuple[str, str, bool]] = {
    "ok": ("Counter", N + "SPECIFICATION Fair INVARIANT TypeInv Chatty PROPERTY Stops", False),
    "invariant": ("Counter", N + "SPECIFICATION Spec INVARIANT TypeInv Small", False),
    "initial": ("Counter", N + "SPECIFICATION Spec INVARIANT Positive", False),
    "action": ("Counter", N + "SPECIFICATION Spec PROPERTY ByTwo", False),
    "refines": ("Counter", N + "SPECIFICATION Spec PROPERTY Refines", False),
    "stutters": ("Counter", N + "SPECIFICATION Fair PROPERTY Never", False),
    "lasso": ("Counter", N + "SPECIFICATION Round PROPERTY Stops", False),
    "deadlock": ("Counter", N + "SPECIFICATION Spec", True),
    "assumption": ("Assumed", N + "SPECIFICATION Spec", False),
    "evaluation": ("Counter", N + "SPECIFICATION Spec INVARIANT Boom", False),
    "parse": ("Unparsed", N + "SPECIFICATION Spec", False),
    "undefined": ("Counter", N + "SPECIFICATION Spec INVARIANT Missing", False),
    "unsound": ("Counter", N + "SPECIFICATION Fair PROPERTY Stops CONSTRAINT Small", False),
    "values": ("Printer", "CONSTANTS m1 = m1 m2 = m2 INIT Init NEXT Next INVARIANT Never", False),
}


@pytest.fixture(scope="module")
def tools() -> Toolchain:
    return find_toolchain(read_environment())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("specs")
    texts = {"Counter": COUNTER, "Abstract": ABSTRACT, "Assumed": ASSUMED, "Unparsed": UNPARSED}
    for name, text in {**texts, "Printer": PRINTER}.items():
        (folder / f"{name}.tla").write_text(text, encoding="utf-8")
    for name, (_, cfg, _) in CASES.items():
        (folder / f"{name}.cfg").write_text(cfg)
    endless = "CONSTANT N = 1000000000\nSPECIFICATION Spec"
    (folder / "endless.cfg").write_text(endless)
    return folder


@pytest.fixture(scope="module")
def runs(tools: Toolchain, folder: Path) -> dict[str, tlc.Run]:
    """Every case once, several at a time: that they do not collide is part of the test."""
    with Processes() as processes, ThreadPoolExecutor(max_workers=4) as pool:

        def run(name: str) -> tlc.Run:
            module, _, deadlock = CASES[name]
            job = tlc.Job(folder, module, f"{name}.cfg", deadlock=deadlock)
            return tlc.run_tlc(tools, job, processes)

        return dict(zip(CASES, pool.map(run, CASES), strict=True))


@pytest.mark.parametrize(
    ("name", "verdict", "violated"),
    [
        ("ok", tlc.OK, None),
        ("invariant", tlc.INVARIANT, "Small"),
        ("initial", tlc.INVARIANT, "Positive"),
        ("action", tlc.PROPERTY, "ByTwo"),
        ("refines", tlc.PROPERTY, "line 4, col 18 to line 4, col 33 of module Abstract"),
        ("stutters", tlc.TEMPORAL, None),
        ("lasso", tlc.TEMPORAL, None),
        ("deadlock", tlc.DEADLOCK, None),
        ("assumption", tlc.ASSUMPTION, "line 3, col 8 to line 3, col 14 of module Assumed"),
        ("evaluation", tlc.ERROR, None),
        ("parse", tlc.ERROR, None),
        ("undefined", tlc.ERROR, None),
        ("unsound", tlc.ERROR, None),
    ],
)
def test_required_each_end_is_told_apart(
    runs: dict[str, tlc.Run], name: str, verdict: str, violated: str | None
) -> None:
    assert (runs[name].verdict, runs[name].violated) == (verdict, violated), runs[name].detail


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("evaluation", "boom"),
        ("parse", "Could not parse module Unparsed"),
        ("undefined", "Missing"),
        ("unsound", "constraints during liveness checking"),
    ],
)
def test_required_an_error_says_what_tlc_said(
    runs: dict[str, tlc.Run], name: str, words: str
) -> None:
    assert words in runs[name].detail


def test_required_counts_are_read(runs: dict[str, tlc.Run]) -> None:
    assert runs["ok"].counts == tlc.Progress(generated=5, distinct=5, queued=0)


def test_required_a_trace_shows_what_changed(runs: dict[str, tlc.Run]) -> None:
    trace = runs["invariant"].trace
    assert trace is not None
    assert trace_rows(trace) == [
        ("1", "Initial predicate", [("f", "[a |-> <<>>, b |-> 7]"), ("x", "0")]),
        ("2", "Inc", [("f.b", "0"), ("x", "1")]),
        ("3", "Inc", [("f.b", "1"), ("x", "2")]),
        ("4", "Inc", [("f.b", "2"), ("x", "3")]),
    ]


def test_required_an_initial_state_is_a_trace(runs: dict[str, tlc.Run]) -> None:
    trace = runs["initial"].trace
    assert trace is not None
    assert [state.values["x"] for state in trace.states] == [0]


def test_required_an_endless_behaviour_says_how_it_goes_on(runs: dict[str, tlc.Run]) -> None:
    stutters, lasso = runs["stutters"].trace, runs["lasso"].trace
    assert stutters is not None
    assert (stutters.stutters, stutters.back_to) == (True, None)
    assert trace_rows(stutters)[-1][1] == "stays so for ever"
    assert lasso is not None
    assert lasso.back_to is not None
    assert trace_rows(lasso)[-1][1] == f"goes back to state {lasso.back_to}"


def test_required_what_we_write_tlc_reads_and_what_it_prints_we_read(
    runs: dict[str, tlc.Run],
) -> None:
    trace = runs["values"].trace
    assert trace is not None, runs["values"].detail
    assert trace.states[0].values == VALUES


def test_required_what_a_spec_prints_is_kept(runs: dict[str, tlc.Run]) -> None:
    assert [read_value(line) for line in runs["ok"].printed] == [("at", n) for n in range(5)]


def test_required_a_run_leaves_nothing_behind(
    tools: Toolchain, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither beside the specs nor in the temporary folder; and the time limit holds."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(folder.iterdir())
    with Processes() as processes:
        job = tlc.Job(folder, "Counter", "endless.cfg", seconds_max=1.0)
        run = tlc.run_tlc(tools, job, processes)
        assert processes.ids() == ()
    assert (run.verdict, run.exit_code) == (tlc.TIMEOUT, -9)
    assert "after 1 s" in run.detail
    assert sorted(folder.iterdir()) == before
    assert list(tmp_path.iterdir()) == []


def test_required_all_that_is_written_goes_to_the_scratch_folder(
    tools: Toolchain, folder: Path
) -> None:
    """The states and the unpacked standard modules: runs collide on either."""
    job = tlc.Job(folder, "Counter", "ok.cfg")
    one, other = (set(tlc.tlc_command(tools, job, scratch)) for scratch in ("one", "other"))
    assert one - other == {"-Djava.io.tmpdir=one", "one/states"}


def test_required_an_archive_of_classes_changes_no_answer(
    tools: Toolchain, folder: Path, tmp_path: Path, runs: dict[str, tlc.Run]
) -> None:
    with Processes() as processes:
        faster = with_archive(tools, tmp_path, processes)
        run = tlc.run_tlc(faster, tlc.Job(folder, "Counter", "stutters.cfg"), processes)
    assert faster.options == (f"-XX:SharedArchiveFile={tmp_path}/classes.jsa",)
    assert (run.verdict, run.counts, run.trace) == (
        runs["stutters"].verdict,
        runs["stutters"].counts,
        runs["stutters"].trace,
    )


def test_required_a_java_that_cannot_archive_goes_on_without(tmp_path: Path) -> None:
    old = _pretender(tmp_path, "echo 'Unrecognized VM option' >&2; exit 1")
    with Processes() as processes:
        assert with_archive(old, tmp_path, processes) == old


def test_required_progress_is_told_while_it_runs(tools: Toolchain, folder: Path) -> None:
    """The first count comes when TLC has worked for some seconds; it ends the run here."""
    told: list[tlc.Progress] = []
    with Processes() as processes:

        def tell(progress: tlc.Progress) -> None:
            told.append(progress)
            processes.close()

        job = tlc.Job(folder, "Counter", "endless.cfg", seconds_max=60.0)
        run = tlc.run_tlc(tools, job, processes, tell)
    assert told[0].distinct > 1000
    assert run.verdict == tlc.ERROR


def test_required_an_error_in_the_listener_ends_the_jvm(tmp_path: Path) -> None:
    text = "Progress(1): 5 states generated, 5 distinct states found, 3 states left on queue."
    (tmp_path / "progress.txt").write_text(_framed("2200:0", text))
    tools = _pretender(tmp_path, "cat progress.txt; exec sleep 60")
    with Processes() as processes:

        def fail(_: tlc.Progress) -> None:
            assert len(processes.ids()) == 1
            raise KeyboardInterrupt

        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            tlc.run_tlc(tools, tlc.Job(tmp_path, "M", "M.cfg"), processes, fail)
        assert processes.ids() == ()
        assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "no verdict"),
        ("echo 'Error: Could not find or load main class' >&2; exit 1", "Could not find"),
        ("echo '@!@!@STARTMSG 2193:0 @!@!@'; echo '@!@!@ENDMSG 2193 @!@!@'", "no verdict"),
        ("cat ok.txt; exit 3", "exit code 3"),
        ("cat ok.txt ok.txt", "no verdict"),
        ("sed 's/0 states left/4 states left/' ok.txt", "queued=4"),
        ("sed 's/5 distinct/0 distinct/' ok.txt", "distinct=0"),
        ("cat violated.txt", "exit code 0 does not go with"),
        ("cat violated.txt ok.txt; exit 11", "exit code 11 does not go with"),
        ("cat violated.txt violated.txt ok.txt; exit 12", "Invariant Small"),
        ("head -n 2 violated.txt; exit 12", "exit code 12 does not go with"),
    ],
)
def test_required_no_part_of_the_answer_is_trusted_alone(
    tmp_path: Path, script: str, words: str
) -> None:
    """A program that only looks like TLC: exit code, messages and counts must tell one story."""
    stats = "5 states generated, 5 distinct states found, 0 states left on queue."
    (tmp_path / "ok.txt").write_text(_framed("2193:0", "No error") + _framed("2199:0", stats))
    (tmp_path / "ok.txt").open("a").write(_framed("2186:0", "Finished"))
    (tmp_path / "violated.txt").write_text(_framed("2110:1", "Invariant Small is violated."))
    tools = _pretender(tmp_path, script)
    with Processes() as processes:
        run = tlc.run_tlc(tools, tlc.Job(tmp_path, "M", "M.cfg"), processes)
    assert run.verdict == tlc.ERROR
    assert words in run.detail


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux lets a child die with its parent"
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_required_a_jvm_does_not_outlive_a_verification(tmp_path: Path, number: int) -> None:
    """Killed, or stopped by Ctrl-C, while two models run on two threads."""
    entry = """[[model]]
name = "{0}"
module = "Counter"
cfg = "{0}.cfg"
expect = "ok"
distinct = 1000000001
laws = []
seconds = 60
why = "It does not end."
"""
    (tmp_path / "Counter.tla").write_text(COUNTER)
    (tmp_path / "Abstract.tla").write_text(ABSTRACT)
    for name in "ab":
        (tmp_path / f"{name}.cfg").write_text("CONSTANT N = 1000000000\nSPECIFICATION Spec")
    (tmp_path / "models.toml").write_text(entry.format("a") + entry.format("b"))
    script = f"""
from pathlib import Path
from thund_conformance.verify.report import verify_models
verify_models(Path({str(tmp_path)!r}), jobs=2)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, env=environment
    ) as parent:
        handles = [os.pidfd_open(pid) for pid in _two_jvms_of(parent)]
        parent.send_signal(number)
        for handle in handles:
            assert select.select([handle], [], [], 20)[0], "a JVM outlived its parent"
            os.close(handle)
        assert parent.wait(20) in (-number, 1)


def _pretender(folder: Path, script: str) -> Toolchain:
    """A program that only looks like TLC."""
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return Toolchain(java=java, java_version="0", jar=folder / "none.jar")


def _two_jvms_of(parent: subprocess.Popen[bytes]) -> list[int]:
    """Wait until the parent has two children that run Java; it fails if it ends before."""
    handle = os.pidfd_open(parent.pid)
    while not select.select([handle], [], [], 0.05)[0]:
        jvms = [pid for pid in _children(parent.pid) if _program(pid) == "java"]
        if len(jvms) == 2:
            os.close(handle)
            return jvms
    raise AssertionError("it ended before two models ran")


def _children(parent: int) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _stat(pid)[1:2] == [str(parent)]]


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name: state, parent, ...; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


def _framed(code: str, text: str) -> str:
    number = code.partition(":")[0]
    return f"@!@!@STARTMSG {code} @!@!@\n{text}\n@!@!@ENDMSG {number} @!@!@\n"
