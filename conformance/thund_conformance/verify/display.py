"""How a verification shows itself: a bar over lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from thund_conformance.verify.report import Report, Result, Step, trace_rows

BAR_WIDTH = 40
PLAIN_WIDTH = 140
RUNNING_SHARE_MAX = 0.95
"""How far a running model may fill its part of the bar: its seconds are only an estimate."""


class Work:
    """How much of the expected seconds is done, running models counted by the time they took."""

    def __init__(self, seconds_expected: float) -> None:
        self.seconds_expected = max(seconds_expected, 0.1)
        self.states = 0
        self._done = 0.0
        self._running: dict[str, tuple[float, float]] = {}
        self._states_running: dict[str, int] = {}

    def hear(self, step: Step, now: float) -> None:
        """Take in what happened to a model."""
        name = step.model.name
        if step.result is not None:
            self._running.pop(name, None)
            self._states_running.pop(name, None)
            self._done += step.model.seconds
            self.states += step.distinct
        else:
            self._running.setdefault(name, (now, step.model.seconds))
            self._states_running[name] = step.distinct

    def seconds_done(self, now: float) -> float:
        """Expected seconds that are behind us."""
        running = (
            min(now - started, RUNNING_SHARE_MAX * seconds)
            for started, seconds in self._running.values()
        )
        return min(self._done + sum(running), self.seconds_expected)

    def words(self) -> str:
        """What is running, and the states found so far."""
        states = self.states + sum(self._states_running.values())
        return f"{states:,} states  {', '.join(self._running)}"


def output() -> Console:
    """Standard output; as wide as the terminal, or wide enough where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


@contextmanager
def show_progress(console: Console, seconds: float) -> Iterator[Callable[[Step], None]]:
    """Gives the function to tell each step to. `seconds` is the expected work of all models."""
    if not console.is_terminal:
        yield lambda step: _print_result(console, step.result)
        return
    work = Work(seconds)
    columns = (_WorkColumn(work), _WordsColumn(work), TimeElapsedColumn())
    with Progress(TextColumn("TLC"), *columns, console=console, transient=True) as bar:
        bar.add_task("", total=None)

        def hear(step: Step) -> None:
            work.hear(step, time.monotonic())
            _print_result(console, step.result)

        yield hear


def result_line(result: Result) -> str:
    """One model in one line: did it come out right, what TLC found, how long it took."""
    mark = "pass" if result.finding.passed else "FAIL"
    found = result.finding.found.partition("\n")[0]
    name, seconds = result.model.name, result.run.seconds
    return f"{mark}  {result.model.kind:8}{name:32}{seconds:6.1f} s  {found}"


def print_failures(console: Console, report: Report) -> None:
    """For each model that came out wrong: found, expected, how to repeat it, and the trace."""
    for result in report.failures:
        lines = (
            "",
            f"{result.model.name}: not as its entry in models.toml says",
            f"  found:    {result.finding.found}",
            f"  expected: {result.finding.expected}",
            f"  alone:    thund verify --model {result.model.name}",
            f"  by hand:  {result.command}",
        )
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
        if result.run.trace is not None:
            console.print(_trace_table(result))


def _print_result(console: Console, result: Result | None) -> None:
    if result is not None:
        style = None if result.finding.passed else "bold red"
        console.print(result_line(result), style=style, markup=False, soft_wrap=True)


def _trace_table(result: Result) -> Table:
    assert result.run.trace is not None
    table = Table("state", "action", "what changed", show_lines=True)
    for number, action, changed in trace_rows(result.run.trace):
        places = "\n".join(f"{place} = {value}" for place, value in changed)
        table.add_row(number, Text(action), Text(places))
    return table


@contextmanager
def show_count(console: Console, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Gives the function to tell how many are done; elsewhere than on a terminal a line now and then."""
    if not console.is_terminal:
        told = 0

        def say(done: int) -> None:
            nonlocal told
            if done >= min(told + total // 20, total):
                told = done
                console.print(f"{done:,} of {total:,} {what}")

        yield say
        return
    columns = (
        MofNCompleteColumn(),
        BarColumn(BAR_WIDTH),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(TextColumn(what), *columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)


class _WorkColumn(ProgressColumn):
    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def render(self, task: Task) -> ProgressBar:
        done = self._work.seconds_done(time.monotonic())
        return ProgressBar(total=self._work.seconds_expected, completed=done, width=BAR_WIDTH)


class _WordsColumn(ProgressColumn):
    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def render(self, task: Task) -> Text:
        return Text(self._work.words(), no_wrap=True, overflow="ellipsis")
