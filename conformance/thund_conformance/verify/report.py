"""Run many models at once, and keep what came of them in a form for people and machines."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from thund_conformance.verify import tlc
from thund_conformance.verify.archive import with_archive
from thund_conformance.verify.environment import read_environment
from thund_conformance.verify.java import Toolchain, find_toolchain
from thund_conformance.verify.models import Finding, Model, judge, load_models
from thund_conformance.verify.processes import Processes
from thund_conformance.verify.values import State, changes
from thund_contract.errors import CallerError

ONLY_OK = "ok"
ONLY_BROKEN = "broken"
JOBS = 2

ARCHIVE_MODELS_MIN = 12
"""From so many models on, starting the JVM faster is worth the time it takes to prepare."""


@dataclass(frozen=True, slots=True)
class Result:
    """One model, what TLC said, whether that is right, and a shell line that repeats it."""

    model: Model
    run: tlc.Run
    finding: Finding
    command: str


@dataclass(frozen=True, slots=True)
class Step:
    """Something happened to a model: it started, told its states, or is done (with a result)."""

    model: Model
    distinct: int = 0
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found, in the order of models.toml."""

    results: tuple[Result, ...]
    seconds: float
    java: str
    jar: str

    @property
    def passed(self) -> bool:
        """Whether every model came out as its entry says, and there was at least one."""
        return bool(self.results) and not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        """The results that are not as their entries say."""
        return tuple(result for result in self.results if not result.finding.passed)

    @property
    def ok(self) -> int:
        """Models that hold, as they must; a witness counts here: it shows what can happen."""
        return sum(r.finding.passed and not r.model.broken for r in self.results)

    @property
    def broken(self) -> int:
        """Broken models that failed in the way their entries say."""
        return sum(r.finding.passed and r.model.broken for r in self.results)

    @property
    def states(self) -> int:
        """Distinct states over all models."""
        return sum(result.run.distinct for result in self.results)

    def last_line(self) -> str:
        """The one line that says it all."""
        failures = self.failures
        failed = f" failed={','.join(result.model.name for result in failures)}"
        return (
            f"verify: {'PASS' if self.passed else 'FAIL'} models={len(self.results)} "
            f"ok={self.ok} broken={self.broken} states={self.states} "
            f"seconds={self.seconds:.1f}{failed if failures else ''}"
        )

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values, for a file."""
        return {
            "passed": self.passed,
            "models": len(self.results),
            "ok": self.ok,
            "broken": self.broken,
            "states": self.states,
            "seconds": round(self.seconds, 3),
            "java": self.java,
            "jar": self.jar,
            "results": [_result_as_json(result) for result in self.results],
        }


def choose(
    models: Iterable[Model],
    *,
    names: Iterable[str] = (),
    only: str | None = None,
    full: bool = False,
) -> tuple[Model, ...]:
    """The models asked for, by name or by kind; all of them only in a full run.

    Raises: CallerError on a name that no model has, or where nothing is left.
    """
    known = tuple(models)
    wanted = set(names)
    unknown = wanted - {model.name for model in known}
    chosen = tuple(
        model
        for model in known
        if (model.name in wanted if wanted else full or not model.full)
        and (only is None or model.broken == (only == ONLY_BROKEN))
    )
    if unknown or not chosen:
        raise CallerError(
            f"no model named {', '.join(sorted(unknown))}" if unknown else "no model is left",
            allowed=", ".join(model.name for model in known),
            where="the choice of models",
            action="run `thund verify --list` for the names",
        )
    return chosen


def verify_models(
    specs: Path,
    *,
    names: Iterable[str] = (),
    only: str | None = None,
    full: bool = False,
    jobs: int = JOBS,
    toolchain: Toolchain | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Report:
    """Run TLC on the models of a folder, `jobs` at a time, and judge each.

    `progress` is called from other threads, never twice at once. However this ends, no JVM is
    left behind.
    Raises: CallerError on a wrong list, a missing Java or jar, or an unknown name.
    """
    started = time.monotonic()
    chosen = choose(load_models(specs), names=names, only=only, full=full)
    tools = toolchain if toolchain is not None else find_toolchain(read_environment())
    tell = _one_at_a_time(progress)
    longest_first = sorted(chosen, key=lambda model: -model.seconds)
    with (
        tempfile.TemporaryDirectory(prefix="thund-verify-") as scratch,
        Processes() as processes,
        ThreadPoolExecutor(max_workers=jobs) as pool,
    ):
        if len(chosen) >= ARCHIVE_MODELS_MIN:
            tools = with_archive(tools, Path(scratch), processes)
        futures = {
            model.name: pool.submit(_run_one, specs, model, tools, processes, tell)
            for model in longest_first
        }
        try:
            wait(futures.values(), return_when=FIRST_EXCEPTION)
            results = tuple(futures[model.name].result() for model in chosen)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.close()
            raise
    return Report(
        results=results,
        seconds=time.monotonic() - started,
        java=f"{tools.java} {tools.java_version}",
        jar=str(tools.jar),
    )


def trace_rows(trace: tlc.Trace) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Per state its number, the action that led to it, and the places that it changed."""
    rows: list[tuple[str, str, list[tuple[str, str]]]] = []
    before: State = {}
    for state in trace.states:
        rows.append((str(state.number), state.action, changes(before, state.values)))
        before = state.values
    if trace.stutters:
        rows.append(("…", "stays so for ever", []))
    if trace.back_to is not None:
        rows.append(("…", f"goes back to state {trace.back_to}", []))
    return rows


def _run_one(
    specs: Path,
    model: Model,
    tools: Toolchain,
    processes: Processes,
    tell: Callable[[Step], None],
) -> Result:
    tell(Step(model))
    job = model.job(specs)
    run = tlc.run_tlc(tools, job, processes, lambda told: tell(Step(model, told.distinct)))
    command = tlc.shell_line(replace(tools, options=()), job)
    result = Result(model, run, judge(model, run, specs), command)
    tell(Step(model, run.distinct, result))
    return result


def _one_at_a_time(progress: Callable[[Step], None] | None) -> Callable[[Step], None]:
    lock = threading.Lock()

    def tell(step: Step) -> None:
        if progress is not None:
            with lock:
                progress(step)

    return tell


def _result_as_json(result: Result) -> dict[str, Any]:
    model, run = result.model, result.run
    trace = [] if run.trace is None else trace_rows(run.trace)
    return {
        "name": model.name,
        "module": model.module,
        "cfg": model.cfg,
        "laws": list(model.laws),
        "broken": model.broken,
        "witness": model.witness,
        "passed": result.finding.passed,
        "expected": result.finding.expected,
        "found": result.finding.found,
        "distinct": run.distinct,
        "distinct_pinned": model.distinct,
        "generated": 0 if run.counts is None else run.counts.generated,
        "depth": run.depth,
        "seconds": round(run.seconds, 3),
        "command": result.command,
        "trace": [
            {"state": number, "action": action, "changes": dict(changed)}
            for number, action, changed in trace
        ],
    }
