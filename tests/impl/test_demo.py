"""The demo's data are what it says, and its verdict can be no."""

import importlib.util
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from thund_conformance.demo import checks, flights
from thund_conformance.demo.cli import Verdict


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return flights.read_csv()


def test_required_local_times_become_utc_with_their_daylight_saving(table: pa.Table) -> None:
    """The package has the hour in UTC as well, in a column that we do not use otherwise."""
    found = importlib.util.find_spec(flights.PACKAGE)
    assert found is not None
    assert found.origin is not None
    with zipfile.ZipFile(Path(found.origin).parent / "data/flights.csv.zip") as archive:
        raw = archive.read(flights.MEMBER)
    options = csv.ConvertOptions(include_columns=["time_hour", "minute"])
    theirs = csv.read_csv(io.BytesIO(raw), convert_options=options)
    hours = theirs.column("time_hour").cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
    want = hours + theirs.column("minute").to_numpy() * flights.MINUTE_MS
    assert np.array_equal(flights.scheduled_utc_ms(table), want)


def test_required_each_log_is_in_the_order_of_departure(table: pa.Table, tmp_path: Path) -> None:
    written = flights.write_logs(tmp_path, table)
    assert (written.rows, written.cancelled) == (328_521, 8_255)
    assert written.origins == ("EWR", "JFK", "LGA")
    rows = 0
    for origin in written.origins:
        log = pq.read_table(tmp_path / f"{origin}.parquet")
        departed = log.column("departed").cast(pa.int64()).to_numpy()
        scheduled = log.column("scheduled").cast(pa.int64()).to_numpy()
        assert (np.diff(departed) >= 0).all()
        assert (np.diff(scheduled) < 0).any()
        rows += log.num_rows
    assert rows == written.rows


def test_required_one_no_is_a_fail() -> None:
    good = dict.fromkeys(("identical", "sql", "audit", "tlc"), True)
    assert Verdict({"rows": 1}, good).line() == "demo: PASS rows=1 " + " ".join(
        f"{name}=yes" for name in good
    )
    for name in good:
        bad = Verdict({"rows": 1}, good | {name: False})
        assert not bad.good
        assert bad.line().startswith("demo: FAIL")
        assert f"{name}=no" in bad.line()
    assert not Verdict({}, {}).good


def test_required_a_table_that_differs_is_found(tmp_path: Path) -> None:
    """One row of one run is changed by hand: the comparison must say so."""
    import duckdb

    for name in ("calm", "storm"):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as connection:
            for lane in (checks.TABLE, checks.LATE, checks.INVALID):
                connection.execute(f"CREATE TABLE {lane} AS SELECT 1 AS a, 7 AS _epoch")
    paths = tmp_path / "calm.duckdb", tmp_path / "storm.duckdb"
    assert checks.same_results(*paths) == []
    with duckdb.connect(str(paths[1])) as connection:
        connection.execute(f"UPDATE {checks.TABLE} SET _epoch = 8")
    assert checks.same_results(*paths) == []
    with duckdb.connect(str(paths[1])) as connection:
        connection.execute(f"UPDATE {checks.LATE} SET a = 2")
    assert len(checks.same_results(*paths)) == 1


def test_required_counters_that_differ_are_found() -> None:
    one = checks.Committed(3, 5, (), drained=True)
    assert checks.same_progress(one, one) == []
    assert checks.same_progress(one, checks.Committed(3, 6, (), drained=True)) != []
    assert checks.same_progress(one, checks.Committed(3, 5, (), drained=False)) != []
