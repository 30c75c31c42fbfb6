"""The manifest of an epoch: one JSON document that makes it committed and lets it run again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from thund import parquet
from thund.definition import canonical, trimmed
from thund_contract.errors import StoreError
from thund_contract.vocabulary import (
    Add,
    Clock,
    Config,
    Drain,
    Idle,
    Item,
    PartitionState,
    Remove,
    Rows,
)

FORMAT = 1
"""The version of the state folder's format; a folder of another one is refused (law K8)."""

MAY_DIFFER = ("credits",)
"""The fields of Config that may change between two runs on one state (law K8)."""


_DEFAULTS: dict[str, Any] = {
    each.name: list(each.default) if isinstance(each.default, tuple) else each.default
    for each in dataclasses.fields(Config)
    if each.default is not dataclasses.MISSING
}


class Damaged(Exception):
    """Bytes that are not what was written; the reader adds where, and what to do (law K7)."""


class FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A data file of the epoch. table: what it holds, such as "outbox-late". size: bytes."""

    table: str
    name: str
    size: int
    rows: int
    checksum: str


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An item that is not Rows. at: its place among all items of the epoch."""

    at: int
    kind: str
    partition: str | None = None
    now_ms: int | None = None
    partitions: tuple[str, ...] | None = None


class ItemColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The items of an epoch in processing order, Rows in columns: there can be very many.

    Shape: partition[i] is an index into names; partition, first, last, rows run in parallel, in
    order; marks stand between them at the places they name.
    Law: K3.
    """

    names: list[str]
    partition: list[int]
    first: list[int]
    last: list[int]
    rows: list[int]
    marks: list[Mark]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything of one committed epoch but its tables.

    config: the deterministic core's configuration; definition: the whole pipeline; source: what
    identifies the rows read so far. partitions: removed ones too.
    Law: K3.
    """

    epoch: int
    pipeline: str
    generation: str
    nonce: str
    drained: bool
    watermark: int
    partitions: tuple[PartitionState, ...]
    order: ItemColumns
    fingerprint: str
    config: dict[str, Any]
    definition: dict[str, Any]
    source: dict[str, Any]
    files: tuple[FileEntry, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        """The items of the epoch in processing order.

        Law: K3, T7.
        """
        return unpack(self.order)

    @property
    def positions(self) -> dict[str, int]:
        """The last accepted offset of each partition, removed ones too."""
        return {each.partition: each.last for each in self.partitions}


class Pointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hint in _thund_latest.json, for people and dashboards; recovery never trusts it."""

    epoch: int
    nonce: str


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    checksum: str
    manifest: msgspec.Raw


class _Format(msgspec.Struct, frozen=True):
    format: int


def encode(manifest: Manifest) -> bytes:
    """Write a manifest as JSON, under its own checksum."""
    body = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Envelope(FORMAT, parquet.checksum(body), msgspec.Raw(body)))


def decode(data: memoryview | bytes, *, where: str) -> Manifest:
    """Read a manifest back.

    Raises: Damaged if any byte is not as written; StoreError for another format version.
    """
    try:
        if (found := msgspec.json.decode(data, type=_Format).format) != FORMAT:
            raise _other_format(found, where)
        envelope = msgspec.json.decode(data, type=_Envelope)
        if parquet.checksum(memoryview(envelope.manifest)) != envelope.checksum:
            raise Damaged("its checksum does not fit")
        if msgspec.json.encode(envelope) != data:
            raise Damaged("it is not as it was written")
        return msgspec.json.decode(envelope.manifest, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"it is no manifest: {error}") from error


def pack(items: Iterable[Item]) -> ItemColumns:
    """Put items into columns; unpack() gives exactly them back.

    Law: K3.
    """
    columns = ItemColumns([], [], [], [], [], [])
    places: dict[str, int] = {}
    for at, item in enumerate(items):
        if isinstance(item, Rows):
            place = places.setdefault(item.partition, len(places))
            columns.partition.append(place)
            columns.first.append(item.first)
            columns.last.append(item.last)
            columns.rows.append(item.rows)
        else:
            columns.marks.append(_mark(at, item))
    columns.names.extend(places)
    return columns


def unpack(columns: ItemColumns) -> tuple[Item, ...]:
    """The items that pack() was given, in their order.

    Law: K3.
    """
    names = [columns.names[place] for place in columns.partition]
    items: list[Item] = [
        Rows(*run) for run in zip(names, columns.first, columns.last, columns.rows, strict=True)
    ]
    for mark in columns.marks:
        items.insert(mark.at, _item(mark))
    return tuple(items)


def plain(config: Config) -> dict[str, Any]:
    """A configuration as JSON has it."""
    builtins: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    return builtins


def fingerprint(config: Config) -> str:
    """The same 32 hex digits as Pipeline.fingerprint() gives: all that T7 reads.

    Law: K8, T7.
    """
    text = json.dumps(canonical(config), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two configurations, field by field; a field not there is at its default.

    Law: K8.
    """
    before, after = _flat(_whole(old)), _flat(_whole(new))
    return [
        f"{name}: {before.get(name, 'nothing')!r} in the state, {after.get(name, 'nothing')!r} now"
        for name in sorted(before.keys() | after.keys())
        if name not in MAY_DIFFER and before.get(name, ...) != after.get(name, ...)
    ]


def _whole(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as JSON has it, without what its time knew nothing of or left at defaults."""
    return trimmed({**_DEFAULTS, **config})


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        parts = [(f"{name}.{key}" if name else str(key), part) for key, part in value.items()]
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        parts = [(f"{name}[{place}]", part) for place, part in enumerate(value)]
    else:
        return {name: value}
    return {key: leaf for path, part in parts for key, leaf in _flat(part, path).items()}


def _mark(at: int, item: Add | Remove | Clock | Idle | Drain) -> Mark:
    match item:
        case Add(partition):
            return Mark(at, "add", partition=partition)
        case Remove(partition):
            return Mark(at, "remove", partition=partition)
        case Clock(now_ms):
            return Mark(at, "clock", now_ms=now_ms)
        case Idle(partitions):
            return Mark(at, "idle", partitions=partitions)
        case Drain():
            return Mark(at, "drain")


def _item(mark: Mark) -> Item:
    match mark:
        case Mark(kind="add", partition=str(partition)):
            return Add(partition)
        case Mark(kind="remove", partition=str(partition)):
            return Remove(partition)
        case Mark(kind="clock", now_ms=int(now_ms)):
            return Clock(now_ms)
        case Mark(kind="idle", partitions=tuple(partitions)):
            return Idle(partitions)
        case Mark(kind="drain"):
            return Drain()
    raise Damaged(f"it has an item of an unknown kind: {mark}")


def _other_format(found: int, where: str) -> StoreError:
    return StoreError(
        f"the state is of format version {found}",
        allowed=f"format version {FORMAT}",
        where=where,
        action="run the version of thund that wrote it, or start a new state_root",
        code="other_format",
    )
