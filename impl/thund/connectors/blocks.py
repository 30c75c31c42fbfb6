"""One file as blocks of rows: what every format gives, and how a file is recognised later."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

import pyarrow as pa

from thund.connectors.catalog import DataFile
from thund_contract.errors import InputError

CHUNK_BYTES = 1 << 20

Mark = dict[str, object]
"""JSON data about the first `rows` rows of a file: its label as `file`, its size and mtime_ns when it
was read, and the crc32 of its first `bytes` bytes. Law: S4."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows [first, first + number of rows) of a file or log."""

    first: int
    rows: pa.RecordBatch

    @property
    def stop(self) -> int:
        """The row after the last one."""
        return self.first + int(self.rows.num_rows)


class FileRows(Protocol):
    """A file of rows that can be read from any row on. Law: S1."""

    file: DataFile

    def block(self, row: int) -> Block | None:
        """The block that holds `row`; None where the file ends before it, as it is now."""
        ...

    @property
    def rows_known(self) -> int:
        """How many rows were found so far; all, once `block` gave None."""
        ...

    def mark(self, rows: int) -> Mark:
        """What identifies the first `rows` rows, which were read. Law: S4."""
        ...

    def check(self, mark: Mapping[str, object], where: str) -> None:
        """See that the rows of a mark are still there. Law: S4. Raises: InputError."""
        ...


@dataclass(frozen=True, slots=True)
class Stat:
    """Size and time of change: while both stay, so does the content."""

    size: int
    mtime_ns: int


def stat(path: Path, where: str) -> Stat:
    """Look at a file.

    Law: S4. Raises: InputError where it is gone.
    """
    try:
        found = path.stat()
    except OSError as error:
        lost(f"the file cannot be found: {error.strerror}", where)
    return Stat(found.st_size, found.st_mtime_ns)


def lost(found: str, where: str) -> NoReturn:
    """Rows that were read are not there any more.

    Law: S4. Raises: InputError, always.
    """
    raise InputError(
        found,
        allowed="files keep the rows that were read; new rows come after them",
        where=where,
        action="put the old content back, or start again with a new state_root",
        code="lost_rows",
    )


def unreadable(found: str, where: str, *, action: str) -> NoReturn:
    """The content is not what its format asks for.

    Raises: InputError, always.
    """
    raise InputError(found, allowed="a complete, valid file", where=where, action=action)


def crc_of(path: Path, size: int, start: int = 0, crc: int = 0) -> int:
    """The CRC-32 of bytes [start, size), going on from `crc`. Cost: about 1 s a GB."""
    with path.open("rb") as file:
        file.seek(start)
        left = size - start
        while left > 0 and (data := file.read(min(left, CHUNK_BYTES))):
            crc = zlib.crc32(data, crc)
            left -= len(data)
    return crc


class WholeFile:
    """Marks of a file that never changes once it is there: parquet, or compressed text."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._stat = stat(file.path, str(file.path))
        self._crc: int | None = None

    def mark(self, rows: int) -> Mark:
        """The size and checksum of all of it. Law: S4."""
        self.check_still()
        if self._crc is None:
            self._crc = crc_of(self._file.path, self._stat.size)
        return {
            "file": self._file.label,
            "size": self._stat.size,
            "mtime_ns": self._stat.mtime_ns,
            "rows": rows,
            "bytes": self._stat.size,
            "crc32": self._crc,
        }

    def check_still(self) -> None:
        """See that it is the file that was opened. Law: S4. Raises: InputError."""
        if stat(self._file.path, str(self._file.path)) != self._stat:
            lost("the file changed while it was read", str(self._file.path))

    def check(self, mark: Mapping[str, object], where: str) -> None:
        """See that it is the file of the mark. Law: S4. Raises: InputError."""
        if (self._stat.size, self._stat.mtime_ns) == (mark["size"], mark["mtime_ns"]):
            return
        if self._stat.size != mark["size"]:
            lost(f"the file has {self._stat.size} bytes, it had {mark['size']} when read", where)
        self._crc = crc_of(self._file.path, self._stat.size)
        if self._crc != mark["crc32"]:
            lost(f"the file changed: crc32 {self._crc}, it was {mark['crc32']} when read", where)


def readable(path: Path) -> None:
    """See that a file can be opened at all.

    Raises: InputError otherwise.
    """
    if not os.access(path, os.R_OK):
        raise InputError(
            "the file cannot be read: no permission",
            allowed="files that this user may read",
            where=str(path),
            action="change its permissions",
        )
