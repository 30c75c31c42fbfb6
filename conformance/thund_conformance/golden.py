"""Scenarios with their expected outcome as text that a newcomer can read, and back.

What is printed is parsed to the same value, and what is parsed is printed to the same text. The
expected half holds results only: epochs with W, counters and lanes, and the table of the sink.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from thund_conformance.expectation import Expected, Golden, expected_of
from thund_conformance.golden_reader import (
    PAIRS,
    RARER,
    SCALARS,
    read_expected,
    read_scenario,
)
from thund_conformance.words import literal, number, word
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Busy,
    Crash,
    Deliver,
    DrainAll,
    Duplicate,
    RemovePartition,
    Reorder,
    Restart,
    Scenario,
    Step,
    Tick,
)
from thund_contract.vocabulary import (
    CALENDAR,
    HOPPING,
    NONE_BEFORE,
    SESSION,
    Config,
    Operator,
    Pane,
    PartitionState,
    Row,
    WindowSpec,
)

__all__ = [
    "CUT",
    "FOLDER",
    "Golden",
    "expected_of",
    "parse",
    "parse_scenario",
    "paths",
    "read",
    "render",
    "render_scenario",
]

CUT = "----"
FOLDER = Path(__file__).parent / "scenarios"


def paths(folder: Path = FOLDER) -> Iterable[Path]:
    """The golden files of a folder, by name."""
    return sorted(folder.glob("*.txt"))


def read(path: Path) -> Golden:
    """The golden file at a path."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Golden:
    """The value of a golden file's text.

    Raises: ValueError naming the line that cannot be read.
    """
    above, cut, below = text.partition(f"\n{CUT}\n")
    if not cut:
        raise ValueError(f"no line {CUT!r} between the scenario and its outcome")
    return Golden(read_scenario(above), read_expected(below))


def parse_scenario(text: str) -> Scenario:
    """The value of the first half, whether or not there is a second one.

    Raises: ValueError naming the line that cannot be read.
    """
    return read_scenario(text.partition(f"\n{CUT}\n")[0])


def render(golden: Golden) -> str:
    """The text of a golden file, with a last newline."""
    below = [CUT, *_expected_lines(golden.expected)]
    return render_scenario(golden.scenario) + "\n".join(below) + "\n"


def render_scenario(scenario: Scenario) -> str:
    """The first half alone: what a failing test prints."""
    lines = [f"# {line}".rstrip() for line in scenario.why.split("\n")] if scenario.why else []
    lines += _config_lines(scenario.config)
    for partition, log in scenario.logs:
        lines.append(f"log {word(partition)}")
        lines += [_row_line(row) for row in log]
    lines.append(" ".join(["assigned", *map(word, scenario.assigned)]))
    lines += map(_step_line, scenario.steps)
    return "\n".join(lines) + "\n"


def _config_lines(config: Config) -> list[str]:
    plain = Config(config.pipeline, config.event_time, (), config.window, ())
    lines = [f"pipeline {word(config.pipeline)}", f"event_time {word(config.event_time)}"]
    lines += _result_lines(config)
    for name in PAIRS:
        lines += [f"{name} {word(new)} {literal(old)}" for new, old in getattr(config, name)]
    if config.deduplicate:
        lines.append(" ".join(["deduplicate", *map(word, config.deduplicate)]))
    lines += [f"{n} {literal(getattr(config, n))}" for n in SCALARS if differs(config, plain, n)]
    for one in config.more:
        lines += [f"also {word(one.name)}", *_result_lines(one)]
        names = ("output", "panes")
        lines += [f"{n} {literal(getattr(one, n))}" for n in names if differs(one, plain, n)]
    return lines


def differs(one: object, other: object, name: str) -> bool:
    """Whether a field has another value."""
    return bool(getattr(one, name) != getattr(other, name))


def _result_lines(one: Config | Operator) -> list[str]:
    """Key, window and aggregates of one window over the rows."""
    lines = [" ".join(["key", *map(word, one.key)]), _window_line(one.window)]
    for a in one.aggregates:
        columns = [] if a.column is None else [word(a.column), *map(word, a.others)]
        lines.append(" ".join(["aggregate", word(a.name), word(a.operation), *columns]))
    return lines


def _window_line(w: WindowSpec) -> str:
    if w.kind == SESSION:
        return f"window session gap={w.gap_ms}"
    if w.kind == CALENDAR:
        return f"window calendar {w.unit} {literal(w.zone)} offset={w.offset_ms}"
    slide = f" slide={w.slide_ms}" if w.kind == HOPPING else ""
    return f"window {w.kind} size={w.size_ms} offset={w.offset_ms}{slide}"


def _row_line(row: Row) -> str:
    words = [f"  {row.offset} at", literal(row.event_time)]
    if row.passes is not True:
        words += ["passes", literal(row.passes)]
    if row.id:
        words += ["id", *map(literal, row.id)]
    words += ["key", *map(literal, row.key), "values", *map(literal, row.values)]
    for key, values in row.more:
        words += ["also", *map(literal, key), "values", *map(literal, values)]
    return " ".join(words)


def _step_line(step: Step) -> str:
    match step:
        case Deliver(partition, rows):
            return f"deliver {word(partition)} {rows}"
        case Duplicate(partition, offset):
            return f"duplicate {word(partition)} {offset}"
        case Reorder(partition, rows):
            return f"reorder {word(partition)} {rows}"
        case AddPartition(partition):
            return f"add {word(partition)}"
        case RemovePartition(partition):
            return f"remove {word(partition)}"
        case Tick(by_ms):
            return f"tick {by_ms}"
        case Busy(by_ms):
            return f"busy {by_ms}"
        case Barrier():
            return "barrier"
        case Crash(after):
            return f"crash {after}"
        case Restart():
            return "restart"
        case DrainAll():
            return "drain"


def _expected_lines(expected: Expected) -> list[str]:
    lines = []
    for e in expected.epochs:
        lines.append(f"epoch {e.epoch} W={number(e.watermark)}" + (" drained" if e.drained else ""))
        lines += map(_partition_line, e.partitions)
        for late in e.late:
            at = f"at {late.event_time} W={number(late.watermark)}"
            lines.append(f"  late {word(late.partition)} {late.offset} {at}")
        for bad in e.invalid:
            reason = f"{word(bad.reason)} W={number(bad.watermark)}"
            lines.append(f"  invalid {word(bad.partition)} {bad.offset} {reason}")
        lines += [f"  unfit {u.id} {word(u.aggregate)} {literal(u.value)}" for u in e.unfit]
        lines += map(_pane_line, e.panes)
    lines.append("table")
    for r in expected.table:
        key, values = " ".join(map(literal, r.key)), " ".join(map(literal, r.values))
        span = f"  from {r.start_ms} to {r.end_ms} key {key}".rstrip()
        lines.append(f"{span} values {values} version {r.version}")
    if expected.duplicates:
        lines.append(f"duplicates {expected.duplicates}")
    if expected.fault is not None:
        lines.append(f"fault {word(expected.fault)}")
    return lines


def _partition_line(p: PartitionState) -> str:
    known = "none" if p.max_event_time is None else str(p.max_event_time)
    last = "none" if p.last == NONE_BEFORE else str(p.last)
    counted = f"accepted={p.accepted} admitted={p.admitted} late={p.late} invalid={p.invalid}"
    kind = "partition" if p.assigned else "removed"
    more = [f"{name}={getattr(p, name)}" for name in RARER if getattr(p, name)]
    words = [f"  {kind}", word(p.partition), f"last={last} max={known} {counted}", *more]
    return " ".join([*words, *["idle"] * p.idle])


def _pane_line(pane: Pane) -> str:
    key, values = " ".join(map(literal, pane.key)), " ".join(map(literal, pane.values))
    head = f"  {'retraction' if pane.retraction else 'pane'} {pane.number} {pane.timing}"
    return f"{head} from {pane.start_ms} to {pane.end_ms} key {key}".rstrip() + f" values {values}"
