"""Pipelines as TOML text: reading with errors that name the key, and writing back."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from thund import calls
from thund.definition import (
    CalendarSpec,
    DeduplicateSpec,
    DuckDbSpec,
    FilesSpec,
    HoppingSpec,
    MemorySpec,
    MoreSpec,
    ParquetSpec,
    Pipeline,
    SessionSpec,
    StreamSpec,
    TriggerSpec,
    TumblingSpec,
    WatermarkSpec,
)
from thund.durations import ALLOWED, format_duration, parse_duration
from thund.refusal import fail, nearest
from thund_contract.errors import CallerError

Raw = dict[str, Any]

DURATIONS = {
    "window": ("size", "slide", "gap", "offset"),
    "watermark": ("delay", "grace", "max_future", "idle_timeout"),
    "deduplicate": ("remember",),
    "trigger": ("interval",),
}
KINDS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "source": (FilesSpec, StreamSpec),
    "watermark": (WatermarkSpec,),
    "deduplicate": (DeduplicateSpec,),
    "window": (TumblingSpec, HoppingSpec, SessionSpec, CalendarSpec),
    "sink": (DuckDbSpec, ParquetSpec, MemorySpec),
    "trigger": (TriggerSpec,),
}
PATHS = (("source", "path"), ("sink", "path"), (None, "state_root"))

_AT = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_FURTHER = re.compile(r"more\[(\d+)\]\.?")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


# ---- reading -----------------------------------------------------------------------------------


def read(source: str | Path) -> Pipeline:
    """See Pipeline.from_toml."""
    is_text = isinstance(source, str) and ("\n" in source or "=" in source)
    if is_text and not str(source).endswith(".toml"):
        return decode(_parse(str(source), "TOML text"), where="TOML text")
    path = Path(source)
    raw = _parse(_load(path), str(path))
    _resolve_paths(raw, path.resolve().parent)
    return decode(raw, where=str(path))


def _load(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {error.start} of the file is not UTF-8"
        raise CallerError(
            found, allowed="TOML is UTF-8", where=str(path), action="save the file as UTF-8"
        ) from None
    except OSError as error:
        raise CallerError(
            f"the pipeline file cannot be read: {error.strerror}",
            allowed="a TOML file",
            where=str(path),
            action="check the path and its permissions",
        ) from None


def _parse(text: str, where: str) -> Raw:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CallerError(
            f"this is not TOML: {error}",
            allowed="TOML 1.0, with each key once",
            where=where,
            action="correct the line",
        ) from None


def _resolve_paths(raw: Raw, folder: Path) -> None:
    for section, key in PATHS:
        table = raw if section is None else raw.get(section)
        path = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(path, str) and path.strip() and "://" not in path:
            table[key] = os.path.normpath(folder / path)


def decode(raw: Mapping[str, Any], *, where: str) -> Pipeline:
    """The one way from TOML-shaped data to a value; the builder takes it too.

    Raises: CallerError with the path of the key.
    """
    data = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    _apply_lateness(data, where)
    _apply_durations(data, "", where)
    _apply_types(data, where)
    _apply_columns(data, where)
    _apply_aggregates(data, "", where)
    if "more" in data:
        data["more"] = _more(data["more"], where)
    try:
        return msgspec.convert(data, Pipeline)
    except msgspec.ValidationError as error:
        _explain(str(error), raw, where)
    except CallerError as error:
        raise CallerError(
            error.found, allowed=error.allowed, where=where, action=error.action
        ) from None


def _more(value: object, where: str) -> list[Raw]:
    """Further windows, each a pipeline in small; they have no order."""
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        fail(
            "more",
            value,
            "is no table of windows",
            allowed="for each further window a table of its name, such as [more.daily]",
            action="write [more.daily], [more.daily.window] and [more.daily.aggregates]",
            where=where,
        )
    out = []
    for name, table in sorted(value.items()):
        data = {k: dict(inner) if isinstance(inner, dict) else inner for k, inner in table.items()}
        if "name" in data:
            fail(
                f"more.{name}.name",
                data["name"],
                "is a second name",
                allowed="the name of the table",
                action="remove it",
                where=where,
            )
        _apply_durations(data, f"more.{name}.", where)
        _apply_aggregates(data, f"more.{name}.", where)
        out.append({"name": name, **data})
    return out


def _apply_durations(data: Raw, prefix: str, where: str) -> None:
    for section, keys in DURATIONS.items():
        table = data.get(section)
        for key in keys:
            if isinstance(table, dict) and key in table:
                table[key] = _duration(f"{prefix}{section}.{key}", table[key], where)


def _duration(key: str, value: object, where: str) -> int:
    try:
        return parse_duration(value)
    except ValueError:
        fail(
            key,
            value,
            "is no duration",
            allowed=ALLOWED,
            action="write the duration in this form",
            where=where,
        )


def _apply_lateness(data: Raw, where: str) -> None:
    table = data.get("watermark")
    if not isinstance(table, dict) or "allowed_lateness" not in table:
        return
    for other in ("delay", "grace"):
        if other in table:
            fail(
                "watermark.allowed_lateness",
                table["allowed_lateness"],
                f"stands beside {other} = {json.dumps(table[other], default=str)}",
                allowed="allowed_lateness, which sets delay and grace alike, or delay and grace apart",
                action="remove one of the two forms",
                where=where,
            )
    lateness = _duration("watermark.allowed_lateness", table.pop("allowed_lateness"), where)
    if lateness < 0:
        fail(
            "watermark.allowed_lateness",
            format_duration(lateness),
            "is negative",
            allowed='a duration that is not negative, such as "2h" or "0s"',
            action="say how late a row may be",
            where=where,
        )
    table["delay"] = table["grace"] = lateness


def _apply_types(data: Raw, where: str) -> None:
    source = data.get("source")
    if isinstance(source, dict) and "types" in source:
        types = _pairs("source.types", source["types"], 'delay = "int64"', where)
        source["types"] = sorted(types)


def _apply_columns(data: Raw, where: str) -> None:
    """Renaming has no order; an expression may use the columns that were derived before it."""
    if "rename" in data:
        data["rename"] = sorted(_pairs("rename", data["rename"], 'new = "old"', where))
    if "derive" in data:
        example = 'hour = "hour(departure)"'
        data["derive"] = _pairs("derive", data["derive"], example, where)


def _pairs(key: str, table: object, example: str, where: str) -> list[tuple[str, str]]:
    if not isinstance(table, dict):
        fail(
            key,
            table,
            "is no table",
            allowed="a table of texts",
            action=f"write [{key}], then lines such as {example}",
            where=where,
        )
    for name, text in table.items():
        if not isinstance(text, str):
            fail(
                f"{key}.{name}",
                text,
                "is no text",
                allowed=f"a text, such as {example}",
                action="write it in quotes",
                where=where,
            )
    return list(table.items())


def _apply_aggregates(data: Raw, prefix: str, where: str) -> None:
    if "aggregates" not in data:
        return
    value, key = data["aggregates"], f"{prefix}aggregates"
    if not isinstance(value, dict):
        fail(
            key,
            value,
            "is no table",
            allowed='a table of name = "operation(column)"',
            action=f'write [{key}], then lines such as total = "sum(delay)"',
            where=where,
        )
    data["aggregates"] = [_aggregate(key, name, text, where) for name, text in value.items()]


def _aggregate(key: str, name: str, text: object, where: str) -> Raw:
    try:
        operation, columns = calls.parse(text if isinstance(text, str) else "")
    except ValueError:
        fail(
            f"{key}.{name}",
            text,
            "is no aggregate",
            allowed='"count", "operation(column)" or "operation(column, column)"; '
            "a column whose name has a comma or a quote is written in quotes itself",
            action="write it in this form",
            where=where,
        )
    first, others = (columns[0], columns[1:]) if columns else (None, ())
    return {"name": name, "operation": operation, "column": first, "others": others}


def _explain(message: str, raw: Mapping[str, Any], where: str) -> NoReturn:
    """Say what msgspec found in our own four facts."""
    match = _AT.fullmatch(message)
    assert match is not None
    problem, path = match.group(1), match.group(2) or ""
    spec: type[msgspec.Struct] = Pipeline
    prefix = ""
    if further := _FURTHER.match(path):
        name = sorted(raw["more"])[int(further[1])]
        spec, prefix, path = MoreSpec, f"more.{name}.", path[further.end() :]
        raw = raw["more"][name]
    fields = _fields(path, raw, spec)
    named = _FIELD.fullmatch(problem)
    if named is None:
        raise CallerError(
            f"{prefix}{path or 'the document'}: {_shown(raw, path)} does not fit",
            allowed=_allowed(problem, path, spec),
            where=where,
            action="correct the value",
        )
    key = f"{path}.{named.group(2)}" if path else named.group(2)
    if named.group(1) == "contains unknown":
        guess = nearest(named.group(2).lower(), fields)
        raise CallerError(
            f"{prefix}{key}: no such key",
            allowed=", ".join(fields),
            where=where,
            action=f"did you mean {guess!r}?" if guess else "remove it, or use one of these",
        )
    raise CallerError(
        f"{prefix}{key}: missing",
        allowed=_allowed_missing(key, path, prefix),
        where=where,
        action=f"add {prefix}{key}",
    )


def _fields(path: str, raw: Mapping[str, Any], root: type[msgspec.Struct]) -> tuple[str, ...]:
    if not path:
        every = (f.encode_name for f in msgspec.structs.fields(root))
        return tuple(name for name in every if root is Pipeline or name != "name")
    section = path.split(".", maxsplit=1)[0]
    table = raw.get(section)
    kind = table.get("kind") if isinstance(table, Mapping) else None
    kinds = KINDS.get(section, ())
    spec = next((s for s in kinds if s.__struct_config__.tag == kind), kinds[0] if kinds else None)
    names = tuple(f.encode_name for f in msgspec.structs.fields(spec)) if spec else ()
    tagged = ("kind",) if spec and spec.__struct_config__.tag else ()
    lateness = ("allowed_lateness",) if section == "watermark" else ()
    return (*tagged, *lateness, *names)


def _shown(raw: Mapping[str, Any], path: str) -> str:
    value: Any = raw
    for step in re.findall(r"[^.\[\]]+", path):
        try:
            value = value[int(step)] if isinstance(value, list | tuple) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return "the value"
    return json.dumps(value, ensure_ascii=False, default=str)


_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def _allowed(problem: str, path: str, root: type[msgspec.Struct]) -> str:
    section, _, key = path.partition(".")
    if key == "kind":
        return ", ".join(str(s.__struct_config__.tag) for s in KINDS[section])
    spec = next((s for s in KINDS.get(section, ()) if hasattr(s, key or " ")), root)
    choices = _choices(spec, key or section)
    if choices:
        return ", ".join(choices)
    expected = re.match(r"Expected `(.*?)`", problem)
    if expected is None:
        return problem
    names = [_WORDS.get(name.strip(), name) for name in expected.group(1).split("|")]
    return " or ".join(names)


def _choices(spec: type[msgspec.Struct], name: str) -> tuple[str, ...]:
    for each in msgspec.inspect.type_info(spec).fields:  # type: ignore[attr-defined]
        kinds = (
            each.type.types if isinstance(each.type, msgspec.inspect.UnionType) else (each.type,)
        )
        literals = [k for k in kinds if isinstance(k, msgspec.inspect.LiteralType)]
        if each.encode_name == name and literals:
            return tuple(str(value) for value in literals[0].values)
    return ()


def _allowed_missing(key: str, path: str, prefix: str) -> str:
    if key.endswith(".kind"):
        return "kind = " + " or ".join(json.dumps(s.__struct_config__.tag) for s in KINDS[path])
    examples = {
        "name": 'a text, such as name = "delays"',
        "key": 'a list of columns, such as key = ["carrier"]; [] for one group',
        "source": '[source] with kind = "files" and path = "data"',
        "watermark": '[watermark] with column and allowed_lateness = "2h"',
        "window": f'[{prefix}window] with kind = "tumbling" and size = "1h"',
        "aggregates": f'[{prefix}aggregates] with lines such as n = "count"',
        "sink": '[sink] with kind = "duckdb", path = "out.duckdb" and table = "result"',
        "window.size": 'a duration above zero, such as size = "1h"',
        "window.slide": 'a duration up to the size, such as slide = "5m"',
        "window.gap": 'a duration above zero, such as gap = "30m"',
        "window.zone": 'the name of a time zone, such as zone = "Europe/Berlin"',
        "window.unit": "hour, day, week or month",
        "deduplicate.by": 'a list of columns, such as by = ["event_id"]',
    }
    return examples.get(key, "a text")


# ---- writing -----------------------------------------------------------------------------------


def encode(pipeline: Pipeline) -> Raw:
    """The TOML-shaped data of a value; `decode` reads it back. Defaults are left out."""
    raw: Raw = {"name": pipeline.name}
    raw |= {
        key: value
        for key, value, default in (
            ("mode", pipeline.mode, "recompute"),
            ("state_root", pipeline.state_root, None),
            ("output", pipeline.output, "append"),
            ("panes", pipeline.panes, None),
            ("filter", pipeline.filter, None),
            ("credits", pipeline.credits, 1_048_576),
        )
        if value != default
    }
    raw["key"] = list(pipeline.key)
    raw["source"] = section(pipeline.source)
    raw |= {
        name: dict(pairs)
        for name, pairs in (("rename", pipeline.rename), ("derive", pipeline.derive))
        if pairs
    }
    raw["watermark"] = section(pipeline.watermark)
    if pipeline.deduplicate:
        raw["deduplicate"] = section(pipeline.deduplicate)
    raw["window"] = section(pipeline.window)
    raw["aggregates"] = {each.name: calls.text_of(each) for each in pipeline.aggregates}
    if pipeline.more:
        raw["more"] = {each.name: _further(each) for each in pipeline.more}
    raw["sink"] = section(pipeline.sink)
    raw["trigger"] = section(pipeline.trigger)
    return raw


def _further(more: MoreSpec) -> Raw:
    """A further window without its name, which is that of its table."""
    optional = {
        "output": None if more.output == "append" else more.output,
        "panes": more.panes,
        "table": more.table,
    }
    return {
        "key": list(more.key),
        **{key: value for key, value in optional.items() if value is not None},
        "window": section(more.window),
        "aggregates": {each.name: calls.text_of(each) for each in more.aggregates},
    }


def section(spec: msgspec.Struct) -> Raw:
    """One section as TOML has it: kind first, durations as text, defaults left out."""
    tag = spec.__struct_config__.tag
    raw: Raw = {} if tag is None else {"kind": tag}
    for each in msgspec.structs.fields(spec):
        value = getattr(spec, each.name)
        if value is None or value == each.default:
            continue
        raw[each.encode_name] = format_duration(value) if each.name.endswith("_ms") else value
    if isinstance(spec, FilesSpec) and spec.types:
        raw["types"] = dict(spec.types)
    if isinstance(spec, WatermarkSpec) and spec.delay_ms == spec.grace_ms and spec.delay_ms:
        del raw["grace"]
        raw["allowed_lateness"] = raw.pop("delay")
    return raw


def write(pipeline: Pipeline) -> str:
    """See Pipeline.to_toml."""
    raw = encode(pipeline)
    return "\n".join(_lines("", raw)) + "\n"


def _lines(path: str, table: Raw) -> list[str]:
    """A table and those inside of it; one without a value of its own has no line."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in table.items() if not isinstance(v, dict)]
    if path and lines:
        lines = ["", f"[{path}]", *lines]
    for key, inner in table.items():
        if isinstance(inner, dict):
            lines += _lines(f"{path}.{_key(key)}" if path else _key(key), inner)
    return lines


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return _text(value) if isinstance(value, str) else str(value)
