"""Files of lines as blocks of rows: where blocks begin, what was read, and that it is still so.

It knows lines and bytes; what a line means is the business of csv and jsonl.
"""

from __future__ import annotations

import bisect
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.connectors.blocks import (
    Block,
    Mark,
    Stat,
    WholeFile,
    crc_of,
    lost,
    readable,
    stat,
    unreadable,
)
from thund.connectors.catalog import DataFile

LINE_BYTES_MAX = 1 << 26
"""A longer line is not data."""


@dataclass(frozen=True, slots=True, order=True)
class Anchor:
    """Where a block begins: its first row, its first byte, and the CRC-32 of all bytes before it.

    open: the byte before is the end of a line without its line break.
    """

    row: int
    byte: int
    crc: int
    open: bool = False


class LineFormat(Protocol):
    """What a format does with lines."""

    def begin(self, data: bytes) -> int | None:
        """How many bytes come before the first row (a header); None where it is not complete."""
        ...

    def parse(self, data: bytes, first: int) -> pa.RecordBatch:
        """Whole lines as rows; `first` is the offset of the first one, for messages."""
        ...

    def is_row(self, line: bytes) -> bool:
        """Whether a line is a row, and not blank."""
        ...


class TextRows:
    """See FileRows. A plain file may grow at its end; a compressed one may not.

    With `bounded`, a last line without a line break is a row; should it turn out later that it
    had not been finished, that is an error. Without, it waits for its line break.

    Law: S1, S4. Cost: one block of `block_bytes` in memory, and 40 bytes for each block seen.
    """

    def __init__(
        self, file: DataFile, lines: LineFormat, *, block_bytes: int, bounded: bool
    ) -> None:
        self.file = file
        self._lines, self._block_bytes, self._bounded = lines, block_bytes, bounded
        self._bytes = _Bytes(file)
        self._whole = WholeFile(file) if file.compression else None
        self._stat = stat(file.path, str(file.path))
        self._anchors: list[Anchor] = []
        self._latest: tuple[Anchor, Block] | None = None

    @property
    def rows_known(self) -> int:
        """Rows in the blocks that were seen."""
        return self._anchors[-1].row if self._anchors else 0

    def block(self, row: int) -> Block | None:
        """See FileRows."""
        if self._latest is not None and self._latest[1].first <= row < self._latest[1].stop:
            return self._latest[1]
        if not self._begin():
            return None
        place = bisect.bisect_right(self._anchors, row, key=lambda a: a.row) - 1
        while True:
            block = self._read(place)
            if block is None or row < block.stop:
                return block
            place += 1

    def _begin(self) -> bool:
        """Find the first row; a header that is not complete yet is no row."""
        if not self._anchors:
            data = self._lines_from(Anchor(0, 0, 0), None)
            start = self._lines.begin(data)
            if start is None:
                return False
            is_open = start > 0 and not data[:start].endswith(b"\n")
            self._anchors.append(Anchor(0, start, zlib.crc32(data[:start]), is_open))
        return True

    def _read(self, place: int) -> Block | None:
        """The block at an anchor; the anchor of the next one is then known."""
        anchor = self._anchors[place]
        known = self._anchors[place + 1] if place + 1 < len(self._anchors) else None
        data = self._lines_from(anchor, known)
        if not data:
            return None
        block = Block(anchor.row, self._lines.parse(data, anchor.row))
        after = Anchor(
            block.stop,
            anchor.byte + len(data),
            zlib.crc32(data, anchor.crc),
            not data.endswith(b"\n"),
        )
        if known is None or known.byte != after.byte:
            self._anchors.insert(place + 1, after)
        self._latest = (anchor, block)
        return block

    def _lines_from(self, anchor: Anchor, known: Anchor | None) -> bytes:
        """Whole lines from an anchor on, about a block of them, none beyond the next anchor."""
        size = self._block_bytes
        if known is None:
            self._look(anchor)
        while True:
            if known is not None:
                size = min(size, known.byte - anchor.byte)
            data = self._bytes.read(anchor.byte, size)
            if anchor.open and data and not data.startswith((b"\n", b"\r")):
                lost(
                    f"the line that ends at byte {anchor.byte} had no line break when it was read, "
                    "and goes on now",
                    f"{self.file.path}, offset {anchor.row - 1}",
                )
            if known is not None and anchor.byte + len(data) == known.byte:
                return data
            if len(data) < size:
                return data if self._bounded else data[: data.rfind(b"\n") + 1]
            if b"\n" in data:
                return data[: data.rfind(b"\n") + 1]
            if size >= LINE_BYTES_MAX:
                unreadable(
                    f"a line of more than {size} bytes",
                    f"{self.file.path}, offset {anchor.row}",
                    action="see that the file has line breaks",
                )
            size *= 2

    def _look(self, anchor: Anchor) -> None:
        """See what the file is before its end is read: a later change shows against this."""
        if self._whole:
            self._whole.check_still()
            return
        self._stat = stat(self.file.path, str(self.file.path))
        if self._stat.size < anchor.byte:
            lost(
                f"the file has {self._stat.size} bytes, and {anchor.byte} were read",
                str(self.file.path),
            )

    # ---- marks -------------------------------------------------------------------------------------

    def mark(self, rows: int) -> Mark:
        """See FileRows. Cost: the lines of one block are counted once more."""
        if self._whole:
            return self._whole.mark(rows)
        anchor = self._anchor_of(rows)
        return {
            "file": self.file.label,
            "size": self._stat.size,
            "mtime_ns": self._stat.mtime_ns,
            "rows": rows,
            "bytes": anchor.byte,
            "crc32": anchor.crc,
            "open": anchor.open,
        }

    def _anchor_of(self, rows: int) -> Anchor:
        """Where row number `rows` would begin: the end of the row before it."""
        self._begin()
        if not self._anchors:
            return Anchor(0, 0, 0)
        place = bisect.bisect_left(self._anchors, rows, key=lambda a: a.row)
        if place < len(self._anchors) and self._anchors[place].row == rows:
            return self._anchors[place]
        before, after = self._anchors[place - 1], self._anchors[place]
        data = self._bytes.read(before.byte, after.byte - before.byte)
        end = int(row_ends(data, self._lines.is_row)[rows - before.row - 1])
        crc = zlib.crc32(data[:end], before.crc)
        return Anchor(rows, before.byte + end, crc, not data[:end].endswith(b"\n"))

    def check(self, mark: Mapping[str, object], where: str) -> None:
        """See FileRows. Cost: nothing where size and time of change are as they were."""
        if self._whole:
            self._whole.check(mark, where)
            return
        now = stat(self.file.path, where)
        seen: Any = mark
        if now != Stat(seen["size"], seen["mtime_ns"]):
            self._check_content(now, seen, where)
        if self._begin() and self._anchors[-1].row < seen["rows"]:
            self._anchors.append(
                Anchor(seen["rows"], seen["bytes"], seen["crc32"], bool(seen["open"]))
            )

    def _check_content(self, now: Stat, seen: Mapping[str, Any], where: str) -> None:
        if now.size < seen["bytes"]:
            lost(f"the file has {now.size} bytes, and {seen['bytes']} were read", where)
        crc = crc_of(self.file.path, seen["bytes"])
        if crc != seen["crc32"]:
            lost(
                f"the first {seen['bytes']} bytes changed: crc32 {crc}, "
                f"it was {seen['crc32']} when they were read",
                where,
            )
        goes_on = seen["open"] and now.size > seen["bytes"]
        if goes_on and self._bytes.read(seen["bytes"], 1) not in {b"\n", b"\r"}:
            lost("the last line had no line break when it was read, and goes on now", where)


def row_ends(data: bytes, is_row: Callable[[bytes], bool]) -> NDArray[np.int64]:
    """The byte after each row; only a line that begins with a blank can be none."""
    letters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(letters == ord("\n")) + 1
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1]))
    rows = np.ones(len(ends), np.bool_)
    for place in np.flatnonzero(letters[starts] <= ord(" ")).tolist():
        rows[place] = is_row(data[starts[place] : ends[place]])
    return ends[rows]


class _Bytes:
    """Bytes of a file by place; a compressed one is read on, or again from its start."""

    def __init__(self, file: DataFile) -> None:
        readable(file.path)
        self._file = file
        self._stream: IO[bytes] | None = None
        self._at = 0

    def read(self, start: int, size: int) -> bytes:
        """Up to `size` bytes from `start` on; fewer only at the end."""
        where = str(self._file.path)
        try:
            if self._file.compression is None:
                with self._file.path.open("rb") as file:
                    file.seek(start)
                    return file.read(size)
            return self._read_on(start, size)
        except FileNotFoundError:
            lost("the file is gone", where)
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, pa.ArrowException) as error:
            unreadable(
                f"the file cannot be read near byte {start}: {error}",
                where,
                action="write it again; compressed files must be complete",
            )

    def _read_on(self, start: int, size: int) -> bytes:
        if self._stream is None or start < self._at:
            self._stream, self._at = self._open(), 0
        while self._at < start:
            skipped = len(self._stream.read(min(start - self._at, 1 << 20)))
            if skipped == 0:
                return b""
            self._at += skipped
        parts: list[bytes] = []
        while size > 0 and (data := self._stream.read(size)):
            parts.append(data)
            size -= len(data)
            self._at += len(data)
        return b"".join(parts)

    def _open(self) -> Any:
        if self._file.compression != "zip":
            return pa.input_stream(str(self._file.path), compression=self._file.compression)
        archive = zipfile.ZipFile(self._file.path)
        names = [
            info.filename
            for info in archive.infolist()
            if not info.is_dir() and not info.filename.startswith("__MACOSX/")
        ]
        if len(names) != 1:
            unreadable(
                f"the archive holds {len(names)} files: {', '.join(names[:5])}",
                str(self._file.path),
                action="put one data file into each archive",
            )
        return archive.open(names[0])


def first_lines(file: DataFile, block_bytes: int) -> bytes:
    """The first block of a file, whole lines only where there is more."""
    data = _Bytes(file).read(0, block_bytes)
    while len(data) == block_bytes and b"\n" not in data and block_bytes < LINE_BYTES_MAX:
        block_bytes *= 2
        data = _Bytes(file).read(0, block_bytes)
    return data if len(data) < block_bytes else data[: data.rfind(b"\n") + 1]
