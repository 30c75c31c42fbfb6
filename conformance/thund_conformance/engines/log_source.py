"""The logs of a scenario as a source of the implementation, in memory, in the order of law S5."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from thund.batch import Delivery
from thund_conformance.engines.carrier import Carrier
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import NONE_BEFORE, Row


class LogSource:
    """Every row of a scenario, replayable. `committed` is what the engine has told it."""

    bounded = True

    def __init__(self, scenario: Scenario, carrier: Carrier, *, chunk: int = 2) -> None:
        self._logs, self._carrier = dict(scenario.logs), carrier
        self._chunk = chunk
        self.schema = carrier.schema
        self.committed: dict[str, int] = {}

    def partitions(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._logs))

    def read(
        self, after: Mapping[str, int], credit: Mapping[str, int], max_rows: int
    ) -> Delivery | None:
        """The rows that follow, by (offset div chunk, partition, offset)."""
        ahead = [
            (index, row)
            for name in after
            for index, row in enumerate(self._logs.get(name, ()))
            if row.offset > after[name]
        ]
        ahead.sort(key=lambda at: (at[1].offset // self._chunk, at[1].partition, at[1].offset))
        if not ahead:
            return None
        left, taken = dict(credit), list[tuple[Row, int]]()
        for index, row in ahead[:max_rows]:
            left[row.partition] -= 1
            if left[row.partition] < 0:
                break
            taken.append((row, self._before(row.partition, index)))
        return self._carrier.delivery(taken)

    def _before(self, partition: str, index: int) -> int:
        return self._logs[partition][index - 1].offset if index else NONE_BEFORE

    def fingerprint(self, positions: Mapping[str, int] | None = None) -> dict[str, object]:
        """Nothing outside this process can change."""
        return {}

    def verify(self, fingerprint: Mapping[str, object]) -> None:
        """As above."""

    def commit(self, positions: Mapping[str, int]) -> None:
        """Remember what the engine has committed."""
        self.committed.update(positions)

    def read_rows(self, partition: str, first: int, last: int) -> pa.RecordBatch:
        """The rows once more."""
        rows = [row for row in self._logs[partition] if first <= row.offset <= last]
        return self._carrier.delivery([(row, NONE_BEFORE) for row in rows]).columns
