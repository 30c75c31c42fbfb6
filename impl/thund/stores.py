"""Keep named bytes on a local disk or in memory, with the one atomic step that a commit needs.

It refuses to know what the bytes mean.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, MemoryStore

from thund_contract.errors import CallerError, StoreError

MISSING = "missing"
"""The code of the StoreError for a file that is not there."""

Data = bytes | memoryview

_WHAT_TO_DO = {
    errno.ENOSPC: "the disk is full: free some space, then start again; it goes on from there",
    errno.EDQUOT: "the disk quota is used up: free some space, then start again",
    errno.EFBIG: "the process may not write files this large: raise the limit, then start again",
    errno.EROFS: "the file system is read-only: make it writable, or choose another folder",
    errno.EACCES: "this user may not do that: change the permissions, or choose another folder",
    errno.EPERM: "this user may not do that: change the permissions, or choose another folder",
    errno.ENOTDIR: "a file stands where a folder is needed: move it, or choose another folder",
    errno.EISDIR: "a folder stands where a file is needed: move it, or choose another folder",
}


class Store(Protocol):
    """What a checkpoint asks of a store. Names are relative, with "/" between folders."""

    url: str

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Create a durable file; False, and nothing changed, if the name is taken.

        Law: K2, K6. No reader ever sees a part of it.
        """
        ...

    def put_files(self, files: Mapping[str, Data]) -> None:
        """Create durable data files; one that stands there with the same bytes is left so.

        Law: K1, K10.
        """
        ...

    def put(self, name: str, data: Data) -> None:
        """Write a file, over an older one."""
        ...

    def get(self, name: str) -> memoryview:
        """Read a file. Raises: StoreError with code MISSING if it is not there."""
        ...

    def exists(self, name: str) -> bool:
        """Whether a file has this name."""
        ...

    def folders(self) -> list[str]:
        """The names of the folders at the top, in no order."""
        ...

    def list(self, folder: str) -> list[str]:
        """The full names of the files right in a folder, sorted."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def written_ms(self, name: str) -> int:
        """When the store took a file, in milliseconds. Raises: StoreError as `get`."""
        ...

    def confirm(self, name: str) -> None:
        """Make a file durable that another process may have died over.

        Law: K10.
        """
        ...


class ObjectStore:
    """A store whose server makes an object durable and whole before it answers."""

    def __init__(self, url: str, backend: MemoryStore | LocalStore) -> None:
        self.url, self._backend = url, backend

    def put_if_absent(self, name: str, data: Data) -> bool:
        with _told("create", self._where(name)):
            try:
                obstore.put(self._backend, name, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, FileExistsError):
                return False
        return True

    def put_files(self, files: Mapping[str, Data]) -> None:
        for name, data in files.items():
            if not self.put_if_absent(name, data):
                self._require_same(name, data)

    def put(self, name: str, data: Data) -> None:
        with _told("write", self._where(name)):
            obstore.put(self._backend, name, data, use_multipart=False)

    def get(self, name: str) -> memoryview:
        with _told("read", self._where(name)):
            return memoryview(obstore.get(self._backend, name).bytes())

    def exists(self, name: str) -> bool:
        with _told("look at", self._where(name)):
            try:
                obstore.head(self._backend, name)
            except FileNotFoundError:
                return False
        return True

    def folders(self) -> list[str]:
        with _told("list", self.url):
            found = obstore.list_with_delimiter(self._backend)["common_prefixes"]
        return [str(name).rstrip("/") for name in found]

    def list(self, folder: str) -> list[str]:
        with _told("list", self._where(folder)):
            found = obstore.list_with_delimiter(self._backend, folder)["objects"]
        return sorted(str(each["path"]) for each in found)

    def delete(self, name: str) -> None:
        with _told("remove", self._where(name)), suppress(FileNotFoundError):
            obstore.delete(self._backend, name)

    def written_ms(self, name: str) -> int:
        with _told("look at", self._where(name)):
            moment = obstore.head(self._backend, name)["last_modified"]
        return int(moment.timestamp() * 1000)

    def confirm(self, name: str) -> None:
        self.exists(name)

    def _where(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}"

    def _require_same(self, name: str, data: Data) -> None:
        if self.get(name) != memoryview(data):
            raise StoreError(
                "a file with this name holds other bytes",
                allowed="a new name, or the same bytes again after an attempt that failed",
                where=self._where(name),
                action="start again: a new process writes under names of its own",
                code="name_taken",
            )


class Disk:
    """The steps of a durable write, one by one, under a folder of a local disk.

    A crash is judged by the order of these calls, so they are apart and can be recorded.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.backend = LocalStore(root)

    def write_new(self, name: str, data: Data) -> None:
        """Write a file that must not exist; not yet durable. Raises: FileExistsError."""
        try:
            obstore.put(self.backend, name, data, mode="create", use_multipart=False)
        except AlreadyExistsError as error:
            raise FileExistsError(name) from error

    def write(self, name: str, data: Data) -> None:
        """Write a file over an older one; not yet durable."""
        obstore.put(self.backend, name, data, use_multipart=False)

    def sync_file(self, name: str) -> None:
        """Make the bytes of a file durable.

        Law: K10.
        """
        _fsync(self.root / name, os.O_RDONLY)

    def sync_folder(self, name: str) -> None:
        """Make the names in a folder durable; "" is the root.

        Law: K10.
        """
        _fsync(self.root / name, os.O_RDONLY | os.O_DIRECTORY)

    def rename_new(self, old: str, new: str) -> None:
        """Rename a file to a name that must not exist. Raises: FileExistsError.

        Law: K2.
        """
        try:
            obstore.rename(self.backend, old, new, overwrite=False)
        except AlreadyExistsError as error:
            raise FileExistsError(new) from error

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            obstore.delete(self.backend, name)


class DiskStore(ObjectStore):
    """A folder on a local disk, synced in an order that a power cut cannot turn round.

    Law: K10.
    """

    def __init__(self, url: str, disk: Disk) -> None:
        super().__init__(url, disk.backend)
        self._disk = disk
        self._known: set[str] = set()

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Write under a temporary name, sync, rename without overwriting, sync the folder.

        Law: K2, K10. The temporary name is made of the content, so that two writers never share
        one; what a dead writer left of it is never read.
        """
        temporary = f"{name}.{hashlib.blake2b(data, digest_size=16).hexdigest()}.tmp"
        with _told("create", self._where(name)):
            try:
                self._disk.write(temporary, data)
                self._disk.sync_file(temporary)
                self._disk.rename_new(temporary, name)
            except BaseException as error:
                with suppress(OSError, BaseError):
                    self._disk.remove(temporary)
                if isinstance(error, FileExistsError):
                    return False
                raise
            self._sync_names(name)
        return True

    def put_files(self, files: Mapping[str, Data]) -> None:
        """Write and sync each file, then their folders.

        Law: K1, K10.
        """
        for name, data in files.items():
            with _told("write", self._where(name)):
                try:
                    self._disk.write_new(name, data)
                except FileExistsError:
                    self._require_same(name, data)
                try:
                    self._disk.sync_file(name)
                except OSError:
                    # After a failed sync the kernel may call the pages clean: only new ones count.
                    with suppress(OSError, BaseError):
                        self._disk.remove(name)
                    raise
        with _told("sync", self.url):
            for name in {_folder(name): name for name in files}.values():
                self._sync_names(name)

    def put(self, name: str, data: Data) -> None:
        with _told("write", self._where(name)):
            self._disk.write(name, data)
            self._disk.sync_file(name)
            self._sync_names(name)

    def confirm(self, name: str) -> None:
        with _told("sync", self._where(name)):
            self._disk.sync_file(name)
            self._sync_names(name)

    def _sync_names(self, name: str) -> None:
        folder = _folder(name)
        self._disk.sync_folder(folder)
        if folder and folder not in self._known:
            self._disk.sync_folder("")
            self._known.add(folder)


def open_store(state_root: str, *, create: bool = True) -> Store:
    """Open a store by a local path, file:// or memory:// (a new, empty one each time).

    The folder is created where its parent exists; with create=False a missing one is an error, for
    who only looks must leave nothing behind.
    Raises: CallerError for another kind of address, StoreError where the folder cannot be used.
    """
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", state_root)
    if scheme is None:
        if not state_root.strip():
            raise _bad_address(state_root)
        return _open_disk(Path(state_root).expanduser().absolute(), create=create)
    if state_root == "memory://":
        return ObjectStore(state_root, MemoryStore())
    parts = urlsplit(state_root)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        raise _bad_address(state_root)
    return _open_disk(Path(unquote(parts.path)), create=create)


def probe(store: Store, nonce: str) -> None:
    """Create a key twice; refuse a store that lets the second one through.

    Law: K6.
    """
    name = f"_thund_probe-{nonce}"
    first, second = b"first", b"second"
    try:
        created = store.put_if_absent(name, first)
        again = store.put_if_absent(name, second)
        kept = bytes(store.get(name))
    finally:
        with suppress(StoreError):
            store.delete(name)
    if not created or again or kept != first:
        raise StoreError(
            "the store created one key twice",
            allowed="a store whose put-if-absent refuses a name that is taken",
            where=f"{store.url} (probe {name})",
            action="use a local disk, or a store with conditional writes (If-None-Match)",
            code="no_put_if_absent",
        )


def _open_disk(root: Path, *, create: bool) -> DiskStore:
    if not create and not root.is_dir():
        raise CallerError(
            f"there is no folder {root.name}",
            allowed="the state_root of a pipeline that has run in incremental mode",
            where=str(root),
            action="check the path, or run the pipeline first",
        )
    with _told("open the state folder", str(root)):
        if not root.is_dir():
            root.mkdir()
            _fsync(root.parent, os.O_RDONLY | os.O_DIRECTORY)
        return DiskStore(str(root), Disk(root))


def _bad_address(state_root: str) -> CallerError:
    return CallerError(
        f"state_root {state_root!r} is no address of a store",
        allowed="a local path, file:///an/absolute/path, or memory://",
        where="state_root",
        action="name a folder whose parent exists",
        code="bad_state_root",
    )


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told(doing: str, where: str) -> Iterator[None]:
    """Turn what the system or the store says into a StoreError that says what to do."""
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(
            f"could not {doing} it: it is not there",
            allowed="a file or folder that exists",
            where=where,
            action="put it back, or create the parent folder if the address is meant to be new",
            code=MISSING,
        ) from error
    except (OSError, BaseError) as error:
        number = _error_number(error)
        raise StoreError(
            f"could not {doing} it: {str(error).splitlines()[0]}",
            allowed="a store that can be read and written; what was committed stands",
            where=where,
            action=_WHAT_TO_DO.get(number, "see the cause above, mend it, then start again"),
            code=errno.errorcode.get(number, "store").lower(),
        ) from error


def _error_number(error: BaseException) -> int:
    """The system's error number, which obstore gives only inside its text."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = re.search(r"os error (\d+)", str(error))
    return int(found[1]) if found else 0
