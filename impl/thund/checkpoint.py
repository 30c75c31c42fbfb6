"""Publish state, W, offsets and output of an epoch at once, or not at all; and find them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from thund import manifest as manifests
from thund import parquet
from thund.epoch import Epoch, Outbox, table_name
from thund.history import POINTER_NAME, History, folder, manifest_name
from thund.manifest import FileEntry, Manifest, Pointer
from thund.stores import Store, probe
from thund_contract.engine import Durable
from thund_contract.errors import CallerError, Fenced, LawBroken, StoreError
from thund_contract.vocabulary import (
    MANIFEST_STEP,
    OUTBOX_STEP,
    POINTER_STEP,
    STATE_STEP,
    Config,
)

_NONCE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DATA_FILE = re.compile(r"(operator|outbox)-.*\.parquet")


@dataclass(frozen=True, slots=True)
class Recovered(Epoch):
    """The newest committed epoch, as recovery found it, with its manifest.

    Law: K4, R1.
    """

    manifest: Manifest


class Checkpoints(History):
    """The committed epochs of one pipeline, and the writer of the next one.

    nonce is fresh at each start of a process: it names the writer in every file.
    Law: K1, K2, K6.
    """

    def __init__(
        self,
        store: Store,
        *,
        config: Config,
        definition: Mapping[str, Any],
        nonce: str,
        durable: Durable,
    ) -> None:
        super().__init__(store)
        if not _NONCE.fullmatch(nonce):
            raise CallerError(
                f"nonce {nonce!r} cannot be part of a file name",
                allowed="1 to 64 of A-Z, a-z, 0-9, _ and -",
                where="Checkpoints(nonce=...)",
                action="use random hexadecimal digits, new at each start",
                code="bad_nonce",
            )
        self.config, self.nonce, self.durable = config, nonce, durable
        self._definition = dict(definition)
        self._config, self._fingerprint = manifests.plain(config), manifests.fingerprint(config)
        self._last: int | None = None
        self._generation: str | None = None
        self._files: dict[int, tuple[FileEntry, ...]] = {}
        self._swept = 0

    @property
    def last(self) -> int:
        """The last epoch that this process recovered or committed; 0 for none."""
        if self._last is None:
            raise LawBroken(
                "the state was used before recovery",
                allowed="recover() first",
                where=self.store.url,
                action="report this as a bug",
                code="not_recovered",
            )
        return self._last

    @property
    def generation(self) -> str:
        """The name of this history: the nonce of the writer of its first manifest.

        Law: K5.
        """
        return self._generation or self.nonce

    # ---- recovery ----------------------------------------------------------------------------------

    def recover(self) -> Recovered | None:
        """Find the highest committed epoch, verified, and go on from it; None for a new history.

        Where a file of it cannot be read, the store is listed once more: another engine may have
        gone on and collected it. If nothing higher is there, recovery stops.
        Law: K4, K6, K7, K8, R1.
        Raises: StoreError for damage or an unfit store, CallerError for another pipeline's state.
        """
        probe(self.store, self.nonce)
        epoch = self.highest()
        while epoch:
            try:
                found = self._load(epoch)
            except StoreError:
                if (higher := self.highest()) <= epoch:
                    raise
                epoch = higher
            else:
                self._last, self._generation = epoch, found.manifest.generation
                return found
        self._last = 0
        return None

    def newest(self) -> Manifest | None:
        """The manifest that recovery would start from, of the same pipeline; None for none.

        A source looks at it before its schema is asked for. Law: K4, K8.
        """
        epoch = self.highest()
        if epoch == 0:
            return None
        manifest = self.manifest(epoch)
        self._require_same_pipeline(manifest)
        return manifest

    def _load(self, epoch: int) -> Recovered:
        """One epoch, every file of it verified, and durable before anything leans on it.

        Law: K3, K7, K10.
        """
        manifest = self.manifest(epoch)
        self._require_same_pipeline(manifest)
        self.store.confirm(manifest_name(epoch))
        return Recovered(
            number=epoch,
            items=manifest.items,
            watermark=manifest.watermark,
            partitions=manifest.partitions,
            state=self.state(epoch),
            outbox=self.outbox(epoch),
            drained=manifest.drained,
            manifest=manifest,
        )

    def _require_same_pipeline(self, manifest: Manifest) -> None:
        """Refuse the state of another pipeline or of another configuration.

        Law: K8.
        """
        where = f"{self.store.url} (epoch {manifest.epoch})"
        if manifest.pipeline != self.config.pipeline:
            raise CallerError(
                f"the state is that of pipeline {manifest.pipeline!r}",
                allowed=f"a state_root of pipeline {self.config.pipeline!r}, or a new one",
                where=where,
                action="give each pipeline a state_root of its own",
                code="other_pipeline",
            )
        if differ := manifests.differences(manifest.config, manifests.plain(self.config)):
            raise CallerError(
                "the state was made under another configuration: " + "; ".join(differ),
                allowed=f"the same configuration; {', '.join(manifests.MAY_DIFFER)} may change",
                where=where,
                action="go back to the old configuration, or start a new state_root",
                code="other_config",
            )

    # ---- commit ------------------------------------------------------------------------------------

    def commit(self, epoch: Epoch, *, source: Mapping[str, Any]) -> Manifest:
        """Make an epoch durable: state files, outbox files, the manifest, the pointer.

        The manifest is the one atomic commit point. source is what identifies the rows read.
        After an error the same epoch may be tried again.
        Law: K1, K2, K3, K6.
        Raises: Fenced if another engine committed this epoch, StoreError if the store refuses.
        """
        number = epoch.number
        self._require_next(number)
        files = self._write(number, epoch.state)
        self.durable(STATE_STEP, number)
        files += self._write(number, _outbox_tables(epoch.outbox))
        self.durable(OUTBOX_STEP, number)
        manifest = self._create_manifest(self._describe(epoch, source, files))
        self._last, self._generation, self._read = number, manifest.generation, manifest
        self.durable(MANIFEST_STEP, number)
        self.store.put(POINTER_NAME, msgspec.json.encode(Pointer(number, self.nonce)))
        self.durable(POINTER_STEP, number)
        return manifest

    def _write(self, epoch: int, written: Mapping[str, pa.Table]) -> tuple[FileEntry, ...]:
        """Write tables as data files under the writer's own names.

        Law: K1.
        """
        data = {name: parquet.encode(table) for name, table in written.items()}
        entries = tuple(
            FileEntry(
                table=name,
                name=f"{folder(epoch)}/{name}-{self.nonce}.parquet",
                size=len(data[name]),
                rows=table.num_rows,
                checksum=parquet.checksum(data[name]),
            )
            for name, table in written.items()
        )
        self.store.put_files({entry.name: data[entry.table] for entry in entries})
        return entries

    def _describe(
        self, epoch: Epoch, source: Mapping[str, Any], files: tuple[FileEntry, ...]
    ) -> Manifest:
        """Everything that K3 asks for.

        Law: K3.
        """
        return Manifest(
            epoch=epoch.number,
            pipeline=self.config.pipeline,
            generation=self.generation,
            nonce=self.nonce,
            drained=epoch.drained,
            watermark=epoch.watermark,
            partitions=epoch.partitions,
            order=manifests.pack(epoch.items),
            fingerprint=self._fingerprint,
            config=self._config,
            definition=self._definition,
            source=dict(source),
            files=files,
        )

    def _create_manifest(self, manifest: Manifest) -> Manifest:
        """Create the manifest, or learn who did; one's own, found again, counts.

        Law: K2, K6.
        """
        name, data = manifest_name(manifest.epoch), manifests.encode(manifest)
        if self.store.put_if_absent(name, data):
            return manifest
        winner = self.manifest(manifest.epoch)
        if winner.nonce != self.nonce:
            raise Fenced(
                f"epoch {manifest.epoch} was committed by another engine, {winner.nonce}",
                allowed=f"one engine on a state_root; this one is {self.nonce}",
                where=self._where(name),
                action="stop one of the two; this one has stopped, nothing of its epoch was used",
            )
        if self.store.get(name) != data:
            raise StoreError(
                f"epoch {manifest.epoch} was committed by an earlier attempt with other content",
                allowed="the same epoch again after an attempt whose end is not known",
                where=self._where(name),
                action="start again: recovery goes on from what was committed",
                code="uncertain_commit",
            )
        self.store.confirm(name)
        return winner

    def _require_next(self, number: int) -> None:
        if number != self.last + 1:
            raise LawBroken(
                f"epoch {number} was to be committed after epoch {self.last}",
                allowed=f"epoch {self.last + 1}",
                where=self.store.url,
                action="report this as a bug",
                code="epoch_order",
            )

    # ---- garbage -----------------------------------------------------------------------------------

    def collect(self, keep_epochs: int, applied: Mapping[str, int]) -> list[str]:
        """Remove data files that nothing needs any more, and say which; never a manifest.

        keep_epochs: how many of the newest epochs stay whole, at least 1. applied: the last epoch
        that each sink has; without a sink every outbox stays.
        Law: K9.
        """
        assert keep_epochs >= 1
        slowest = min(applied.values(), default=0)
        kept_from = max(self.last - keep_epochs + 1, 1)
        needed = self._needed(kept_from, slowest)
        garbage = [
            name
            for epoch in range(self._swept + 1, self.last + 1)
            for name in self.store.list(folder(epoch))
            if _DATA_FILE.fullmatch(name.rpartition("/")[2]) and name not in needed
        ]
        for name in garbage:
            self.store.delete(name)
        self._swept = max(self._swept, min(kept_from - 1, slowest))
        self._files = {epoch: self._files[epoch] for epoch in self._files if epoch > self._swept}
        return garbage

    def _needed(self, kept_from: int, slowest: int) -> set[str]:
        """The files that a kept epoch names, and the outboxes that a sink still lacks.

        Law: K9.
        """
        needed: set[str] = set()
        for epoch in range(max(self._swept + 1, min(kept_from, slowest + 1)), self.last + 1):
            if epoch not in self._files:
                self._files[epoch] = self.manifest(epoch).files
            for entry in self._files[epoch]:
                unapplied = epoch > slowest and entry.table.startswith("outbox-")
                if epoch >= kept_from or unapplied:
                    needed.add(entry.name)
        return needed


def _outbox_tables(outbox: Outbox) -> dict[str, pa.Table]:
    """The tables of an outbox that get a file: rows and panes always, a lane where it has rows."""
    tables = {}
    for operator, shown in outbox.shown().items():
        tables[table_name("outbox-rows", operator)] = shown.rows
        if shown.panes is not None:
            tables[table_name("outbox-panes", operator)] = shown.panes
    full = {f"outbox-{name}": lane for name, lane in outbox.lanes().items() if lane.num_rows}
    return tables | full
