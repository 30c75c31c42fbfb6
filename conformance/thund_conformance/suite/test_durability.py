"""The laws of durable files and of recovery: what is named is on the disk, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from thund.checkpoint import Checkpoints
from thund.history import manifest_name
from thund.stores import Data, Disk, DiskStore
from thund_conformance import judge
from thund_conformance.lives import after, story
from thund_conformance.scripts import config, log, scenario
from thund_contract.scenario import (
    Barrier,
    Deliver,
    DrainAll,
    Restart,
)


class Recorder(Disk):
    """A disk that writes down its steps."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk.root)
        self.calls: list[tuple[str, str]] = []

    def write_new(self, name: str, data: Data) -> None:
        self.calls.append(("write", name))
        super().write_new(name, data)

    def write(self, name: str, data: Data) -> None:
        self.calls.append(("write", name))
        super().write(name, data)

    def sync_file(self, name: str) -> None:
        self.calls.append(("sync", name))
        super().sync_file(name)

    def sync_folder(self, name: str) -> None:
        self.calls.append(("folder", name))
        super().sync_folder(name)

    def rename_new(self, old: str, new: str) -> None:
        self.calls.append(("rename", new))
        super().rename_new(old, new)


@pytest.mark.law("K10")
def test_required_everything_is_durable_before_the_manifest_names_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """For each file of the manifest: write, sync the file, sync its folder, sync the root.

    And the manifest itself is synced under another name before it gets its own.
    """
    root = tmp_path_factory.mktemp("state")
    disk = Recorder(Disk(root))
    s = story(Deliver("p0", 2))
    at = after(s)
    own = Checkpoints(
        DiskStore(str(root), disk), config=at.config, definition={}, nonce="one",
        durable=lambda name, epoch: disk.calls.append(("durable", name)),
    )  # fmt: skip
    own.recover()
    at.alive.position("p0")
    epoch = at.alive._engine.core.cut(1)  # type: ignore[attr-defined]
    disk.calls.clear()
    manifest = own.commit(epoch, source={})
    calls = disk.calls
    named = calls.index(("rename", manifest_name(1)))
    for entry in manifest.files:
        written, synced = calls.index(("write", entry.name)), calls.index(("sync", entry.name))
        folder = calls.index(("folder", "epoch=1"), synced)
        assert written < synced < folder < named
    assert calls.index(("folder", "")) < named
    temporary = next(n for kind, n in calls if kind == "write" and n.endswith(".tmp"))
    assert calls.index(("write", temporary)) < calls.index(("sync", temporary)) < named
    told = calls.index(("durable", "manifest"))
    assert named < calls.index(("folder", "epoch=1"), named) < told


@pytest.mark.law("K10")
@pytest.mark.parametrize("step", ["state", "outbox"])
def test_required_a_step_is_announced_when_its_folder_is_synced(
    tmp_path_factory: pytest.TempPathFactory, step: str
) -> None:
    root = tmp_path_factory.mktemp("state")
    disk = Recorder(Disk(root))
    store = DiskStore(str(root), disk)
    at = after(story(Deliver("p0", 2)))
    seen: dict[str, list[tuple[str, str]]] = {}

    def note(name: str, epoch: int) -> None:
        seen[name] = list(disk.calls)

    own = Checkpoints(
        store, config=at.config, definition={}, nonce="one",
        durable=note,
    )  # fmt: skip
    own.recover()
    at.alive.position("p0")
    own.commit(at.alive._engine.core.cut(1), source={})  # type: ignore[attr-defined]
    kind = "operator-" if step == "state" else "outbox-"
    files = [n for call, n in seen[step] if call == "write" and f"/{kind}" in n]
    assert files
    last = max(seen[step].index(("sync", name)) for name in files)
    assert ("folder", "epoch=1") in seen[step][last:]


@pytest.mark.law("R1")
@pytest.mark.law("T3")
def test_required_a_restart_keeps_watermark_counters_and_open_windows(engine_name: str) -> None:
    """Killed without warning, after one epoch; the uncommitted row comes again."""
    logs = [log("p0", 5, 30, 7, None, 31), log("p1", 28)]
    whole = scenario(
        config(), logs, Deliver("p1", 1), Deliver("p0", 4), Barrier(), DrainAll()
    )  # fmt: skip
    killed = replace(
        whole,
        steps=(
            Deliver("p1", 1),
            Deliver("p0", 4),
            Barrier(),
            Deliver("p0", 1),
            Restart(),
            DrainAll(),
        ),
    )
    left, right = judge.run_on(engine_name, whole), judge.run_on(engine_name, killed)
    judge.expect_same_epochs(left.epochs, right.epochs, ("whole", "killed"))
    assert left.table == right.table
