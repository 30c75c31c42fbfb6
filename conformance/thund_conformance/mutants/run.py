"""Run each mutant against the tests of its law, in a child process; a survivor fails the build.

`python -m thund_conformance.mutants.run [NAME ...]` prints a line for each and exits 1 if one lives.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from thund_conformance.mutants.catalogue import MUTANTS, without_a_mutant
from thund_conformance.mutants.patches import Mutant, Patches

SUITE = Path(__file__).parents[1] / "suite"
EXAMPLES = 12
TIMEOUT_S = 120
KILLED, SURVIVED, UNTESTED = "killed", "SURVIVED", "NO TEST"
_PYTEST_SAYS = {0: SURVIVED, 1: KILLED, 5: UNTESTED}
_BROKEN = 70
"""The child's exit code where the bug could not be put in."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant; output is the child's, for one that was not killed."""

    mutant: Mutant
    result: str
    seconds: float
    output: str


def run_mutants(
    mutants: Iterable[Mutant],
    *,
    jobs: int = 2,
    files: Mapping[str, Iterable[Path]] | None = None,
    tell: Callable[[Verdict], None] = lambda verdict: None,
) -> tuple[Verdict, ...]:
    """Every mutant in a child of its own, some at a time.

    The parent only imports: a child starts with all modules, and no thread of theirs. files: where
    the tests of a law are, for a child to look there alone.
    """
    waiting = list(mutants)
    running: dict[int, _Child] = {}
    done: list[Verdict] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            child = _Child(waiting[0], (files or {}).get(waiting.pop(0).law, (SUITE,)))
            running[child.pid] = child
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in running:
            verdict = running.pop(pid).verdict(os.waitstatus_to_exitcode(status))
            done.append(verdict)
            tell(verdict)
        elif pid == 0:
            time.sleep(0.05)
            for child in running.values():
                child.stop_if_late()
    return tuple(done)


class _Child:
    """A forked process that carries one bug."""

    def __init__(self, mutant: Mutant, files: Iterable[Path]) -> None:
        self.mutant, self.begun = mutant, time.monotonic()
        handle, self._path = tempfile.mkstemp(prefix="thund-mutant-")
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            os._exit(_inside(mutant, files))
        os.close(handle)

    def stop_if_late(self) -> None:
        """A bug that hangs is stopped; it counts as not killed, for no test has named it."""
        if time.monotonic() - self.begun > TIMEOUT_S:
            os.kill(self.pid, 9)
            self.begun = time.monotonic()

    def verdict(self, code: int) -> Verdict:
        path = Path(self._path)
        output = path.read_text(encoding="utf-8", errors="replace")
        path.unlink()
        result = _PYTEST_SAYS.get(code, f"ERROR {code}")
        seconds = time.monotonic() - self.begun
        return Verdict(self.mutant, result, seconds, "" if result == KILLED else output)


def _inside(mutant: Mutant, files: Iterable[Path]) -> int:
    try:
        mutant.patch(Patches())
        return int(pytest.main(_arguments(mutant.law, files)))
    except BaseException:  # noqa: BLE001 - the parent must hear of anything
        traceback.print_exc()
        return _BROKEN
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _arguments(law: str, files: Iterable[Path]) -> list[str]:
    return [
        *map(str, files),
        "-x",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",
        "--hypothesis-seed=1",
        f"--thund-law={law}",
        f"--thund-examples={EXAMPLES}",
    ]


class _Laws:
    """A plugin that notes in which files the tests of each law are."""

    def __init__(self) -> None:
        self.files: defaultdict[str, set[Path]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Every law of every test."""
        for item in items:
            for mark in item.iter_markers("law"):
                for law in mark.args:
                    self.files[law].add(item.path)


def _warm() -> Mapping[str, Iterable[Path]]:
    """Collect the suite once, so that each child finds every module imported; by law its files."""
    laws = _Laws()
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        kept, sys.stdout = sys.stdout, nowhere
        try:
            pytest.main([str(SUITE), "--collect-only", "-q", "-p", "no:cacheprovider"], [laws])
        finally:
            sys.stdout = kept
    gc.freeze()
    return {law: sorted(files) for law, files in laws.files.items()}


def main(names: Sequence[str]) -> int:
    """Print a line for each mutant; 0 if all are killed and each law has one."""
    chosen = [m for m in MUTANTS if not names or m.name in names or m.law in names]
    verdicts = run_mutants(chosen, files=_warm(), tell=_print)
    alive = [v for v in verdicts if v.result != KILLED]
    for verdict in alive:
        click.echo(f"\n{verdict.mutant.name} ({verdict.mutant.law}): {verdict.mutant.why}")
        click.echo("\n".join(verdict.output.splitlines()[-30:]))
    missing = [] if names else without_a_mutant()
    click.echo(f"mutants: {len(chosen) - len(alive)} of {len(chosen)} killed")
    if missing:
        click.echo(f"laws without a mutant: {', '.join(missing)}")
    return 1 if alive or missing or not chosen else 0


def _print(verdict: Verdict) -> None:
    m = verdict.mutant
    click.echo(f"{verdict.result:<9} {m.law:<4} {m.name:<28} {verdict.seconds:5.1f} s")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
