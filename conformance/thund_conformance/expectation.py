"""What a golden file keeps of an outcome: results only, and no hashes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thund_conformance.words import literal
from thund_contract.engine import Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import (
    EpochRecord,
    InvalidRow,
    LateRow,
    Pane,
    PartitionState,
    Unfit,
)


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the sink's table, without its hash."""

    key: tuple[object, ...]
    start_ms: int
    end_ms: int
    values: tuple[object, ...]
    version: int


@dataclass(frozen=True, slots=True)
class EpochSummary:
    """One committed epoch as a golden file shows it."""

    epoch: int
    watermark: int
    drained: bool
    partitions: tuple[PartitionState, ...]
    late: tuple[LateRow, ...]
    invalid: tuple[InvalidRow, ...]
    unfit: tuple[Unfit, ...]
    panes: tuple[Pane, ...] = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """The second half of a golden file."""

    epochs: tuple[EpochSummary, ...]
    table: tuple[Result, ...]
    duplicates: int = 0
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Golden:
    """A scenario, and what must come of it."""

    scenario: Scenario
    expected: Expected


def expected_of(outcome: Outcome) -> Expected:
    """What a golden file keeps of an outcome; rows sorted by key and window."""
    rows = [Result(p.key, p.start_ms, p.end_ms, p.values, p.version) for p in outcome.table]
    return Expected(
        epochs=tuple(map(_summary, outcome.epochs)),
        table=tuple(sorted(rows, key=lambda r: (r.start_ms, list(map(literal, r.key))))),
        duplicates=outcome.duplicates,
        fault=outcome.fault,
    )


def _summary(epoch: EpochRecord) -> EpochSummary:
    return EpochSummary(
        epoch.epoch,
        epoch.watermark,
        epoch.drained,
        tuple(sorted(epoch.partitions, key=lambda p: p.partition)),
        tuple(sorted(epoch.late, key=lambda r: (r.partition, r.offset))),
        tuple(sorted(epoch.invalid, key=lambda r: (r.partition, r.offset))),
        tuple(sorted(epoch.unfit, key=lambda u: (u.id, u.aggregate))),
        tuple(sorted((replace(p, id="") for p in epoch.panes), key=_place_of)),
    )


def _place_of(pane: Pane) -> tuple[object, ...]:
    return (pane.start_ms, list(map(literal, pane.key)), pane.number, not pane.retraction)
