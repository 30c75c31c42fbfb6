"""Write a pipeline in Python, a step at a time; the value is the one that TOML gives.

>>> from thund.builder import count, files, max_, mean, memory, pipeline
>>> delays = (
...     pipeline("delays")
...     .source(files("data", partition_by="file"))
...     .watermark("departure", allowed_lateness="2h")
...     .key("carrier")
...     .tumbling("1h")
...     .aggregate(flights=count(), worst=max_("delay"), usual=mean("delay"))
...     .sink(memory())
...     .build()
... )
>>> delays.window.size_ms
3600000
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from thund import toml
from thund.definition import (
    INCREMENTAL,
    DuckDbSpec,
    FilesSpec,
    MemorySpec,
    ParquetSpec,
    Pipeline,
    StreamSpec,
)
from thund.operations import (
    Call,
    all_,
    any_,
    count,
    count_distinct,
    first,
    g_counter,
    last,
    lww,
    max_,
    mean,
    min_,
    monoid,
    or_set,
    pn_counter,
    stddev_pop,
    stddev_samp,
    sum_,
    var_pop,
    var_samp,
)
from thund_contract.errors import CallerError

__all__ = [
    "Builder",
    "Call",
    "Window",
    "all_",
    "any_",
    "calendar",
    "count",
    "count_distinct",
    "duckdb",
    "files",
    "first",
    "g_counter",
    "hopping",
    "last",
    "lww",
    "max_",
    "mean",
    "memory",
    "min_",
    "monoid",
    "or_set",
    "parquet",
    "pipeline",
    "pn_counter",
    "session",
    "stddev_pop",
    "stddev_samp",
    "stream",
    "sum_",
    "tumbling",
    "var_pop",
    "var_samp",
]

Duration = str | int
Text = str | os.PathLike[str]

STEPS = (
    "source",
    "rename",
    "derive",
    "filter",
    "watermark",
    "deduplicate",
    "key",
    "window",
    "aggregates",
    "sink",
)
"""The parts of a pipeline, in the order in which rows meet them."""


def files(
    path: Text,
    *,
    partition_by: Literal["file", "folder", "column"] = "file",
    partition_column: str | None = None,
    format: Literal["parquet", "csv", "jsonl"] | None = None,  # noqa: A002
    order_by: str | None = None,
    chunk_rows: int = 4096,
    delimiter: str = ",",
    types: Mapping[str, str] | None = None,
) -> FilesSpec:
    """Parquet, CSV or JSON-lines files, or a folder of them, as partitions. Law: S1, S5."""
    return FilesSpec(
        path=os.fspath(path),
        partition_by=partition_by,
        partition_column=partition_column,
        format=format,
        order_by=order_by,
        chunk_rows=chunk_rows,
        delimiter=delimiter,
        types=tuple(sorted((types or {}).items())),
    )


def stream(*, partition_column: str | None = None) -> StreamSpec:
    """Record batches that are handed over when the pipeline runs. Law: S1."""
    return StreamSpec(partition_column=partition_column)


def duckdb(path: Text, *, table: str) -> DuckDbSpec:
    """A table of a DuckDB file. Law: K5, M1."""
    return DuckDbSpec(path=os.fspath(path), table=table)


def parquet(path: Text) -> ParquetSpec:
    """A folder with one file per epoch. Law: E6, M3."""
    return ParquetSpec(path=os.fspath(path))


def memory() -> MemorySpec:
    """A table in this process. Law: K5, M1."""
    return MemorySpec()


@dataclass(frozen=True, slots=True)
class Window:
    """A kind of windows, not yet checked."""

    raw: Mapping[str, Any]


def tumbling(size: Duration, *, offset: Duration = 0) -> Window:
    """Windows of one size, side by side. Law: G1."""
    return Window({"kind": "tumbling", "size": size, "offset": offset})


def hopping(size: Duration, *, slide: Duration, offset: Duration = 0) -> Window:
    """Windows of one size, one at each slide. Law: G2."""
    return Window({"kind": "hopping", "size": size, "slide": slide, "offset": offset})


def session(gap: Duration) -> Window:
    """Rows of one key, each less than the gap after the one before. Law: G3."""
    return Window({"kind": "session", "gap": gap})


def calendar(
    unit: Literal["hour", "day", "week", "month"], *, zone: str, offset: Duration = 0
) -> Window:
    """Hours, days, weeks or months of a zone's local time. Law: G5."""
    return Window({"kind": "calendar", "unit": unit, "zone": zone, "offset": offset})


def pipeline(name: str) -> Builder:
    """Begin a pipeline; its name is part of each row's identity. Law: E5."""
    return Builder(raw={"name": name})


@dataclass(frozen=True, slots=True)
class Builder:
    """A pipeline being written: each step gives a new value, `build` checks the whole.

    Parts come in the order source, rename, derive, filter, watermark, deduplicate, key, window,
    aggregates, sink; further windows, modes and triggers stand anywhere.
    """

    raw: Mapping[str, Any]
    steps: tuple[str, ...] = field(default=())

    def source(self, spec: FilesSpec | StreamSpec) -> Builder:
        """Where rows come from: `files(...)` or `stream(...)`."""
        return self._step("source", toml.section(spec))

    def rename(self, columns: Mapping[str, str] | None = None, /, **more: str) -> Builder:
        """Columns by a new name: `rename(delay="dep_delay")`."""
        return self._step("rename", {**(columns or {}), **more})

    def derive(self, columns: Mapping[str, str] | None = None, /, **more: str) -> Builder:
        """New columns by expressions, each over those before it: `derive(late="delay > 15")`."""
        return self._step("derive", {**(columns or {}), **more})

    def filter(self, expression: str) -> Builder:
        """Keep the rows of which the expression is true. Law: A8."""
        return self._step("filter", expression)

    def watermark(
        self,
        column: str,
        *,
        allowed_lateness: Duration | None = None,
        delay: Duration | None = None,
        grace: Duration | None = None,
        max_future: Duration | None = None,
        idle_timeout: Duration | None = None,
        late_rule: Literal["row", "window", "partition"] | None = None,
        watermark_update: Literal["row", "epoch"] | None = None,
        late_lane: bool | None = None,
    ) -> Builder:
        """The event-time column, and how late a row may be. Law: A1, A4, A6, W2, W4."""
        options = {
            "allowed_lateness": allowed_lateness,
            "delay": delay,
            "grace": grace,
            "max_future": max_future,
            "idle_timeout": idle_timeout,
            "late_rule": late_rule,
            "watermark_update": watermark_update,
            "late_lane": late_lane,
        }
        return self._step("watermark", {"column": column} | _given(options))

    def deduplicate(self, *columns: str, remember: Duration = 0) -> Builder:
        """Leave out rows whose id came before; the columns are the id. Law: A7."""
        return self._step("deduplicate", {"by": list(columns), "remember": remember})

    def key(self, *columns: str) -> Builder:
        """The columns to group by; none for one group. Law: G4."""
        return self._step("key", list(columns))

    def tumbling(self, size: Duration, *, offset: Duration = 0) -> Builder:
        """See `tumbling`. Law: G1."""
        return self._step("window", dict(tumbling(size, offset=offset).raw))

    def hopping(self, size: Duration, *, slide: Duration, offset: Duration = 0) -> Builder:
        """See `hopping`. Law: G2."""
        return self._step("window", dict(hopping(size, slide=slide, offset=offset).raw))

    def session(self, gap: Duration) -> Builder:
        """See `session`. Law: G3."""
        return self._step("window", dict(session(gap).raw))

    def calendar(
        self,
        unit: Literal["hour", "day", "week", "month"],
        *,
        zone: str,
        offset: Duration = 0,
    ) -> Builder:
        """See `calendar`. Law: G5."""
        return self._step("window", dict(calendar(unit, zone=zone, offset=offset).raw))

    def aggregate(self, **calls: Call) -> Builder:
        """Output columns by name: `total=sum_("delay")`. Law: G4."""
        return self._step("aggregates", _texts(calls))

    def sink(self, spec: DuckDbSpec | ParquetSpec | MemorySpec) -> Builder:
        """Where the result goes: `duckdb(...)`, `parquet(...)` or `memory()`. Law: K5."""
        return self._step("sink", toml.section(spec))

    def incremental(self, state_root: Text | None = None) -> Builder:
        """Keep state between runs, under `state_root`. Law: R2."""
        root = None if state_root is None else os.fspath(state_root)
        return self._option(mode=INCREMENTAL, **_given({"state_root": root}))

    def recompute(self) -> Builder:
        """Compute from the first row at each trigger: the default, said aloud. Law: R2."""
        return self._option(mode="recompute")

    def output(self, output: Literal["append", "update", "complete"]) -> Builder:
        """What an epoch shows. Law: E1, E2, E3."""
        return self._option(output=output)

    def panes(self, panes: Literal["accumulating", "discarding", "retracting"]) -> Builder:
        """Show an append-only sink each change of a result as a pane. Law: E6."""
        return self._option(panes=panes)

    def also(
        self,
        name: str,
        *,
        key: Iterable[str],
        window: Window,
        aggregates: Mapping[str, Call],
        output: Literal["append", "update", "complete"] | None = None,
        panes: Literal["accumulating", "discarding", "retracting"] | None = None,
        table: str | None = None,
    ) -> Builder:
        """One more window over the same rows, with a result of its own; see MoreSpec. Law: E5.

        Raises: CallerError for a name that is taken.
        """
        more: Mapping[str, Any] = self.raw.get("more", {})
        if name in more:
            raise CallerError(
                f"two further windows named {name!r}",
                allowed="a name for each",
                where=f"pipeline {self.raw['name']!r}",
                action="choose another name for one of them",
            )
        own = {"key": list(key), "window": dict(window.raw), "aggregates": _texts(aggregates)}
        options = _given({"output": output, "panes": panes, "table": table})
        return self._option(more={**more, name: own | options})

    def trigger(
        self,
        *,
        rows: int | None = None,
        bytes: int | None = None,  # noqa: A002
        interval: Duration | None = None,
        once: bool | None = None,
        drain: bool | None = None,
    ) -> Builder:
        """When an epoch is cut and when the run ends; see TriggerSpec. Law: K1, W6."""
        options = {
            "rows": rows,
            "bytes": bytes,
            "interval": interval,
            "once": once,
            "drain": drain,
        }
        return self._option(trigger=_given(options))

    def credits(self, rows: int) -> Builder:
        """How many rows of each partition may be in flight. Law: C1."""
        return self._option(credits=rows)

    def build(self) -> Pipeline:
        """The value, checked as TOML is.

        Raises: CallerError for a part that is missing, twice, out of order or wrong.
        """
        where = f"pipeline {self.raw['name']!r}"
        if list(self.steps) != [step for step in STEPS if step in self.steps]:
            raise CallerError(
                f"steps in the order {', '.join(self.steps)}",
                allowed=f"each once, in the order {', '.join(STEPS)}",
                where=where,
                action="write the steps as rows meet them",
            )
        return toml.decode(self.raw, where=where)

    def _step(self, name: str, value: object) -> Builder:
        return Builder({**self.raw, name: value}, (*self.steps, name))

    def _option(self, **values: object) -> Builder:
        return replace(self, raw={**self.raw, **values})


def _given(options: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _texts(calls: Mapping[str, Call]) -> dict[str, str]:
    """Aggregates as TOML writes them."""
    return {name: call.text for name, call in calls.items()}
