"""Short words for scenarios written by hand. A default is what most tests do not look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from thund_contract.engine import Outcome
from thund_contract.scenario import DrainAll, Scenario, Step
from thund_contract.vocabulary import (
    CALENDAR,
    COUNT,
    HOPPING,
    SESSION,
    Aggregate,
    Config,
    EpochRecord,
    PartitionState,
    Row,
    WindowSpec,
)

ROWS = Aggregate("rows", COUNT)

PLAIN = Config(pipeline="p", event_time="et", key=("k",), window=WindowSpec(10), aggregates=(ROWS,))
"""Windows of 10 ms, one key column, count(*), no delay, no grace, append."""


def config(**changes: object) -> Config:
    """The plain configuration with changes; `size` and `offset` stand for a tumbling window."""
    size, offset = changes.pop("size", 10), changes.pop("offset", 0)
    assert isinstance(size, int)
    assert isinstance(offset, int)
    changes.setdefault("window", WindowSpec(size, offset))
    return replace(PLAIN, **changes)  # type: ignore[arg-type]


def hopping(size: int, slide: int, offset: int = 0) -> WindowSpec:
    """Windows of a size, one at each slide."""
    return WindowSpec(size, offset, HOPPING, slide)


def session(gap: int) -> WindowSpec:
    """Sessions that end after a gap."""
    return WindowSpec(0, kind=SESSION, gap_ms=gap)


def calendar(unit: str, zone: str, offset: int = 0) -> WindowSpec:
    """Hours, days, weeks or months of a zone's local time."""
    return WindowSpec(0, offset, CALENDAR, unit=unit, zone=zone)


def row(partition: str, offset: int, event_time: object, key: object = "a", *values: object) -> Row:
    """One row of the plain configuration, or of one with as many aggregates as values."""
    return Row(partition, offset, event_time, (key,), values or (None,))


def log(partition: str, *times: object, key: object = "a") -> tuple[str, tuple[Row, ...]]:
    """A log with offsets from 0, one row for each event time."""
    return partition, tuple(row(partition, i, time, key) for i, time in enumerate(times))


def valued(
    partition: str, rows: Iterable[Sequence[object]], key: object = "a"
) -> tuple[str, tuple[Row, ...]]:
    """A log with offsets from 0; each row is an event time and one value per aggregate."""
    return partition, tuple(row(partition, i, r[0], key, *r[1:]) for i, r in enumerate(rows))


def scenario(
    config_: Config,
    logs: Iterable[tuple[str, tuple[Row, ...]]],
    *steps: Step,
    assigned: Iterable[str] | None = None,
) -> Scenario:
    """Steps as they are given; every partition with a log is assigned unless said otherwise."""
    kept = tuple(logs)
    names = tuple(sorted(name for name, _ in kept)) if assigned is None else tuple(assigned)
    return Scenario(config_, kept, names, steps)


def drained(config_: Config, *logs: tuple[str, tuple[Row, ...]]) -> Scenario:
    """All rows, then a drain."""
    return scenario(config_, logs, DrainAll())


def counts(table: Iterable[object]) -> Mapping[tuple[object, int], object]:
    """(key, window start) -> first aggregate, for tables of one key column."""
    return {(p.key[0], p.start_ms): p.values[0] for p in table}  # type: ignore[attr-defined]


def last(outcome: Outcome) -> EpochRecord:
    """The newest committed epoch."""
    return outcome.epochs[-1]


def state_of(epoch: EpochRecord, partition: str) -> PartitionState:
    """What an epoch keeps of a partition."""
    return next(p for p in epoch.partitions if p.partition == partition)
