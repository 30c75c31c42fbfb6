"""Publish state, W and offsets at once, or not at all.

A store is a disk with an atomic put-if-absent. It knows nothing of what the states mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from thund_contract.errors import CallerError, Fenced, StoreError
from thund_contract.vocabulary import Config, Item, PartitionState


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that recovery and the audit need of one epoch. Law: K2, K3."""

    epoch: int
    nonce: str
    generation: str
    config: Config
    watermark: int
    partitions: tuple[PartitionState, ...]
    items: tuple[Item, ...]
    files: tuple[str, ...]
    drained: bool


@dataclass(slots=True)
class Disk:
    """What is written, and what of it a power cut would leave. Law: K10."""

    files: dict[str, object] = field(default_factory=dict)
    manifests: dict[int, Manifest] = field(default_factory=dict)
    pointer: int = 0
    synced: set[str] = field(default_factory=set)

    def write(self, name: str, content: object) -> None:
        """Put a data file under a name that only this writer uses. Law: K1."""
        assert name not in self.files
        self.files[name] = content

    def sync(self, names: Iterable[str]) -> None:
        """File and directory, in this order. Law: K10."""
        self.synced.update(names)

    def create(self, manifest: Manifest) -> None:
        """The one commit point: put-if-absent. Law: K1, K2, K6, K10."""
        assert set(manifest.files) <= self.synced
        found = self.manifests.setdefault(manifest.epoch, manifest)
        if found.nonce != manifest.nonce:
            raise Fenced(
                f"epoch {manifest.epoch} was committed by {found.nonce}",
                allowed="one engine on a state_root",
                where=f"epoch={manifest.epoch}",
                action="let the other engine go on, and stop this one",
            )

    def power_cut(self) -> None:
        """What was not synced is gone; a manifest is synced as it is created. Law: K10."""
        self.files = {name: x for name, x in self.files.items() if name in self.synced}


def file_name(epoch: int, kind: str, nonce: str) -> str:
    """A loser's files lie beside the winner's, never over them. Law: K1."""
    return f"epoch={epoch}/{kind}-{nonce}"


def newest(manifests: Iterable[int]) -> int:
    """The epoch to recover, compared as a number; 0 for none. The pointer is not asked. Law: K4, R1."""
    return max(manifests, default=0)


def check_readable(disk: Disk, epoch: int, needed: Iterable[str]) -> None:
    """What recovery needs is there, or it stops: it never goes back further. Law: K7."""
    for name in needed:
        if name not in disk.files:
            raise StoreError(
                f"{name} of epoch {epoch} is missing or damaged",
                allowed="every file that a manifest names, as it was written",
                where=f"epoch={epoch}",
                action="restore the file, or copy an older epoch to a new state_root",
                code="damage",
            )


def differences(old: Config, new: Config) -> tuple[str, ...]:
    """The fields in which two configurations differ; the credit window may. Law: K8."""
    names = [f.name for f in dataclasses.fields(Config) if f.name != "credits"]
    return tuple(n for n in names if getattr(old, n) != getattr(new, n))


def check_config(old: Config, new: Config) -> None:
    """An old state is not read under another meaning. Law: K8."""
    names = differences(old, new)
    if names:
        raise CallerError(
            "; ".join(
                f"{n} is {getattr(new, n)!r}, the state has {getattr(old, n)!r}" for n in names
            ),
            allowed="the configuration that the state was made with",
            where="state_root",
            action="use another state_root, or the old configuration",
            code="config",
        )


def collectable(disk: Disk, keep: int, applied: Mapping[str, int]) -> tuple[str, ...]:
    """Data files that nothing needs: never a manifest, and nothing above the highest one.

    `keep` is how many of the newest epochs stay whole; `applied` is each sink's last epoch.

    Law: K9.
    """
    top = newest(disk.manifests)
    slowest = min(applied.values(), default=0)
    needed = {
        name
        for epoch, manifest in disk.manifests.items()
        for name in manifest.files
        if epoch > top - keep or ("outbox" in name and epoch > slowest)
    }
    return tuple(sorted(n for n in disk.files if n not in needed and epoch_of(n) <= top))


def epoch_of(name: str) -> int:
    """The number in a file's name; text order would put 10 before 9. Law: K4."""
    return int(name.partition("/")[0].removeprefix("epoch="))
