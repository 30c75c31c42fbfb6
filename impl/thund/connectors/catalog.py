"""Which files make up a source: their formats, and the logs they are parts of."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from thund.definition import FilesSpec
from thund_contract.errors import CallerError, InputError

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zip": "zip"}

WHOLE = ""
"""The name of the one log that a partition column divides."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file: where it is, what it is called in messages and fingerprints, and its format."""

    path: Path
    label: str
    format: str
    compression: str | None = None


def find_logs(spec: FilesSpec) -> dict[str, tuple[DataFile, ...]]:
    """The files of each log, in name order; names sorted.

    Law: S1. Raises: InputError where there is nothing; CallerError where names collide.
    """
    root = Path(spec.path)
    if spec.partition_by == "folder":
        return _by_folder(spec, root)
    files = _listed(spec, root)
    if not files:
        _nothing(spec, root)
    if spec.partition_by == "column":
        return {WHOLE: files}
    logs: dict[str, tuple[DataFile, ...]] = {}
    for each in files:
        name = _stem(each.path)
        if name in logs:
            raise CallerError(
                f"{logs[name][0].label} and {each.label} would both be partition {name!r}",
                allowed="one file for each partition, named before its first format extension",
                where=spec.path,
                action='rename one, give a format, or use partition_by = "folder"',
            )
        logs[name] = (each,)
    return dict(sorted(logs.items()))


def _by_folder(spec: FilesSpec, root: Path) -> dict[str, tuple[DataFile, ...]]:
    if not root.is_dir():
        _nothing(spec, root)
    logs = {
        folder.name: files
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not _hidden(folder)
        if (files := _chosen(spec, folder.iterdir(), root))
    }
    if not logs:
        _nothing(spec, root)
    return logs


def _listed(spec: FilesSpec, root: Path) -> tuple[DataFile, ...]:
    if root.is_dir():
        return _chosen(spec, root.iterdir(), root)
    if root.exists():
        return (_data_file(spec, root, root.parent, named=True),)
    found = [Path(path) for path in glob.glob(spec.path)]  # noqa: PTH207 - the pattern may be absolute
    return tuple(
        _data_file(spec, path, root.parent, named=True) for path in sorted(found) if path.is_file()
    )


def _chosen(spec: FilesSpec, paths: Iterable[Path], root: Path) -> tuple[DataFile, ...]:
    """The files of a folder whose extension says that they are data."""
    kinds = {path: format_of(path)[0] for path in sorted(paths) if path.is_file()}
    return tuple(
        _data_file(spec, path, root, named=False)
        for path, kind in kinds.items()
        if not _hidden(path) and kind is not None and spec.format in {None, kind}
    )


def _hidden(path: Path) -> bool:
    return path.name.startswith((".", "_"))


def _data_file(spec: FilesSpec, path: Path, root: Path, *, named: bool) -> DataFile:
    kind, compression = format_of(path)
    kind = spec.format if named and spec.format else kind
    if kind is None:
        raise CallerError(
            f"{path.name} does not say its format",
            allowed=f"one of the extensions {', '.join(FORMATS)}, also with "
            f"{', '.join(COMPRESSIONS)}; or source.format",
            where=str(path),
            action='add format = "csv" (or "jsonl", "parquet") to [source]',
        )
    label = Path(os.path.relpath(path, root)).as_posix()
    return DataFile(path, label, kind, None if kind == "parquet" else compression)


def format_of(path: Path) -> tuple[str | None, str | None]:
    """The format and the compression that a name says.

    >>> format_of(Path("JFK.csv.zip"))
    ('csv', 'zip')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if compression else suffixes
    return (FORMATS.get(inner[-1]) if inner else None), compression


def _stem(path: Path) -> str:
    name = path.name
    for table in (COMPRESSIONS, FORMATS):
        suffix = Path(name).suffix
        if suffix.lower() in table:
            name = name.removesuffix(suffix)
    return name


def _nothing(spec: FilesSpec, root: Path) -> None:
    if not root.exists():
        found = "there is no such file or folder"
    elif spec.partition_by == "folder":
        found = "there is no folder with data files in it" if root.is_dir() else "this is a file"
    else:
        found = "no file in this folder is a data file"
    wanted = [s for s, kind in FORMATS.items() if spec.format in {None, kind}]
    raise InputError(
        f"source.path: {found}",
        allowed={
            "file": "a file, a folder of files, or a pattern with *",
            "folder": "a folder that has one folder of files for each partition",
            "column": "a file, a folder of files, or a pattern with *",
        }[spec.partition_by]
        + f"; extensions {', '.join(wanted)}, also with {', '.join(COMPRESSIONS)}",
        where=spec.path,
        action="check the path; a relative one counts from the folder of the TOML file",
        code="missing_source",
    )


def check_prefix(log: str, old: Sequence[str], now: Sequence[str], where: str) -> None:
    """See that files were only added after those that were read: offsets are row numbers.

    Law: S1, S4. Raises: InputError that names the file.
    """
    for place, label in enumerate(old):
        if label not in now:
            raise InputError(
                f"{label} is gone, and rows of it were read",
                allowed="files that were read stay as long as their rows may be asked for again",
                where=f"{where}, partition {log or 'column'}",
                action="put the file back, or start again with a new state_root",
                code="lost_rows",
            )
        if now[place] != label:
            raise InputError(
                f"{now[place]} is new and comes before {label}, which was read",
                allowed="new files whose names sort after those that were read",
                where=f"{where}, partition {log or 'column'}",
                action="rename the new file, or start again with a new state_root",
                code="lost_rows",
            )
