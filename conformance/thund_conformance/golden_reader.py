"""Read the lines of a golden file, each half by its own reader.

What they read is printed by golden.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from thund_conformance.expectation import EpochSummary, Expected, Result
from thund_conformance.words import Words
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
    Aggregate,
    Config,
    InvalidRow,
    LateRow,
    Operator,
    Pane,
    PartitionState,
    Row,
    Unfit,
    WindowSpec,
)

SCALARS = (
    "delay_ms",
    "grace_ms",
    "late_rule",
    "output",
    "max_future_ms",
    "late_lane",
    "watermark_update",
    "operator",
    "credits",
    "idle_timeout_ms",
    "filter",
    "remember_ms",
    "panes",
)
"""Fields of a Config that have a line of their own where they are not the default."""
PAIRS = ("rename", "derive")
"""Fields of a Config that have a line for each of their pairs."""
COUNTERS = ("accepted", "admitted", "late", "invalid")
RARER = ("filtered", "repeated", "late_window_drops")
"""Counters of a partition that are shown where they are not 0."""


def read_scenario(text: str) -> Scenario:
    """The value of a first half. Raises: ValueError naming the line that cannot be read."""
    reader = _ScenarioReader()
    _each_line(text, reader.line)
    return reader.scenario()


def read_expected(text: str) -> Expected:
    """The value of a second half. Raises: ValueError naming the line that cannot be read."""
    reader = _ExpectedReader()
    _each_line(text, reader.line)
    return Expected(tuple(reader.epochs), tuple(reader.table), reader.duplicates, reader.fault)


def _each_line(text: str, take: Callable[[str], None]) -> None:
    for index, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                take(line)
        except (ValueError, KeyError, IndexError) as error:
            raise ValueError(f"line {index}: {line!r}: {error}") from error


@dataclass(slots=True)
class _Result:
    """Key, window and aggregates of one window over the rows, as they are read."""

    name: str = ""
    key: tuple[str, ...] = ()
    window: WindowSpec = field(default_factory=lambda: WindowSpec(1))
    aggregates: list[Aggregate] = field(default_factory=list)
    texts: dict[str, object] = field(default_factory=dict)

    def operator(self) -> Operator:
        """One of Config.more."""
        own = Operator(self.name, self.key, self.window, tuple(self.aggregates))
        return replace(own, **self.texts)  # type: ignore[arg-type]


class _ScenarioReader:
    """Collects the lines of a first half."""

    def __init__(self) -> None:
        self.why: list[str] = []
        self.texts: dict[str, object] = {}
        self.results = [_Result()]
        self.pairs: dict[str, list[tuple[str, object]]] = {name: [] for name in PAIRS}
        self.logs: list[tuple[str, list[Row]]] = []
        self.assigned: tuple[str, ...] = ()
        self.steps: list[Step] = []

    def line(self, line: str) -> None:
        if line.startswith("#"):
            self.why.append(line.removeprefix("#").removeprefix(" "))
            return
        words = Words(line)
        if line.startswith("  "):
            self.logs[-1][1].append(_parse_row(self.logs[-1][0], words))
        else:
            self._head(words.plain(), words)
        words.end()

    def _head(self, head: str, words: Words) -> None:
        if head in ("pipeline", "event_time"):
            self.texts[head] = words.plain()
        elif head == "key":
            self.results[-1].key = words.rest()
        elif head == "also":
            self.results.append(_Result(words.plain()))
        elif head in ("output", "panes") and len(self.results) > 1:
            self.results[-1].texts[head] = words.value()
        elif head == "window":
            self.results[-1].window = _parse_window(words)
        elif head == "aggregate":
            name, operation, *columns = words.rest()
            column, others = (columns[0] if columns else None), tuple(columns[1:])
            self.results[-1].aggregates.append(Aggregate(name, operation, column, others))
        elif head in PAIRS:
            self.pairs[head].append((words.plain(), words.value()))
        elif head == "deduplicate":
            self.texts[head] = words.rest()
        elif head in SCALARS:
            self.texts[head] = words.value()
        elif head == "log":
            self.logs.append((words.plain(), []))
        elif head == "assigned":
            self.assigned = words.rest()
        else:
            self.steps.append(_parse_step(head, words))

    def scenario(self) -> Scenario:
        pipeline, event_time = self.texts.pop("pipeline"), self.texts.pop("event_time")
        assert isinstance(pipeline, str)
        assert isinstance(event_time, str)
        first, *others = self.results
        config = Config(pipeline, event_time, first.key, first.window, tuple(first.aggregates))
        config = replace(config, more=tuple(other.operator() for other in others))
        pairs = {name: tuple(found) for name, found in self.pairs.items()}
        return Scenario(
            config=replace(config, **self.texts, **pairs),  # type: ignore[arg-type]
            logs=tuple((name, tuple(log)) for name, log in self.logs),
            assigned=self.assigned,
            steps=tuple(self.steps),
            why="\n".join(self.why),
        )


def _parse_window(words: Words) -> WindowSpec:
    kind = words.plain()
    if kind == SESSION:
        return WindowSpec(0, kind=kind, gap_ms=words.named("gap"))
    if kind == CALENDAR:
        unit, zone = words.plain(), str(words.value())
        return WindowSpec(0, words.named("offset"), kind, unit=unit, zone=zone)
    size, offset = words.named("size"), words.named("offset")
    return WindowSpec(size, offset, kind, words.named("slide") if kind == HOPPING else 0)


def _parse_row(partition: str, words: Words) -> Row:
    offset = words.integer()
    words.expect("at")
    event_time = words.value()
    passes = words.value() if words.optional("passes") else True
    assert passes is None or isinstance(passes, bool)
    id_: tuple[object, ...] = ()
    if words.optional("id"):
        id_ = words.values_until("key")
    else:
        words.expect("key")
    key = words.values_until("values")
    values, more = words.values_up_to("also"), []
    while words.optional("also"):
        more.append((words.values_until("values"), words.values_up_to("also")))
    return Row(partition, offset, event_time, key, values, passes, id_, tuple(more))


def _parse_step(head: str, words: Words) -> Step:
    match head:
        case "deliver":
            return Deliver(words.plain(), words.integer())
        case "duplicate":
            return Duplicate(words.plain(), words.integer())
        case "reorder":
            return Reorder(words.plain(), words.integer())
        case "add":
            return AddPartition(words.plain())
        case "remove":
            return RemovePartition(words.plain())
        case "tick":
            return Tick(words.integer())
        case "busy":
            return Busy(words.integer())
        case "barrier":
            return Barrier()
        case "crash":
            return Crash(words.integer())
        case "restart":
            return Restart()
        case "drain":
            return DrainAll()
    raise ValueError(f"{head!r} is no step")


class _ExpectedReader:
    """Collects the lines of a second half."""

    def __init__(self) -> None:
        self.epochs: list[EpochSummary] = []
        self.table: list[Result] = []
        self.duplicates = 0
        self.fault: str | None = None

    def line(self, line: str) -> None:
        words = Words(line)
        head = words.plain()
        match head:
            case "epoch":
                epoch, watermark = words.integer(), words.named("W")
                drained = words.optional("drained")
                self.epochs.append(EpochSummary(epoch, watermark, drained, (), (), (), ()))
            case "partition" | "removed":
                state = _parse_partition(words, assigned=head == "partition")
                self._extend("partitions", state)
            case "late":
                self._extend("late", _parse_late(words))
            case "invalid":
                name, offset, reason = words.plain(), words.integer(), words.plain()
                self._extend("invalid", InvalidRow(name, offset, reason, words.named("W")))
            case "unfit":
                self._extend("unfit", Unfit(words.plain(), words.plain(), str(words.value())))
            case "pane" | "retraction":
                self._extend("panes", _parse_pane(words, retraction=head == "retraction"))
            case "table":
                pass
            case "from":
                self.table.append(_parse_result(words))
            case "duplicates":
                self.duplicates = words.integer()
            case "fault":
                self.fault = words.plain()
            case _:
                raise ValueError(f"{head!r} is no part of an outcome")
        words.end()

    def _extend(self, field: str, value: object) -> None:
        last = self.epochs[-1]
        extended = (*getattr(last, field), value)
        self.epochs[-1] = replace(last, **{field: extended})  # type: ignore[arg-type]


def _parse_partition(words: Words, *, assigned: bool) -> PartitionState:
    name = words.plain()
    last, known = words.named_or_none("last"), words.named_or_none("max")
    accepted, admitted, late, invalid = (words.named(field) for field in COUNTERS)
    more: dict[str, int] = {}
    while (rarer := words.next_named(RARER)) is not None:
        more[rarer] = words.named(rarer)
    return PartitionState(
        name,
        assigned,
        NONE_BEFORE if last is None else last,
        known,
        accepted,
        admitted,
        late,
        invalid,
        words.optional("idle"),
        **more,
    )


def _parse_pane(words: Words, *, retraction: bool) -> Pane:
    number, timing = words.integer(), words.plain()
    words.expect("from")
    start = words.integer()
    words.expect("to")
    end = words.integer()
    words.expect("key")
    key = words.values_until("values")
    return Pane("", number, timing, retraction, key, start, end, words.values_until(None))


def _parse_late(words: Words) -> LateRow:
    name, offset = words.plain(), words.integer()
    words.expect("at")
    return LateRow(name, offset, words.integer(), words.named("W"))


def _parse_result(words: Words) -> Result:
    start = words.integer()
    words.expect("to")
    end = words.integer()
    words.expect("key")
    key = words.values_until("values")
    values = words.values_until("version")
    return Result(key, start, end, values, words.integer())
