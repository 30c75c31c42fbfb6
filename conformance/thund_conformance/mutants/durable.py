"""Seeded bugs in checkpoints, recovery, sinks and the two modes."""

# ruff: noqa: D103 (catalogue.py says what each bug does)
from __future__ import annotations

import dataclasses
import json
from typing import Any

import thund.checkpoint
import thund.engine
import thund.history
import thund.manifest
import thund.recompute
import thund.sink
import thund.stores
import thund.watermark
from thund.history import MANIFEST_NAME, POINTER_NAME, folder, manifest_name
from thund_conformance.mutants.patches import Patches
from thund_contract.errors import Fenced, StoreError
from thund_contract.vocabulary import SOURCE_STEP

Engine = thund.engine.Engine
Checkpoints = thund.checkpoint.Checkpoints
History = thund.history.History
MemorySink = thund.sink.MemorySink


def source_told_before_the_manifest(p: Patches) -> None:
    def commit(self: Any) -> None:
        epoch = self.core.cut(self.last + 1)
        if epoch is None:
            return
        positions = {each.partition: each.last for each in epoch.partitions}
        self.source.commit(positions)
        self.durable(SOURCE_STEP, epoch.number)
        self.checkpoints.commit(epoch, source=self.source.fingerprint(positions))
        self.last = epoch.number
        self.core.committed()
        thund.sink.publish(self.checkpoints, self.sink, durable=self.durable)

    p.replace(Engine, "commit", commit)


def own_manifest_taken_for_anothers(p: Patches) -> None:
    def create(self: Any, manifest: Any) -> Any:
        name = manifest_name(manifest.epoch)
        if self.store.put_if_absent(name, thund.manifest.encode(manifest)):
            return manifest
        raise Fenced("there is one", allowed="none", where=name, action="stop")

    p.replace(Checkpoints, "_create_manifest", create)


def pointer_trusted(p: Patches) -> None:
    def around(original: Any, self: Any) -> int:
        try:
            return int(json.loads(bytes(self.store.get(POINTER_NAME)))["epoch"])
        except (StoreError, ValueError):
            return int(original(self))

    p.wrap(History, "highest", around)


def epochs_compared_as_text(p: Patches) -> None:
    def highest(self: Any) -> int:
        for epoch in sorted(self.folders(), key=str, reverse=True):
            if self.store.exists(manifest_name(epoch)):
                return int(epoch)
        return 0

    p.replace(History, "highest", highest)


def gap_skipped(p: Patches) -> None:
    def due(record: Any, *, name: str, rows: bool, own: Any) -> bool:
        return bool(own.last > thund.sink.check(record, name=name, rows=rows, own=own))

    p.replace(thund.sink, "due", due)


def loser_writes_over_the_winner(p: Patches) -> None:
    def create(self: Any, manifest: Any) -> Any:
        name = manifest_name(manifest.epoch)
        self.store.put(name, thund.manifest.encode(manifest))
        return manifest

    p.replace(Checkpoints, "_create_manifest", create)


def silent_step_back(p: Patches) -> None:
    def around(original: Any, self: Any) -> Any:
        try:
            return original(self)
        except StoreError:
            epoch = self.highest() - 1
            found = self._load(epoch)
            self._last, self._generation = epoch, found.manifest.generation
            return found

    p.wrap(Checkpoints, "recover", around)


def any_configuration_taken(p: Patches) -> None:
    p.replace(Checkpoints, "_require_same_pipeline", lambda self, manifest: None)


def manifests_collected(p: Patches) -> None:
    def around(original: Any, self: Any, keep_epochs: int, applied: Any) -> Any:
        gone = original(self, keep_epochs, applied)
        for epoch in range(1, self.last - keep_epochs):
            self.store.delete(f"{folder(epoch)}/{MANIFEST_NAME}")
        return gone

    p.wrap(Checkpoints, "collect", around)


def folder_not_synced(p: Patches) -> None:
    p.replace(thund.stores.DiskStore, "_sync_names", lambda self, name: None)


def counters_start_again(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._counts[:] = 0

    p.wrap(thund.watermark.Watermark, "__init__", around)


def recovery_does_not_publish(p: Patches) -> None:
    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        starting.append(True)
        original(self, *args, **kwargs)
        starting.clear()

    def publish(original: Any, *args: Any, **kwargs: Any) -> Any:
        return 0 if starting else original(*args, **kwargs)

    starting: list[bool] = []
    p.wrap(Engine, "__init__", around)
    p.wrap(thund.engine, "publish", publish)


def zombie_goes_on(p: Patches) -> None:
    def around(original: Any, self: Any) -> None:
        try:
            original(self)
        except Fenced:
            self.checkpoints.recover()
            self.last = self.checkpoints.last

    p.wrap(Engine, "commit", around)


# ---- modes and sinks ------------------------------------------------------------------------------


def older_answer_replaces_a_newer(p: Patches) -> None:
    p.replace(thund.sink, "replaceable", lambda record, *, name, rows, own: True)


def recompute_admits_late_rows(p: Patches) -> None:
    def around(original: Any, config: Any, *args: Any, **kwargs: Any) -> Any:
        return original(dataclasses.replace(config, delay_ms=1 << 40), *args, **kwargs)

    p.wrap(thund.recompute, "read_all", around)


def any_version_wins(p: Patches) -> None:
    p.replace(thund.sink, "newer", lambda stored, version: True)


def replay_applied_again(p: Patches) -> None:
    def due(record: Any, *, name: str, rows: bool, own: Any) -> bool:
        thund.sink.check(record, name=name, rows=rows, own=own)
        return True

    p.replace(thund.sink, "due", due)


def lanes_outside_the_transaction(p: Patches) -> None:
    def around(original: Any, self: Any, outbox: Any, *, pipeline: str, generation: str) -> Any:
        before = self._lanes
        try:
            applied = original(self, outbox, pipeline=pipeline, generation=generation)
        finally:
            self._lanes = before
            self._append(outbox)
        return applied

    p.wrap(MemorySink, "apply", around)
