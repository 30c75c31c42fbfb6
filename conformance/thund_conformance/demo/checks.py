"""What the demo claims, each claim as a question that can be answered with no.

The answers come from the database and the state folder that the runs left on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thund.history import History
from thund.stores import open_store
from thund_contract.vocabulary import PartitionState

TABLE = "delays"
LATE = f"{TABLE}_late"
INVALID = f"{TABLE}_invalid"

LOG = """
    SELECT regexp_extract(filename, '([^/\\\\]+)\\.parquet$', 1) AS partition,
           file_row_number AS "offset", scheduled, carrier, delay
    FROM read_parquet('{data}/*.parquet', filename = true, file_row_number = true)
"""
"""The logs themselves: the file is the partition, the row number is the offset."""

GROUPED = f"""
    WITH log AS ({LOG})
    SELECT carrier, epoch_ms(scheduled) - epoch_ms(scheduled) % 3600000 AS start_ms,
           count(*), sum(delay)::BIGINT, min(delay), max(delay), avg(delay)
    FROM log
    ANTI JOIN runs.{LATE} AS late USING (partition, "offset")
    ANTI JOIN runs.{INVALID} AS invalid USING (partition, "offset")
    GROUP BY ALL ORDER BY ALL
"""
"""Plain SQL over the admitted rows; it shares nothing with the engine."""

SHOWN = f"""
    SELECT carrier, epoch_ms(window_start) AS start_ms, flights, total, least, most, mean
    FROM runs.{TABLE} ORDER BY ALL
"""

BUSIEST = f"""
    WITH log AS ({LOG}),
    late AS (
        SELECT carrier, epoch_ms(scheduled) - epoch_ms(scheduled) % 3600000 AS start_ms,
               count(*) AS late, max(delay) AS worst
        FROM log SEMI JOIN runs.{LATE} AS lane USING (partition, "offset") GROUP BY ALL
    )
    SELECT late.start_ms, late.carrier, coalesce(flights, 0), late, mean, worst
    FROM late LEFT JOIN runs.{TABLE} AS shown
      ON shown.carrier = late.carrier AND epoch_ms(shown.window_start) = late.start_ms
    ORDER BY late DESC, start_ms, late.carrier LIMIT 8
"""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a state folder says of its newest epoch."""

    epochs: int
    watermark: int
    partitions: tuple[PartitionState, ...]
    drained: bool

    def total(self, counter: str) -> int:
        """A counter over all partitions."""
        return sum(getattr(p, counter) for p in self.partitions)


def committed(state_root: Path) -> Committed:
    """W, counters and the number of epochs, from the newest manifest."""
    history = History(open_store(str(state_root), create=False))
    manifest = history.manifest(history.highest())
    return Committed(manifest.epoch, manifest.watermark, manifest.partitions, manifest.drained)


def same_results(calm: Path, storm: Path) -> list[str]:
    """Differences between two runs: tables and late lanes, each without the epoch of a row."""
    found = []
    for table in (TABLE, LATE, INVALID):
        rows = [
            _rows(database, f"SELECT * EXCLUDE (_epoch) FROM runs.{table} ORDER BY ALL")
            for database in (calm, storm)
        ]
        if rows[0] != rows[1]:
            found.append(f"{table}: {_first_difference(*rows)}")
    return found


def same_progress(calm: Committed, storm: Committed) -> list[str]:
    """Differences in W, the drain and every counter of every partition."""
    pairs = [("W", calm.watermark, storm.watermark), ("drained", calm.drained, storm.drained)]
    found = [f"{name}: {a} and {b}" for name, a, b in pairs if a != b]
    if calm.partitions != storm.partitions:
        found.append(f"partitions: {_first_difference(calm.partitions, storm.partitions)}")
    return found


def same_as_sql(data: Path, database: Path) -> list[str]:
    """The table against a GROUP BY over the admitted rows; both counted by DuckDB."""
    shown, grouped = _rows(database, SHOWN), _rows(database, GROUPED.format(data=data))
    if shown == grouped and shown:
        return []
    return [f"table and GROUP BY: {_first_difference(shown, grouped)}"]


def busiest_late(data: Path, database: Path) -> list[tuple[Any, ...]]:
    """Windows that lost most rows to lateness: start, carrier, admitted, late, mean, worst."""
    return _rows(database, BUSIEST.format(data=data))


def _rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"ATTACH '{database}' AS runs (READ_ONLY)")
        return connection.execute(query).fetchall()


def _first_difference(left: Any, right: Any) -> str:
    """The first place where two lists differ, in a few words."""
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return f"row {place} is {a} and {b}"
    return f"{len(left)} rows and {len(right)} rows"
