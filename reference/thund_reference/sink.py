"""Apply keyed, versioned rows so that a replay changes nothing.

It knows nothing of windows; it sees outboxes, one per epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from thund_contract.errors import StoreError
from thund_contract.vocabulary import Delete, Put

RECOMPUTE = "recompute"
"""The generation under which recompute mode writes. Law: R2."""


@dataclass(frozen=True, slots=True)
class Record:
    """Whose rows these are, and the last epoch applied. Law: K5."""

    pipeline: str
    generation: str
    last: int


@dataclass(slots=True)
class Sink:
    """One table, and the record that lives in the transaction of its rows."""

    record: Record | None = None
    rows: dict[str, Put] = field(default_factory=dict)

    def apply(
        self, pipeline: str, generation: str, epoch: int, outbox: Iterable[Put | Delete]
    ) -> bool:
        """Epoch N, iff N - 1 was the last; one's own older epoch is skipped. Law: K5, M2, M3."""
        if self.record is None and self.rows:
            raise foreign("rows without a record of who wrote them")
        record = self.record or Record(pipeline, generation, 0)
        if (record.pipeline, record.generation) != (pipeline, generation):
            raise foreign(f"a table of {record.pipeline}, generation {record.generation}")
        if epoch <= record.last:
            return False
        if epoch != record.last + 1:
            raise foreign(f"epoch {epoch} offered after epoch {record.last}")
        for row in outbox:
            self.upsert(row)
        self.record = Record(pipeline, generation, epoch)
        return True

    def upsert(self, row: Put | Delete) -> None:
        """Applied iff newer than what is stored under its id. Law: M1."""
        stored = self.rows.get(row.id)
        if stored is not None and row.version <= stored.version:
            return
        if isinstance(row, Put):
            self.rows[row.id] = row
        else:
            self.rows.pop(row.id, None)

    def replace(self, pipeline: str, read: Record | None, rows: Iterable[Put]) -> bool:
        """Recompute mode's answer, unless another run was quicker since `read`. Law: R2."""
        if self.record != read:
            return False
        if read is None and self.rows:
            raise foreign("rows without a record of who wrote them")
        if read is not None and (read.pipeline, read.generation) != (pipeline, RECOMPUTE):
            raise foreign(f"a table of {read.pipeline}, generation {read.generation}")
        self.rows = {row.id: row for row in rows}
        self.record = Record(pipeline, RECOMPUTE, (read.last if read else 0) + 1)
        return True

    def rebuild(self, pipeline: str, generation: str) -> None:
        """Asked for: empty the table, and start again from epoch 1. Law: K5."""
        self.rows, self.record = {}, Record(pipeline, generation, 0)


def foreign(found: str) -> StoreError:
    """The error for a table that this history cannot go on with. Law: K5."""
    return StoreError(
        found,
        allowed="a table that holds exactly the epochs before this one",
        where="sink",
        action="name another table, or rebuild this one from the manifests",
        code="sink",
    )
