"""What a definition must satisfy beyond its types, each rule with the path of its key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from thund import calls, expressions
from thund.check_times import check_times
from thund.definition import (
    RECOMPUTE,
    DuckDbSpec,
    FilesSpec,
    MoreSpec,
    ParquetSpec,
    Pipeline,
    SessionSpec,
    TriggerSpec,
)
from thund.refusal import fail, nearest
from thund_contract.vocabulary import (
    APPEND,
    COUNT,
    DISCARDING,
    OPERATIONS,
    UPDATE,
    WINDOW_RULE,
    Aggregate,
)

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

RESERVED_OPERATORS = ("window", "late", "invalid", "unfit")
"""The first window's own name (law E5), and those of the lanes, whose tables stand beside."""

_OPERATOR = re.compile(r"[a-z0-9_]+")


def check(pipeline: Pipeline) -> None:
    """See that a pipeline can mean something.

    Law: A4, E5, K8. Raises: CallerError for the first rule that does not hold.
    """
    where = f"pipeline {pipeline.name!r}"
    _check_texts(pipeline, where)
    check_times(pipeline, where)
    _check_made(pipeline, where)
    _check_id(pipeline, where)
    _check_more(pipeline, where)
    for prefix, operator in operators(pipeline).items():
        _check_key(prefix, operator, where)
        _check_panes(prefix, operator, where)
        _check_log(pipeline, prefix, operator, where)
        _check_aggregates(prefix, operator, where)
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


def operators(pipeline: Pipeline) -> dict[str, Pipeline | MoreSpec]:
    """Each window of a pipeline, by what stands before the path of its keys."""
    return {"": pipeline, **{f"more.{each.name}.": each for each in pipeline.more}}


def _check_more(pipeline: Pipeline, where: str) -> None:
    """Names that tell the windows apart, and a late rule that does not ask one of them. Law: A2, E5."""
    names = [each.name for each in pipeline.more]
    for name, each in zip(names, pipeline.more, strict=True):
        if not _OPERATOR.fullmatch(name) or name in RESERVED_OPERATORS:
            fail(
                "more",
                name,
                "cannot be the name of a window",
                allowed="small letters, digits and _; any name but "
                + ", ".join(RESERVED_OPERATORS),
                action="choose another name",
                where=where,
            )
        if each.table is not None and not isinstance(pipeline.sink, DuckDbSpec):
            fail(
                f"more.{name}.table",
                each.table,
                "names a table, and the sink has none",
                allowed='a table where the sink is one of kind = "duckdb"',
                action="leave it out",
                where=where,
            )
    _check_exact("more", names, where)
    if names and pipeline.watermark.late_rule == WINDOW_RULE:
        fail(
            "watermark.late_rule",
            WINDOW_RULE,
            "does not go with several windows: a row would be late for one and not for another",
            allowed="row, partition",
            action="use another late rule, or make a pipeline of each window",
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
    texts |= {f"rename.{new}": old for new, old in pipeline.rename}
    texts |= {f"rename[{place}]": new for place, (new, _) in enumerate(pipeline.rename)}
    texts |= {f"derive[{place}]": name for place, (name, _) in enumerate(pipeline.derive)}
    by = pipeline.deduplicate.by if pipeline.deduplicate else ()
    texts |= {f"deduplicate.by[{place}]": name for place, name in enumerate(by)}
    texts |= {f"more.{each.name}.table": each.table for each in pipeline.more}
    for prefix, operator in operators(pipeline).items():
        texts |= {f"{prefix}key[{place}]": name for place, name in enumerate(operator.key)}
        for each in operator.aggregates:
            columns = enumerate(calls.columns_of(each))
            texts |= {f"{prefix}aggregates.{each.name}[{at}]": name for at, name in columns}
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


def _check_made(pipeline: Pipeline, where: str) -> None:
    """Columns that the pipeline makes, and the texts that say how. Law: A8."""
    made = {"rename": pipeline.rename, "derive": pipeline.derive}
    for key, pairs in made.items():
        names = [name for name, _ in pairs]
        for name in names:
            _check_output_name(f"{key}.{name}", name, where, action="choose another name")
        _check_once(key, names, where)
    _check_once("rename", [old for _, old in pipeline.rename], where)
    _check_exact("rename", [new for new, _ in pipeline.rename], where)
    for name, text in pipeline.derive:
        expressions.parse(text, where=f"derive.{name}")
    if pipeline.filter is not None:
        expressions.parse(pipeline.filter, where="filter")


def _check_once(key: str, names: list[str], where: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        fail(
            key,
            twice,
            "stands there twice",
            allowed="each column once",
            action="remove one of them",
            where=where,
        )


def _check_key(prefix: str, operator: Pipeline | MoreSpec, where: str) -> None:
    for place, name in enumerate(operator.key):
        key = f"{prefix}key[{place}]"
        _check_output_name(key, name, where, action="rename the column: see [rename]")
    _check_different(f"{prefix}key", operator.key, where)


def _check_id(pipeline: Pipeline, where: str) -> None:
    if pipeline.deduplicate is None:
        return
    if not pipeline.deduplicate.by:
        fail(
            "deduplicate.by",
            [],
            "names no column",
            allowed='the columns of a row\'s id, such as by = ["event_id"]',
            action="name them, or remove [deduplicate]",
            where=where,
        )
    _check_once("deduplicate.by", list(pipeline.deduplicate.by), where)


def _check_panes(prefix: str, operator: Pipeline | MoreSpec, where: str) -> None:
    """Panes are a second form of what update mode shows. Law: E6."""
    if operator.panes is not None and operator.output != UPDATE:
        fail(
            f"{prefix}panes",
            operator.panes,
            f'does not go with output = "{operator.output}"',
            allowed='panes with output = "update": a pane shows what an epoch changed',
            action='add output = "update", or remove panes',
            where=where,
        )
    own = ("_pane", "_timing", "_retraction")
    names = [*operator.key, *(each.name for each in operator.aggregates)]
    taken = next((name for name in names if name.casefold() in own), None)
    if operator.panes is not None and taken is not None:
        fail(
            f"{prefix}panes",
            taken,
            "is a name that the lane of panes keeps for itself",
            allowed=f"keys and aggregates of any name but {', '.join(own)}",
            action="rename the column or the aggregate",
            where=where,
        )
    if operator.panes == DISCARDING and isinstance(operator.window, SessionSpec):
        fail(
            f"{prefix}panes",
            operator.panes,
            "does not go with sessions",
            allowed="accumulating, retracting: sessions merge, so their parts have no id to keep",
            action="use one of these",
            where=where,
        )


def _check_log(pipeline: Pipeline, prefix: str, operator: Pipeline | MoreSpec, where: str) -> None:
    """What a log of files cannot keep: a table that is replaced, a row that is taken away. Law: M1."""
    if not isinstance(pipeline.sink, ParquetSpec):
        return
    if pipeline.runs_as()[0] == RECOMPUTE:
        fail(
            "sink.kind",
            "parquet",
            "does not go with recompute, which replaces the whole table",
            allowed='a log of files with mode = "incremental" and a state_root',
            action="add both, or use a table in a database",
            where=where,
        )
    takes_away = isinstance(operator.window, SessionSpec) and operator.output != APPEND
    if takes_away and operator.panes is None:
        fail(
            "sink.kind",
            "parquet",
            "cannot take away a session that was merged into another",
            allowed='sessions with output = "append", or with panes, or in a database',
            action=f'add {prefix}panes = "retracting", or use {prefix}output = "append"',
            where=where,
        )


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


def _check_aggregates(prefix: str, operator: Pipeline | MoreSpec, where: str) -> None:
    if not operator.aggregates:
        fail(
            f"{prefix}aggregates",
            {},
            "names no aggregate",
            allowed='one or more, such as n = "count"',
            action="say what to compute for each window",
            where=where,
        )
    for each in operator.aggregates:
        key = f"{prefix}aggregates.{each.name}"
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
        _check_call(key, each, where)
    names = [each.name for each in operator.aggregates]
    _check_different(f"{prefix}aggregates", (*operator.key, *names), where)


def _check_call(key: str, each: Aggregate, where: str) -> None:
    """An operation that there is, with as many columns as it reads. Law: G4."""
    text, columns = calls.text_of(each), calls.columns_of(each)
    if each.operation in OPERATIONS:
        arity, form = len(calls.arguments(each.operation)), calls.form(each.operation)
    else:
        arity = _arity_of_monoid(key, each, where)
        form = calls.write(each.operation, ["COLUMN"] * arity)
    if len(columns) == arity or (each.operation == COUNT and not columns):
        return
    fail(
        key,
        text,
        f"names {len(columns)} columns" if columns else "needs a column",
        allowed=f"{form}; a column whose name has a comma is written in quotes",
        action=f'write "{form}"',
        where=where,
    )


def _arity_of_monoid(key: str, each: Aggregate, where: str) -> int:
    """How many columns a monoid reads that was registered before the definition is read."""
    from thund import monoids

    monoid = monoids.registered().get(each.operation)
    if monoid is not None:
        return monoid.arity
    guess = nearest(each.operation.lower(), OPERATIONS)
    return fail(
        key,
        calls.text_of(each),
        "is no operation",
        allowed=f"{', '.join(OPERATIONS)}; or a registered monoid, such as peak@1",
        action=f'did you mean "{guess}"?' if guess else "use one of these",
        where=where,
    )


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
            "is not sorted or has a name twice",
            allowed="each name once, in order",
            action="sort them",
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
