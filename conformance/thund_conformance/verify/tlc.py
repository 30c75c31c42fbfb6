"""Run TLC on one model and say what it found, from its messages, counts and exit code together.

It refuses to know what was expected: that is for `models.py`.
"""

from __future__ import annotations

import re
import shlex
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from thund_conformance.verify import messages as m
from thund_conformance.verify.java import Toolchain
from thund_conformance.verify.messages import Message, read_messages
from thund_conformance.verify.processes import Processes
from thund_conformance.verify.values import State, read_state

OK = "ok"
INVARIANT = "invariant"
PROPERTY = "property"
TEMPORAL = "temporal"
DEADLOCK = "deadlock"
ASSUMPTION = "assumption"
ERROR = "error"
TIMEOUT = "timeout"
VERDICTS = (OK, INVARIANT, PROPERTY, TEMPORAL, DEADLOCK, ASSUMPTION)
"""What TLC can say about a model; ERROR and TIMEOUT mean that it said nothing."""

HEAP_MB = 1024
LINES_KEPT_MAX = 2000

_VIOLATIONS = {
    m.ASSUMPTION_FALSE: (ASSUMPTION, 10),
    m.INVARIANT_FALSE_AT_START: (INVARIANT, 12),
    m.INVARIANT_FALSE: (INVARIANT, 12),
    m.PROPERTY_FALSE_AT_START: (PROPERTY, 13),
    m.ACTION_PROPERTY_FALSE: (PROPERTY, 13),
    m.TEMPORAL_PROPERTY_FALSE: (TEMPORAL, 13),
    m.DEADLOCK: (DEADLOCK, 11),
}
"""Per violation its verdict and the exit code that goes with it."""

_TELLING = (m.BEHAVIOUR_SO_FAR, m.COUNTEREXAMPLE)
"""Messages of severity error that only introduce a trace."""

_UNSOUND = (m.SYMMETRY_WITH_LIVENESS, m.CONSTRAINT_WITH_LIVENESS)
"""Warnings after which a verdict means nothing: both were seen to hide or invent violations."""

_TOTALS = re.compile(
    r"([\d,]+) states generated.*?, ([\d,]+) distinct states found.*?, ([\d,]+) states left"
)
_DEPTH = re.compile(r"search is (\d+)")
_STATE = re.compile(r"(\d+): <(.*?)>\n(.*)", re.DOTALL)
_BACK = re.compile(r"(\d+): Back to state")
_NAMED = re.compile(
    r"(?:Invariant|Action property|Property|Assumption) (.+?) is (?:violated|false)"
)
_NOISE = ("Parsing file ", "Semantic processing of module ")


@dataclass(frozen=True, slots=True)
class Job:
    """One call of TLC: which module and cfg, in which folder, within what bounds."""

    folder: Path
    module: str
    cfg: str
    deadlock: bool = False
    workers: int = 1
    seconds_max: float = 600.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts that TLC told while it was working."""

    generated: int
    distinct: int
    queued: int


@dataclass(frozen=True, slots=True)
class TraceState:
    """One state of a behaviour, and the action that led to it."""

    number: int
    action: str
    values: State


@dataclass(frozen=True, slots=True)
class Trace:
    """A behaviour that breaks something. It ends, or stutters, or goes back to a state."""

    states: tuple[TraceState, ...]
    back_to: int | None = None
    stutters: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What one call of TLC said.

    verdict: one of VERDICTS, ERROR or TIMEOUT. violated: the name TLC gave, which is a place
    (`line 3, col 8 …`) where it has none, and None for a temporal property. detail: its words.
    """

    verdict: str
    violated: str | None
    detail: str
    trace: Trace | None
    counts: Progress | None
    depth: int | None
    exit_code: int
    seconds: float
    printed: tuple[str, ...] = ()

    @property
    def distinct(self) -> int:
        """Distinct states found; 0 where TLC gave no totals."""
        return 0 if self.counts is None else self.counts.distinct


def tlc_command(toolchain: Toolchain, job: Job, scratch: str) -> list[str]:
    """The call of TLC, with `scratch` for all that it writes.

    Two calls collide unless each has a folder of its own: the standard modules are unpacked
    under fixed names, and the states under the second of the start. The locale is fixed
    because counts are printed in it. One worker means a small model, where the start counts.
    """
    small = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [
        str(toolchain.java),
        f"-Xmx{HEAP_MB}m",
        *(small if job.workers == 1 else ["-XX:+UseParallelGC"]),
        "-XX:-UsePerfData",
        *toolchain.options,
        *("-Duser.language=en", "-Duser.country=US"),
        *("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"),
        f"-Djava.io.tmpdir={scratch}",
        *("-cp", str(toolchain.jar), "tlc2.TLC", "-tool"),
        *("-workers", str(job.workers), "-fp", "3"),
        *("-metadir", f"{scratch}/states", "-config", job.cfg),
        *([] if job.deadlock else ["-deadlock"]),
        job.module,
    ]


def shell_line(toolchain: Toolchain, job: Job) -> str:
    """The same call as a line for a shell."""
    call = shlex.join(tlc_command(toolchain, job, "SCRATCH")).replace("SCRATCH", '"$SCRATCH"')
    return f"cd {shlex.quote(str(job.folder))} && SCRATCH=$(mktemp -d) && {call}"


def run_tlc(
    toolchain: Toolchain,
    job: Job,
    processes: Processes,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Run TLC to its end, to the time limit, or until `processes` is closed.

    The calling thread must stay until it is over (`processes.py` says why).
    """
    listener = _Listener(progress)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="thund-tlc-", ignore_cleanup_errors=True) as scratch,
        Path(scratch, "stderr").open("w+b") as errors,
    ):
        command = tlc_command(toolchain, job, scratch)
        process = processes.start(command, folder=job.folder, errors=errors)
        limit = _Limit(lambda: processes.kill(process), job.seconds_max)
        try:
            assert process.stdout is not None
            for message in read_messages(process.stdout):
                listener.hear(message)
        except BaseException:
            processes.kill(process)
            raise
        finally:
            limit.cancel()
            exit_code = processes.finish(process)
        errors.seek(0)
        complaint = errors.read().decode("utf-8", "replace").strip()
    verdict, violated, detail = _judge(listener, exit_code, complaint)
    if limit.reached:
        verdict, violated, detail = TIMEOUT, None, f"no verdict after {job.seconds_max:.0f} s"
    return Run(
        verdict=verdict,
        violated=violated,
        detail=detail,
        trace=listener.trace(),
        counts=listener.counts,
        depth=listener.depth,
        exit_code=exit_code,
        seconds=time.monotonic() - started,
        printed=tuple(listener.printed),
    )


class _Limit:
    """Ends something after a time, unless it is cancelled, and remembers that it did."""

    def __init__(self, end: Callable[[], None], seconds: float) -> None:
        self.reached = False
        self._end = end
        self._timer = threading.Timer(seconds, self._reach)
        self._timer.daemon = True
        self._timer.start()

    def _reach(self) -> None:
        self.reached = True
        self._end()

    def cancel(self) -> None:
        self._timer.cancel()


@dataclass(slots=True)
class _Listener:
    """Takes the messages of one run apart."""

    progress: Callable[[Progress], None] | None
    counts: Progress | None = None
    depth: int | None = None
    codes: list[int] = field(default_factory=list)
    errors: list[Message] = field(default_factory=list)
    unsound: list[Message] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    states: list[TraceState] = field(default_factory=list)
    back_to: int | None = None
    stutters: bool = False

    def hear(self, message: Message) -> None:
        code = message.code
        if code is None:
            if message.text and not message.text.startswith(_NOISE):
                self._keep(message.text)
            return
        if code in (m.SUCCESS, m.FINISHED):
            self.codes.append(code)
        if code in _UNSOUND:
            self.unsound.append(message)
        if message.severity in (m.ERROR, m.BUG) and code not in _TELLING:
            self.errors.append(message)
        if code in (m.PROGRESS, m.TOTALS):
            self._count(message)
        elif code == m.SEARCH_DEPTH and (found := _DEPTH.search(message.text)) is not None:
            self.depth = int(found[1])
        elif code in (m.INVARIANT_FALSE_AT_START, m.PROPERTY_FALSE_AT_START):
            body = message.text.partition("\n")[2]
            self.states.append(TraceState(1, "Initial predicate", read_state(body)))
        elif code == m.STATE and (found := _STATE.match(message.text)) is not None:
            action = found[2].split(" line ")[0]
            self.states.append(TraceState(int(found[1]), action, read_state(found[3])))
        elif code == m.BACK_TO_STATE and (found := _BACK.match(message.text)) is not None:
            self.back_to = int(found[1])
        elif code == m.STUTTERING:
            self.stutters = True

    def trace(self) -> Trace | None:
        return Trace(tuple(self.states), self.back_to, self.stutters) if self.states else None

    def _count(self, message: Message) -> None:
        if (found := _TOTALS.search(message.text)) is None:
            return
        told = Progress(*(int(number.replace(",", "")) for number in found.groups()))
        if message.code == m.TOTALS:
            self.counts = told
        elif self.progress is not None:
            self.progress(told)

    def _keep(self, line: str) -> None:
        if len(self.printed) < LINES_KEPT_MAX:
            self.printed.append(line)


def _judge(heard: _Listener, exit_code: int, complaint: str) -> tuple[str, str | None, str]:
    """The verdict: one story told by the messages, the counts and the exit code, or ERROR."""
    words = "\n".join(message.text.strip() for message in heard.errors)
    if heard.unsound:
        return ERROR, None, f"TLC warns that its verdict is unsound: {heard.unsound[0].text}"
    if not heard.errors:
        return _judge_success(heard, exit_code, complaint)
    first = heard.errors[0]
    if len(heard.errors) > 1 or first.code not in _VIOLATIONS:
        context = [line for line in heard.printed if line.strip()] if exit_code == 150 else []
        return ERROR, None, "\n".join(filter(None, [words, *context, complaint]))
    verdict, code_expected = _VIOLATIONS[first.code]
    if exit_code != code_expected or m.FINISHED not in heard.codes:
        return ERROR, None, f"exit code {exit_code} does not go with the message: {words}"
    named = _NAMED.search(first.text)
    return verdict, named[1] if named else None, first.text.partition("\n")[0]


def _judge_success(heard: _Listener, exit_code: int, complaint: str) -> tuple[str, str | None, str]:
    if exit_code != 0 or heard.codes.count(m.SUCCESS) != 1 or m.FINISHED not in heard.codes:
        said = "\n".join(filter(None, [*heard.printed[-20:], complaint]))
        return ERROR, None, f"TLC ended with exit code {exit_code} and no verdict\n{said}".strip()
    if heard.counts is None or heard.counts.queued != 0 or heard.counts.distinct == 0:
        return ERROR, None, f"TLC says success, but its totals are {heard.counts}"
    return OK, None, "no error found"
