"""What a definition must satisfy beyond its types, each rule with the path of its key."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NoReturn

from thund.definition import FilesSpec, Pipeline, TriggerSpec
from thund.durations import format_duration
from thund_contract.errors import CallerError
from thund_contract.vocabulary import COUNT, MAX_EVENT_TIME, OPERATIONS

RESERVED = ("window_start", "window_end", "_deleted")
RESERVED_PREFIXES = ("_gar_", "_epoch")
"""Columns that the outbox adds (laws E5, M1), and room for those to come."""

ARROW_TYPES = (
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "bool", "utf8", "binary", "date32", "time32[s]", "time32[ms]"),
    *("time64[us]", "time64[ns]"),
    *(f"timestamp[{unit}{zone}]" for zone in ("", ", UTC") for unit in ("s", "ms", "us", "ns")),
)
"""What `source.types` may name."""

LARGEST_INT64 = 2**63 - 1


def fail(
    key: str, value: object, problem: str, *, allowed: str, action: str, where: str
) -> NoReturn:
    """Raise the one kind of error a definition has.

    Raises: CallerError, always.
    """
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise CallerError(f"{key}: {shown} {problem}", allowed=allowed, where=where, action=action)


def check(pipeline: Pipeline) -> None:
    """See that a pipeline can mean something.

    Law: A4, E5, K8. Raises: CallerError for the first rule that does not hold.
    """
    where = f"pipeline {pipeline.name!r}"
    _check_texts(pipeline, where)
    _check_times(pipeline, where)
    _check_columns(pipeline, where)
    _check_aggregates(pipeline, where)
    if isinstance(pipeline.source, FilesSpec):
        _check_files(pipeline.source, where)
    _check_trigger(pipeline.trigger, where)
    _check_drain(pipeline, where)
    if not 1 <= pipeline.credits <= LARGEST_INT64:
        fail(
            "credits",
            pipeline.credits,
            "is no number of rows in flight",
            allowed="1 or more rows for each partition",
            action="leave it out for 1048576, or give a positive number",
            where=where,
        )


def _check_texts(pipeline: Pipeline, where: str) -> None:
    texts = {
        "name": pipeline.name,
        "watermark.column": pipeline.watermark.column,
        "state_root": pipeline.state_root,
        "source.path": getattr(pipeline.source, "path", None),
        "source.partition_column": pipeline.source.partition_column,
        "source.order_by": getattr(pipeline.source, "order_by", None),
        "sink.path": getattr(pipeline.sink, "path", None),
        "sink.table": getattr(pipeline.sink, "table", None),
    }
    texts |= {f"key[{place}]": name for place, name in enumerate(pipeline.key)}
    for key, text in texts.items():
        if text is not None and (not text.strip() or "\0" in text or not _encodes(text)):
            fail(
                key,
                text,
                "is no name",
                allowed="a text that is not blank, in Unicode, without NUL",
                action=f"give {key} a name",
                where=where,
            )


def _encodes(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_times(pipeline: Pipeline, where: str) -> None:
    window, watermark = pipeline.window, pipeline.watermark
    if window.size_ms <= 0:
        fail(
            "window.size",
            format_duration(window.size_ms),
            "is no window size",
            allowed='a duration above zero, such as "1h"',
            action="give the length of a window",
            where=where,
        )
    lengths = {"watermark.delay": watermark.delay_ms, "watermark.grace": watermark.grace_ms}
    if watermark.max_future_ms is not None:
        lengths["watermark.max_future"] = watermark.max_future_ms
    for key, value in lengths.items():
        if not 0 <= value <= MAX_EVENT_TIME:
            fail(
                key,
                format_duration(value),
                "is out of range",
                allowed=f"0 to {MAX_EVENT_TIME} ms (2^52)",
                action="give a duration that is not negative",
                where=where,
            )
    total = window.size_ms + abs(window.offset_ms) + watermark.delay_ms + watermark.grace_ms
    if total > MAX_EVENT_TIME:
        fail(
            "window.size + |window.offset| + watermark.delay + watermark.grace",
            format_duration(total),
            "is out of range",
            allowed=f"at most {MAX_EVENT_TIME} ms (2^52) together, so that no window bound overflows",
            action="give smaller durations",
            where=where,
        )


def _check_columns(pipeline: Pipeline, where: str) -> None:
    for place, name in enumerate(pipeline.key):
        _check_output_name(f"key[{place}]", name, where, action="rename the column in the source")
    _check_different("key", pipeline.key, where)


def _check_output_name(key: str, name: str, where: str, *, action: str) -> None:
    if name.casefold() in RESERVED or name.casefold().startswith(RESERVED_PREFIXES):
        fail(
            key,
            name,
            "is a name that the result table keeps for itself",
            allowed=f"any name but {', '.join(RESERVED)} and those that start with "
            + " or ".join(RESERVED_PREFIXES),
            action=action,
            where=where,
        )


def _check_different(key: str, names: Iterable[str], where: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.casefold())
        if other is not None:
            fail(
                key,
                name,
                f"stands beside {json.dumps(other, ensure_ascii=False)}",
                allowed="names that differ, and not only in upper and lower case: "
                "a database may not tell those apart",
                action="remove or rename one of them",
                where=where,
            )
        seen[name.casefold()] = name


def _check_aggregates(pipeline: Pipeline, where: str) -> None:
    if not pipeline.aggregates:
        fail(
            "aggregates",
            {},
            "names no aggregate",
            allowed='one or more, such as n = "count"',
            action="say what to compute for each window",
            where=where,
        )
    for each in pipeline.aggregates:
        key = f"aggregates.{each.name}"
        if not each.name.strip() or "\0" in each.name or not _encodes(each.name):
            fail(
                key,
                each.name,
                "is no name for a column",
                allowed="a text that is not blank, in Unicode, without NUL",
                action="name the aggregate",
                where=where,
            )
        _check_output_name(key, each.name, where, action="name the aggregate otherwise")
        if each.operation not in OPERATIONS:
            fail(
                key,
                each.operation,
                "is no operation",
                allowed=", ".join(OPERATIONS),
                action="use one of these",
                where=where,
            )
        if each.column is None and each.operation != COUNT:
            fail(
                key,
                each.operation,
                "needs a column",
                allowed='count alone goes without one; the others are written as "sum(delay)"',
                action=f'write "{each.operation}(COLUMN)"',
                where=where,
            )
    names = [each.name for each in pipeline.aggregates]
    _check_different("aggregates", (*pipeline.key, *names), where)


def _check_files(source: FilesSpec, where: str) -> None:
    if (source.partition_by == "column") != (source.partition_column is not None):
        fail(
            "source.partition_column",
            source.partition_column,
            f'does not go with partition_by = "{source.partition_by}"',
            allowed='a column name with partition_by = "column", and none otherwise',
            action="give both or neither",
            where=where,
        )
    if not 1 <= source.chunk_rows <= LARGEST_INT64:
        fail(
            "source.chunk_rows",
            source.chunk_rows,
            "is no number of rows",
            allowed="1 or more",
            action="leave it out for 4096, or give a positive number",
            where=where,
        )
    if len(source.delimiter.encode("utf-8", "replace")) != 1 or source.delimiter in '"\r\n\0':
        fail(
            "source.delimiter",
            source.delimiter,
            "cannot separate CSV cells",
            allowed='one ASCII character that is no quote and no line break, such as "," or "\\t"',
            action="give the character that the files use",
            where=where,
        )
    for column, name in source.types:
        if name not in ARROW_TYPES:
            fail(
                f"source.types.{column}",
                name,
                "is no type that a column can be read as",
                allowed=", ".join(ARROW_TYPES),
                action="use one of these, or leave the column to inference",
                where=where,
            )
    _check_exact("source.types", [column for column, _ in source.types], where)


def _check_exact(key: str, names: list[str], where: str) -> None:
    if sorted(set(names)) != names:
        fail(
            key,
            names,
            "is not sorted or names a column twice",
            allowed="each column once, in the order of their names",
            action="sort the pairs",
            where=where,
        )


def _check_trigger(trigger: TriggerSpec, where: str) -> None:
    counts = {
        "trigger.rows": trigger.rows,
        "trigger.bytes": trigger.bytes,
        "trigger.interval": trigger.interval_ms,
    }
    for key, value in counts.items():
        if value is not None and not 1 <= value <= LARGEST_INT64:
            fail(
                key,
                value,
                "cannot cut an epoch",
                allowed="1 or more (interval: a duration above zero)",
                action="give a positive value, or leave it out",
                where=where,
            )


def _check_drain(pipeline: Pipeline, where: str) -> None:
    watches = isinstance(pipeline.source, FilesSpec) and not pipeline.trigger.once
    if pipeline.trigger.drain and watches:
        fail(
            "trigger.drain",
            True,
            "never happens in a run that goes on watching its files",
            allowed="drain = true together with once = true",
            action="add once = true, or leave drain out",
            where=where,
        )
