"""The pipeline as one frozen value, whoever wrote it: the builder, a TOML file or a test.

It knows no Arrow, no file and no clock, so that reading a definition is quick.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr

from thund_contract.vocabulary import (
    APPEND,
    BY_ROW,
    CALENDAR,
    HOPPING,
    ROW_RULE,
    SESSION,
    TUMBLING,
    Aggregate,
    Config,
    Operator,
    WindowSpec,
)

RECOMPUTE = "recompute"
INCREMENTAL = "incremental"


class FilesSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="files"
):
    """Files as logs: a partition is a file, a folder of files in name order, or a column's value.

    types has the Arrow types that are not left to inference, sorted by column.

    Law: S1, S5.
    """

    path: str
    partition_by: Literal["file", "folder", "column"] = "file"
    partition_column: str | None = None
    format: Literal["parquet", "csv", "jsonl"] | None = None
    order_by: str | None = None
    chunk_rows: int = 4096
    delimiter: str = ","
    types: tuple[tuple[str, str], ...] = ()


class StreamSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="stream"
):
    """Record batches that the caller hands over when the pipeline runs. Law: S1."""

    partition_column: str | None = None


class WatermarkSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Event time and lateness: delay is delta, grace is Delta of the laws.

    late_rule: "row" (before W), "window" (its window is closed) or "partition" (before W, or more
    than delay behind its own partition). watermark_update: W moves by "row", or at the end of each
    "epoch", which is there to compare with other engines: the cut shows then. idle_timeout: W no
    longer waits for a partition that was quiet for so long; 0 turns that off.

    Law: A1, A2, A3, A4, A6, W2, W3, W4.
    """

    column: str
    delay_ms: int = field(name="delay", default=0)
    grace_ms: int = field(name="grace", default=0)
    late_rule: Literal["row", "window", "partition"] = ROW_RULE  # type: ignore[assignment]
    watermark_update: Literal["row", "epoch"] = BY_ROW  # type: ignore[assignment]
    max_future_ms: int | None = field(name="max_future", default=None)
    idle_timeout_ms: int = field(name="idle_timeout", default=0)
    late_lane: bool = True


class DeduplicateSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows whose id came before are left out: the columns `by`, remembered for `remember`.

    The id of a row is forgotten when W passes its event time by more than `remember`.

    Law: A7.
    """

    by: tuple[str, ...]
    remember_ms: int = field(name="remember", default=0)


class TumblingSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="tumbling"
):
    """Windows side by side, all of one size. Law: G1."""

    size_ms: int = field(name="size")
    offset_ms: int = field(name="offset", default=0)

    def words(self) -> WindowSpec:
        """As the core reads it."""
        return WindowSpec(self.size_ms, self.offset_ms, TUMBLING)


class HoppingSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="hopping"
):
    """Windows of one size, one at each slide: a row is in each that holds its time. Law: G2."""

    size_ms: int = field(name="size")
    slide_ms: int = field(name="slide")
    offset_ms: int = field(name="offset", default=0)

    def words(self) -> WindowSpec:
        """As the core reads it."""
        return WindowSpec(self.size_ms, self.offset_ms, HOPPING, slide_ms=self.slide_ms)


class SessionSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="session"
):
    """Rows of one key, each less than `gap` after the one before. Law: G3."""

    gap_ms: int = field(name="gap")

    def words(self) -> WindowSpec:
        """As the core reads it."""
        return WindowSpec(0, kind=SESSION, gap_ms=self.gap_ms)


class CalendarSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="calendar"
):
    """An hour, day, week or month of the local time of an IANA zone.

    A window starts `offset` of local time after its unit: offset = "6h" makes days from six to six.

    Law: G5.
    """

    unit: Literal["hour", "day", "week", "month"]
    zone: str
    offset_ms: int = field(name="offset", default=0)

    def words(self) -> WindowSpec:
        """As the core reads it."""
        return WindowSpec(0, self.offset_ms, CALENDAR, unit=self.unit, zone=self.zone)


WindowKind = TumblingSpec | HoppingSpec | SessionSpec | CalendarSpec


class MoreSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One more window over the rows that the pipeline admits, with a result of its own.

    name: small letters, digits and _. table: of a database; None for that of the sink, "_" and the
    name. The rest is as in Pipeline.

    Law: E5, E6.
    """

    name: str
    key: tuple[str, ...]
    window: WindowKind
    aggregates: tuple[Aggregate, ...]
    output: Literal["append", "update", "complete"] = APPEND  # type: ignore[assignment]
    panes: Literal["accumulating", "discarding", "retracting"] | None = None
    table: str | None = None

    def words(self) -> Operator:
        """As the core reads it."""
        return Operator(
            self.name,
            self.key,
            self.window.words(),
            self.aggregates,
            output=self.output,
            panes=self.panes or "",
        )


class DuckDbSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="duckdb"
):
    """A table of a DuckDB file, and its lanes beside it. Law: K5, M1."""

    path: str
    table: str


class ParquetSpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="parquet"
):
    """A folder with one file per epoch: a log of what each epoch shows, never merged.

    path: a folder, or an address that a state_root may have. Where the pipeline has panes, the log
    is that of the panes.

    Law: E6, K5, M3.
    """

    path: str


class MemorySpec(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="memory"
):
    """A table in this process. Law: K5, M1."""


class TriggerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an epoch is cut and when the run ends.

    An epoch is cut at so many rows, bytes or milliseconds, whatever comes first. `once` ends the
    run when what is there is processed; it is true where neither of these is given. `drain` then
    closes all windows.

    Law: K1, W6.
    """

    rows: int | None = None
    bytes: int | None = None
    interval_ms: int | None = field(name="interval", default=None)
    once: bool | None = None
    drain: bool = False

    def __post_init__(self) -> None:
        if self.once is None:
            none_given = self.rows is None and self.bytes is None and self.interval_ms is None
            force_setattr(self, "once", none_given)


class Pipeline(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Source, watermark, key, window, aggregates and sink, and how they run.

    Two equal values run alike. A value that exists is valid: making one checks it.

    rename (pairs of a new and an old name, sorted), derive (pairs of a name and an expression, each
    may use those before it) and filter (an expression) work on the source's columns in this order;
    watermark, deduplicate, key and aggregates name what comes of it. The expressions are those of
    expressions.py. panes: what an append-only sink is shown of a result, each time it changes.
    more: further windows over the same admitted rows, sorted by name.

    Law: A7, A8, E6, K8, R2. Raises: CallerError with the path of the key that is wrong.
    """

    name: str
    source: FilesSpec | StreamSpec
    watermark: WatermarkSpec
    key: tuple[str, ...]
    window: WindowKind
    aggregates: tuple[Aggregate, ...]
    sink: DuckDbSpec | ParquetSpec | MemorySpec
    rename: tuple[tuple[str, str], ...] = ()
    derive: tuple[tuple[str, str], ...] = ()
    filter: str | None = None
    deduplicate: DeduplicateSpec | None = None
    mode: Literal["recompute", "incremental"] = RECOMPUTE  # type: ignore[assignment]
    state_root: str | None = None
    output: Literal["append", "update", "complete"] = APPEND  # type: ignore[assignment]
    panes: Literal["accumulating", "discarding", "retracting"] | None = None
    more: tuple[MoreSpec, ...] = ()
    trigger: TriggerSpec = TriggerSpec()
    credits: int = 1_048_576

    def __post_init__(self) -> None:
        from thund.checks import check

        check(self)

    @staticmethod
    def from_toml(source: str | Path) -> Pipeline:
        """Read a TOML file, or TOML text: a str with a line break or "=" that is not named *.toml.

        Relative paths in a file count from its folder; in a text they stay as they are.

        Raises: CallerError that names the key, what was found and what is allowed.
        """
        from thund.toml import read

        return read(source)

    def to_toml(self) -> str:
        """The text that `from_toml` reads back to an equal value."""
        from thund.toml import write

        return write(self)

    def config(self) -> Config:
        """What the deterministic core reads: all that decides a result. Law: K8, T7."""
        return Config(
            pipeline=self.name,
            event_time=self.watermark.column,
            key=self.key,
            window=self.window.words(),
            aggregates=self.aggregates,
            delay_ms=self.watermark.delay_ms,
            grace_ms=self.watermark.grace_ms,
            late_rule=self.watermark.late_rule,
            watermark_update=self.watermark.watermark_update,
            output=self.output,
            max_future_ms=self.watermark.max_future_ms,
            late_lane=self.watermark.late_lane,
            credits=self.credits,
            idle_timeout_ms=self.watermark.idle_timeout_ms,
            rename=self.rename,
            derive=self.derive,
            filter=self.filter,
            deduplicate=self.deduplicate.by if self.deduplicate else (),
            remember_ms=self.deduplicate.remember_ms if self.deduplicate else 0,
            panes=self.panes or "",
            more=tuple(each.words() for each in self.more),
        )

    def fingerprint(self) -> str:
        """32 hex digits of `canonical(config())`: an old state is refused where they differ.

        Paths, trigger, credits and the run mode are not in it.

        Law: K8.
        """
        text = json.dumps(
            canonical(self.config()), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def runs_as(self) -> tuple[str, str | None]:
        """The mode that runs, and what to tell the user where it is not the one asked for.

        Law: R2.
        """
        if self.mode == INCREMENTAL and self.state_root is None:
            return RECOMPUTE, (
                f"pipeline {self.name!r} asks for incremental mode but has no state_root: "
                "it recomputes from the first row at each trigger; set state_root to keep state"
            )
        return self.mode, None


_LATER: dict[str, tuple[object, ...]] = {
    "slide_ms": (0,),
    "gap_ms": (0,),
    "unit": ("",),
    "zone": ("",),
    "others": ((), []),
}
"""Fields of a window and of an aggregate that came after the first states, and their defaults."""


def canonical(config: Config) -> dict[str, object]:
    """A Config as JSON data without credits and without what stands at its default.

    So a field that a later version adds does not shut it out of an older state; the default of an
    old field must never change. Inside a window and an aggregate the first fields always stand.

    Law: K8.
    """
    fields = dataclasses.asdict(config)
    defaults = {f.name: f.default for f in dataclasses.fields(config)}
    kept = {k: v for k, v in fields.items() if k != "credits" and v != defaults[k]}
    text = json.dumps(trimmed(kept), ensure_ascii=False)
    plain: dict[str, object] = json.loads(text)
    return plain


def trimmed(operator: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration whose windows and aggregates are without later fields that stand at defaults.

    Law: K8.
    """
    plain = dict(operator)
    plain["window"] = _without_defaults(plain["window"])
    plain["aggregates"] = [_without_defaults(each) for each in plain["aggregates"]]
    if "more" in plain:
        plain["more"] = [trimmed(each) for each in plain["more"]]
    return plain


def _without_defaults(fields: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in fields.items() if k not in _LATER or v not in _LATER[k]}
