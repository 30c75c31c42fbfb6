"""Read committed epochs back from a store, believing nothing that its checksum does not confirm.

It never writes: status and audit look at a state folder through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from thund import manifest as manifests
from thund import parquet
from thund.epoch import LANES, Outbox, Shown
from thund.manifest import Damaged, FileEntry, Manifest
from thund.stores import MISSING, Store
from thund_contract.errors import StoreError

MANIFEST_NAME = "_thund_checkpoint.json"
POINTER_NAME = "_thund_latest.json"

_FOLDER = re.compile(r"epoch=([1-9][0-9]*)")


def folder(epoch: int) -> str:
    """The folder of an epoch."""
    return f"epoch={epoch}"


def manifest_name(epoch: int) -> str:
    """The name of an epoch's manifest, which is what fences.

    Law: K2, K9.
    """
    return f"{folder(epoch)}/{MANIFEST_NAME}"


class History:
    """The committed epochs of a state folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._read: Manifest | None = None

    def highest(self) -> int:
        """The highest epoch that has a manifest file, compared as a number; 0 for none.

        The pointer is not asked.
        Law: K4.
        """
        for epoch in sorted(self.folders(), reverse=True):
            if self.store.exists(manifest_name(epoch)):
                return epoch
        return 0

    def folders(self) -> list[int]:
        """The numbers of all epoch folders, committed or not, in no order."""
        found = (_FOLDER.fullmatch(name) for name in self.store.folders())
        return [int(match[1]) for match in found if match]

    def manifest(self, epoch: int) -> Manifest:
        """The manifest of an epoch.

        Law: K7.
        Raises: StoreError if it is missing, damaged or of another format version.
        """
        if self._read is not None and self._read.epoch == epoch:
            return self._read
        name = manifest_name(epoch)
        try:
            found = manifests.decode(self.store.get(name), where=self._where(name))
        except Damaged as error:
            raise self._damaged(epoch, name, str(error)) from error
        except StoreError as error:
            if error.code == MISSING:
                raise self._damaged(epoch, name, "it is not there") from error
            raise
        if found.epoch != epoch:
            raise self._damaged(epoch, name, f"it is the manifest of epoch {found.epoch}")
        self._read = found
        return found

    def manifests(self) -> Iterator[Manifest]:
        """Every manifest from epoch 1 on, in order.

        Law: K9, T7.
        """
        for epoch in range(1, self.highest() + 1):
            yield self.manifest(epoch)

    def state(self, epoch: int) -> dict[str, pa.Table]:
        """The state tables of an epoch, by their names.

        Law: K7.
        Raises: StoreError.
        """
        entries = self.manifest(epoch).files
        return {e.table: self._table(epoch, e) for e in entries if e.table.startswith("operator-")}

    def table(self, epoch: int, name: str) -> pa.Table:
        """One table of an epoch, by its name.

        Law: K7.
        Raises: StoreError.
        """
        entries = {entry.table: entry for entry in self.manifest(epoch).files}
        return self._table(epoch, entries[name])

    def written_ms(self, epoch: int) -> int:
        """When an epoch was committed, by the store's clock."""
        return self.store.written_ms(manifest_name(epoch))

    def outbox(self, epoch: int) -> Outbox:
        """What an epoch emits.

        Law: K5, K7.
        Raises: StoreError, also where it was collected.
        """
        entries = {entry.table: entry for entry in self.manifest(epoch).files}
        kept = {
            name.removeprefix("outbox-"): self._table(epoch, entry)
            for name, entry in entries.items()
            if name.startswith("outbox-")
        }
        lanes = {lane: kept.get(lane, schema.empty_table()) for lane, schema in LANES.items()}
        more = {
            operator: Shown(table, kept.get(f"panes-{operator}"))
            for name, table in kept.items()
            if (operator := name.removeprefix("rows-")) != name
        }
        return Outbox(epoch, kept["rows"], **lanes, panes=kept.get("panes"), more=more)

    def has_outbox(self, epoch: int) -> bool:
        """Whether an epoch's outbox is still kept, every file of it.

        Law: K5, K9.
        """
        entries = self.manifest(epoch).files
        return all(self.store.exists(e.name) for e in entries if e.table.startswith("outbox-"))

    def verify(self, epoch: int) -> None:
        """Read every file of an epoch by size and checksum.

        Law: K7.
        Raises: StoreError.
        """
        for entry in self.manifest(epoch).files:
            self._bytes(epoch, entry)

    def _bytes(self, epoch: int, entry: FileEntry) -> memoryview:
        """The bytes of a data file, if they are those that were written.

        Law: K7.
        """
        try:
            data = self.store.get(entry.name)
        except StoreError as error:
            if error.code == MISSING:
                raise self._damaged(epoch, entry.name, "it is not there") from error
            raise
        if len(data) != entry.size:
            found = f"it has {len(data)} bytes instead of {entry.size}"
            raise self._damaged(epoch, entry.name, found)
        if parquet.checksum(data) != entry.checksum:
            raise self._damaged(epoch, entry.name, "its checksum does not fit")
        return data

    def _table(self, epoch: int, entry: FileEntry) -> pa.Table:
        data = self._bytes(epoch, entry)
        try:
            table = parquet.decode(data)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise self._damaged(epoch, entry.name, f"it is no table: {error}") from error
        if table.num_rows != entry.rows:
            found = f"it has {table.num_rows} rows instead of {entry.rows}"
            raise self._damaged(epoch, entry.name, found)
        return table

    def _where(self, name: str) -> str:
        return f"{self.store.url.rstrip('/')}/{name}"

    def _damaged(self, epoch: int, name: str, what: str) -> StoreError:
        return StoreError(
            f"{name.rpartition('/')[2]} of the committed epoch {epoch} cannot be read: {what}",
            allowed="every file that a committed epoch names, with the bytes that were written",
            where=self._where(name),
            action="put the file back from a backup; or start a new state_root and rebuild the "
            "sink. thund never goes back to an older epoch by itself",
            code="damaged",
        )
