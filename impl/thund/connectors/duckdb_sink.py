"""Keep the result as a table in a DuckDB file, merged by id, with its progress beside it.

Instants are stored as plain TIMESTAMP in UTC, whatever their zone: a zone column would show in the
reader's own zone. Durations are BIGINT in their own unit, for INTERVAL has no fixed length.
_gar_id is a BLOB: it is a hash, not a UUID of any version, and hex(_gar_id) shows the digits that
thund shows. It carries no index; MERGE joins by hash, and only MERGE writes.
"""

# ruff: noqa: S608 (statements are built from names that were checked, and quoted)
from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from thund import parquet
from thund import sink as rules
from thund.epoch import LANES, Outbox
from thund.sink import RECOMPUTE, Record
from thund_contract.errors import CallerError, StoreError

PROGRESS = "_thund_progress"
_OFFERED = "_thund_offered"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as thund has it, and as DuckDB keeps it. stored: the Arrow type on the way."""

    name: str
    declared: Any
    stored: Any
    sql: str


@dataclass(frozen=True, slots=True)
class _Result:
    """The table of one window. schema: of the outbox's rows."""

    table: str
    schema: Any
    columns: tuple[_Column, ...]


class DuckDbSink:
    """A table of a DuckDB file, and its lanes <table>_late, <table>_invalid and <table>_unfit.

    schema is that of an outbox's rows. more: of each further window its table and schema. The file
    is held, and so locked, until close().

    Law: K5, M1, M2, R2.
    Raises: CallerError for a bad name, one name for two tables, a type without a place in DuckDB or
    a table with other columns; StoreError where the file cannot be opened.
    """

    def __init__(
        self,
        path: str,
        table: str,
        schema: pa.Schema,
        *,
        more: Mapping[str, tuple[str, pa.Schema]] | None = None,
    ) -> None:
        self.name = f"duckdb {path}, table {table}"
        self._table = _checked_name(table, self.name)
        tables = {"": (table, schema), **(more or {})}
        self._results = {
            operator: _Result(_checked_name(name, self.name), columns, _columns(columns, self.name))
            for operator, (name, columns) in tables.items()
        }
        self._lane_columns = {
            lane: _columns(rules.with_epoch(fields.empty_table(), 0).schema, self.name)
            for lane, fields in LANES.items()
        }
        self._require_names()
        self._lock = threading.Lock()
        self._connection = self._open(path)
        try:
            self._in_transaction(self._create)
        except BaseException:
            self.close()
            raise

    # ---- what a sink can be asked ------------------------------------------------------------------

    def record(self) -> Record | None:
        with self._lock, self._told():
            return self._record()

    def has_rows(self) -> bool:
        with self._lock, self._told():
            return self._any_rows()

    def apply(self, outbox: Outbox, *, pipeline: str, generation: str) -> bool:
        """Merge an outbox, append its lanes and move the record on, in one transaction.

        Law: K5, M1, M2.
        """
        own = Record(pipeline, generation, outbox.epoch)
        self._require_schemas(outbox)

        def work() -> bool:
            record = self._record()
            rows = record is None and self._any_rows()
            if not rules.due(record, name=self.name, rows=rows, own=own):
                return False
            self._merge_all(outbox)
            self._append_lanes(outbox)
            self._set_record(own)
            return True

        return bool(self._in_transaction(work))

    def replace(self, outbox: Outbox, *, pipeline: str, version: int) -> bool:
        """Put an outbox in place of everything, if the record stands where it was read.

        Law: R2.
        """
        own = Record(pipeline, RECOMPUTE, version)
        self._require_schemas(outbox)

        def work() -> bool:
            rows = self._any_rows()
            if not rules.replaceable(self._record(), name=self.name, rows=rows, own=own):
                return False
            self._empty()
            self._merge_all(outbox)
            self._append_lanes(outbox)
            self._set_record(own)
            return True

        return bool(self._in_transaction(work))

    def reset(self, *, pipeline: str, generation: str) -> None:
        """Empty table and lanes and start the record at 0, in one transaction.

        Law: K5.
        """

        def work() -> None:
            self._empty()
            self._set_record(Record(pipeline, generation, 0))

        self._in_transaction(work)

    def table(self, operator: str = "") -> pa.Table:
        result = self._results[operator]
        with self._lock, self._told():
            return self._read(result.table, result.columns, "_gar_id")

    def lanes(self) -> dict[str, pa.Table]:
        with self._lock, self._told():
            return {
                lane: self._read(self._lane(lane), columns, "_epoch, rowid")
                for lane, columns in self._lane_columns.items()
            }

    def close(self) -> None:
        self._connection.close()

    # ---- statements --------------------------------------------------------------------------------

    def _create(self) -> None:
        """Make what is missing, and refuse what is there and different."""
        self._run(
            f"CREATE TABLE IF NOT EXISTS {PROGRESS} (table_name VARCHAR PRIMARY KEY, "
            "pipeline VARCHAR NOT NULL, generation VARCHAR NOT NULL, last BIGINT NOT NULL)"
        )
        for table, columns in self._all():
            listed = ", ".join(f"{_quoted(each.name)} {each.sql}" for each in columns)
            self._run(f"CREATE TABLE IF NOT EXISTS {_quoted(table)} ({listed})")
            self._require_columns(table, columns)

    def _require_names(self) -> None:
        names = [table.lower() for table, _ in self._all()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise CallerError(
                f"two tables are called {', '.join(twice)}",
                allowed="for each window, and each lane, a table of its own",
                where=self.name,
                action="set `table` of the further window",
                code="table_names",
            )

    def _require_schemas(self, outbox: Outbox) -> None:
        for operator, shown in outbox.shown().items():
            schema = self._results[operator].schema
            rules.require_schema(schema, shown.rows.schema, name=self.name)

    def _require_columns(self, table: str, columns: tuple[_Column, ...]) -> None:
        found = self._run(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE NOT internal AND "
            "schema_name = current_schema() AND lower(table_name) = lower(?) ORDER BY column_index",
            [table],
        )
        wanted = [(each.name, each.sql) for each in columns]
        if found != wanted:
            raise CallerError(
                f"table {table} has the columns {_listed(found)}",
                allowed=f"the columns {_listed(wanted)}",
                where=self.name,
                action="choose another table, or change the pipeline's keys and aggregates back",
                code="table_schema",
            )

    def _record(self) -> Record | None:
        found = self._run(
            f"SELECT pipeline, generation, last FROM {PROGRESS} WHERE table_name = ?",
            [self._table.lower()],
        )
        return Record(*found[0]) if found else None

    def _set_record(self, record: Record) -> None:
        """Move the record on, in the transaction of the rows.

        Law: K5.
        """
        key = self._table.lower()
        values = [record.pipeline, record.generation, record.last, key]
        if self._record() is None:
            insert = f"INSERT INTO {PROGRESS} (pipeline, generation, last, table_name) "
            self._run(insert + "VALUES (?, ?, ?, ?)", values)
        else:
            update = f"UPDATE {PROGRESS} SET pipeline = ?, generation = ?, last = ? "
            self._run(update + "WHERE table_name = ?", values)

    def _any_rows(self) -> bool:
        names = " OR ".join(f"EXISTS (FROM {_quoted(table)})" for table, _ in self._all())
        return bool(self._run(f"SELECT {names}")[0][0])

    def _merge_all(self, outbox: Outbox) -> None:
        for operator, shown in outbox.shown().items():
            self._merge(self._results[operator], shown.rows)

    def _merge(self, result: _Result, rows: pa.Table) -> None:
        """Newer rows go over older ones, and newer tombstones take rows away.

        Law: M1.
        """
        names = [_quoted(each.name) for each in result.columns]
        with self._offered(rows, result.columns):
            self._run(
                f"MERGE INTO {_quoted(result.table)} AS t USING {_OFFERED} AS o "
                "ON t._gar_id = o._gar_id "
                "WHEN MATCHED AND o._epoch > t._epoch AND o._deleted THEN DELETE "
                "WHEN MATCHED AND o._epoch > t._epoch THEN UPDATE SET "
                + ", ".join(f"{name} = o.{name}" for name in names)
                + f" WHEN NOT MATCHED AND NOT o._deleted THEN INSERT ({', '.join(names)}) VALUES ("
                + ", ".join(f"o.{name}" for name in names)
                + ")"
            )

    def _append_lanes(self, outbox: Outbox) -> None:
        """Add the lanes' rows with their epoch; the record moves on in the same transaction.

        Law: A6, M3.
        """
        for lane, rows in outbox.lanes().items():
            if rows.num_rows:
                marked = rules.with_epoch(rows, outbox.epoch)
                with self._offered(marked, self._lane_columns[lane]):
                    self._run(f"INSERT INTO {_quoted(self._lane(lane))} BY NAME FROM {_OFFERED}")

    def _empty(self) -> None:
        for table, _ in self._all():
            self._run(f"DELETE FROM {_quoted(table)}")

    @contextmanager
    def _offered(self, rows: pa.Table, columns: tuple[_Column, ...]) -> Iterator[None]:
        """Show Arrow rows to DuckDB, without a copy, for the statement inside."""
        stored = {each.name: each.stored for each in columns}
        shown = [
            column if column.type == stored.get(name, column.type) else column.cast(stored[name])
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        ]
        self._connection.register(_OFFERED, pa.table(shown, names=rows.column_names))
        try:
            yield
        finally:
            self._connection.unregister(_OFFERED)

    def _read(self, table: str, columns: tuple[_Column, ...], order: str) -> pa.Table:
        names = ", ".join(_quoted(each.name) for each in columns)
        query = f"SELECT {names} FROM {_quoted(table)} ORDER BY {order}"
        found = self._connection.sql(query).to_arrow_table()
        return pa.table(
            [parquet.as_type(found.column(i), each.declared) for i, each in enumerate(columns)],
            schema=pa.schema([pa.field(each.name, each.declared) for each in columns]),
        )

    def _all(self) -> list[tuple[str, tuple[_Column, ...]]]:
        lanes = [(self._lane(lane), columns) for lane, columns in self._lane_columns.items()]
        return [*((each.table, each.columns) for each in self._results.values()), *lanes]

    def _lane(self, lane: str) -> str:
        return f"{self._table}_{lane}"

    # ---- the connection ----------------------------------------------------------------------------

    def _open(self, path: str) -> Any:
        import duckdb

        with self._told():
            return duckdb.connect(path)

    def _run(self, statement: str, values: list[object] | None = None) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
        return found

    def _in_transaction(self, work: Callable[[], object]) -> object:
        """Do some work at once or not at all; where another writer was faster, look again."""
        import duckdb

        beaten = (duckdb.TransactionException, duckdb.ConstraintException)
        with self._lock, self._told():
            for attempt in range(1, _ATTEMPTS + 1):
                self._run("BEGIN")
                try:
                    done = work()
                    self._run("COMMIT")
                except BaseException as error:
                    with suppress(duckdb.Error):
                        self._run("ROLLBACK")
                    if not isinstance(error, beaten) or attempt == _ATTEMPTS:
                        raise
                else:
                    return done
        raise AssertionError

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what DuckDB says into a StoreError that says what to do."""
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            text = str(error).splitlines()[0]
            locked = "lock on file" in text
            raise StoreError(
                f"DuckDB refused: {text}",
                allowed="a DuckDB file that this process alone writes, or a path where it can make "
                "one; what was committed stands",
                where=self.name,
                action="close the other program that has the file open, then start again"
                if locked
                else "see the cause above, mend it, then start again",
                code="sink_locked" if locked else "sink",
            ) from error


def _checked_name(table: str, where: str) -> str:
    if _IDENTIFIER.fullmatch(table) and not table.lower().startswith("_thund"):
        return table
    raise CallerError(
        f"{table!r} cannot be the name of a table",
        allowed="a letter or _, then up to 99 letters, digits or _; not a name that starts with "
        "_thund",
        where=where,
        action="choose another name for the table",
        code="bad_table_name",
    )


def _columns(schema: pa.Schema, where: str) -> tuple[_Column, ...]:
    shown = [field for field in schema if field.name != "_deleted"]
    names = [field.name.lower() for field in shown]
    if twice := {name for name in names if names.count(name) > 1}:
        raise CallerError(
            f"several columns are called {', '.join(sorted(twice))}",
            allowed="names that differ in more than upper and lower case, as DuckDB asks",
            where=where,
            action="rename a key column or an aggregate",
            code="column_names",
        )
    return tuple(_column(field, where) for field in shown)


_PLAIN = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
}


def _column(field: Any, where: str) -> _Column:
    """Where a column goes. Raises: CallerError for a type that DuckDB cannot hold exactly."""
    if pa.types.is_list(field.type):
        inner = _column(pa.field(field.name, field.type.value_type), where)
        return _Column(field.name, field.type, pa.list_(inner.stored), f"{inner.sql}[]")
    stored = _stored_type(field.type)
    if stored in _PLAIN:
        sql = _PLAIN[stored]
    elif pa.types.is_timestamp(stored):
        sql = "TIMESTAMP_NS" if stored.unit == "ns" else "TIMESTAMP"
    elif pa.types.is_time64(stored):
        sql = "TIME_NS" if stored.unit == "ns" else "TIME"
    elif pa.types.is_decimal128(stored) and stored.scale >= 0:
        sql = f"DECIMAL({stored.precision},{stored.scale})"
    else:
        raise CallerError(
            f"column {field.name} has the type {field.type}",
            allowed="booleans, numbers (decimals up to 38 digits), texts, bytes, dates, times, "
            "timestamps and durations, and lists of these",
            where=where,
            action="use another key or aggregate, or cast the column in the source",
            code="column_type",
        )
    return _Column(field.name, field.type, stored, sql)


def _stored_type(declared: Any) -> Any:
    """The Arrow type in which a column is handed to DuckDB and comes back, without loss."""
    kind = pa.types
    if kind.is_dictionary(declared):
        return _stored_type(declared.value_type)
    if kind.is_list(declared):
        return pa.list_(_stored_type(declared.value_type))
    if kind.is_timestamp(declared):
        return pa.timestamp("ns" if declared.unit == "ns" else "us")
    if kind.is_time(declared):
        return pa.time64("ns" if declared.unit == "ns" else "us")
    if kind.is_duration(declared):
        return pa.int64()
    if kind.is_float16(declared):
        return pa.float32()
    if kind.is_date64(declared):
        return pa.date32()
    if kind.is_decimal(declared) and declared.precision <= 38:
        return pa.decimal128(declared.precision, declared.scale)
    if kind.is_large_string(declared) or kind.is_string_view(declared):
        return pa.string()
    if kind.is_large_binary(declared) or kind.is_binary_view(declared):
        return pa.binary()
    if kind.is_fixed_size_binary(declared):
        return pa.binary()
    return declared


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(columns: list[tuple[Any, ...]]) -> str:
    return ", ".join(f"{each[0]} {each[1]}" for each in columns)
