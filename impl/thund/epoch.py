"""What one epoch is: its items, what it leaves in the state, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from thund_contract.vocabulary import Item, PartitionState

_LATE: dict[str, pa.DataType] = {
    "partition": pa.string(),
    "offset": pa.int64(),
    "event_time": pa.int64(),
    "watermark": pa.int64(),
}
LATE_SCHEMA = pa.schema(_LATE)
_INVALID: dict[str, pa.DataType] = {
    "partition": pa.string(),
    "offset": pa.int64(),
    "reason": pa.string(),
    "watermark": pa.int64(),
}
INVALID_SCHEMA = pa.schema(_INVALID)
_UNFIT: dict[str, pa.DataType] = {
    "_gar_id": pa.binary(16),
    "aggregate": pa.string(),
    "value": pa.string(),
}
UNFIT_SCHEMA = pa.schema(_UNFIT)
LANES = {"late": LATE_SCHEMA, "invalid": INVALID_SCHEMA, "unfit": UNFIT_SCHEMA}
"""The lanes of an outbox and their schemas: rows that are kept beside the result (law A6)."""


def table_name(name: str, operator: str) -> str:
    """What a table is called in the state or the outbox. operator: "" for the first one."""
    return f"{name}-{operator}" if operator else name


@dataclass(frozen=True, slots=True)
class Shown:
    """What one operator shows in an epoch: its rows, and panes where it has them; see Outbox.

    Law: E1, E6.
    """

    rows: pa.Table
    panes: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Outbox:
    """What one epoch emits: rows, the three lanes, and panes where the pipeline has them.

    more: what further window operators show, by their names; the lanes are those of all.

    Law: A6, E1, E6, K1.
    Shape: rows has _gar_id (16 bytes), _epoch int64, _deleted bool, then the keys, window_start,
    window_end and the aggregates; an id comes at most once. panes has _gar_id, _epoch, _pane int64,
    _timing (text), _retraction bool, then the same.
    """

    epoch: int
    rows: pa.Table
    late: pa.Table
    invalid: pa.Table
    unfit: pa.Table
    panes: pa.Table | None = None
    more: Mapping[str, Shown] = field(default_factory=dict)

    def shown(self) -> dict[str, Shown]:
        """What each operator shows; the first one's name is ""."""
        return {"": Shown(self.rows, self.panes), **self.more}

    def lanes(self) -> dict[str, pa.Table]:
        """The lanes by their names in LANES."""
        return {"late": self.late, "invalid": self.invalid, "unfit": self.unfit}


@dataclass(frozen=True, slots=True)
class Epoch:
    """All that a checkpoint keeps of one epoch.

    Law: K3.
    """

    number: int
    items: tuple[Item, ...]
    watermark: int
    partitions: tuple[PartitionState, ...]
    state: dict[str, pa.Table]
    outbox: Outbox
    drained: bool
