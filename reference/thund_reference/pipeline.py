"""The rooms composed: one process over a disk and a sink, an epoch at a time.

The World and Life of the contract, in plain code. It knows nothing of Arrow, files or threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from thund_contract.engine import Durable
from thund_contract.vocabulary import (
    COMPLETE,
    MANIFEST_STEP,
    OUTBOX_STEP,
    POINTER_STEP,
    SINK_STEP,
    SOURCE_STEP,
    STATE_STEP,
    Config,
    Delete,
    EpochRecord,
    InvalidRow,
    LateRow,
    Pane,
    Put,
    Row,
    Seen,
    Unfit,
    WindowState,
)
from thund_reference import checkpoint, credits, output, source, watermark
from thund_reference.checkpoint import Disk, Manifest
from thund_reference.operators import Operator
from thund_reference.process import Process
from thund_reference.sink import Sink
from thund_reference.windows import Group, Key, Name, Partials, Span


@dataclass(frozen=True, slots=True)
class Kept:
    """What a checkpoint keeps of one operator."""

    open: dict[Span, dict[Key, Partials]]
    results: dict[Group, Partials]
    panes: dict[Name, Pane]


@dataclass(frozen=True, slots=True)
class State:
    """The content of a state file: what memory needs, and the form in which it is compared."""

    operators: tuple[Kept, ...]
    seen: dict[Key, int]
    shown: tuple[WindowState, ...]
    remembered: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Outbox:
    """The content of an outbox file; the lanes are part of it. Law: A6, K1."""

    rows: tuple[Put | Delete, ...]
    late: tuple[LateRow, ...]
    invalid: tuple[InvalidRow, ...]
    unfit: tuple[Unfit, ...]
    panes: tuple[Pane, ...]


@dataclass(slots=True)
class World:
    """What survives a process."""

    config: Config
    disk: Disk = field(default_factory=Disk)
    sink: Sink = field(default_factory=Sink)
    lives: int = 0

    def epochs(self) -> tuple[EpochRecord, ...]:
        """Every committed epoch, in order."""
        return tuple(self._records())

    def table(self) -> tuple[Put, ...]:
        """The sink's rows."""
        return tuple(sorted(self.sink.rows.values(), key=lambda put: put.id))

    def state(self, manifest: Manifest) -> State:
        """The state file of an epoch. Law: K7."""
        checkpoint.check_readable(self.disk, manifest.epoch, manifest.files[:1])
        content = self.disk.files[manifest.files[0]]
        assert isinstance(content, State)
        return content

    def outbox(self, manifest: Manifest) -> Outbox:
        """The outbox file of an epoch. Law: K7."""
        checkpoint.check_readable(self.disk, manifest.epoch, manifest.files[1:])
        content = self.disk.files[manifest.files[1]]
        assert isinstance(content, Outbox)
        return content

    def _records(self) -> Iterator[EpochRecord]:
        for epoch, manifest in sorted(self.disk.manifests.items()):
            outbox, state = self.outbox(manifest), self.state(manifest)
            yield EpochRecord(
                epoch=epoch,
                items=manifest.items,
                watermark=manifest.watermark,
                partitions=manifest.partitions,
                state=state.shown,
                outbox=outbox.rows,
                late=outbox.late,
                invalid=outbox.invalid,
                unfit=outbox.unfit,
                drained=manifest.drained,
                seen=state.remembered,
                panes=outbox.panes,
            )


class Life:
    """One process, from its recovery to its death. Law: K1, K4, K5, R1."""

    def __init__(
        self, config: Config, world: World, *, now: Callable[[], int], durable: Durable
    ) -> None:
        self.world, self.durable = world, durable
        self.process = Process(config, now)
        world.lives += 1
        self.nonce = f"life-{world.lives}"  # fresh at each start (K1)
        self.last = checkpoint.newest(world.disk.manifests)
        self.generation = self.nonce
        self.recover()
        self.publish()

    # ---- recovery --------------------------------------------------------------------------------

    def recover(self) -> None:
        """State, W and offsets from the newest manifest, never from an older one. Law: K4, K8, R1, W5."""
        if self.last == 0:
            return
        manifest = self.world.disk.manifests[self.last]
        process = self.process
        checkpoint.check_config(manifest.config, process.config)
        state = self.world.state(manifest)
        for operator, kept in zip(process.operators, state.operators, strict=True):
            operator.open = {span: dict(groups) for span, groups in kept.open.items()}
            operator.results, operator.panes = dict(kept.results), dict(kept.panes)
        process.seen = dict(state.seen)
        process.begin_epoch()
        process.watermark, process.drained = manifest.watermark, manifest.drained
        self.generation = manifest.generation
        for p in manifest.partitions:
            process.partitions[p.partition] = watermark.Progress(
                p.assigned,
                p.max_event_time,
                p.accepted,
                p.admitted,
                p.late,
                p.invalid,
                p.idle,
                p.filtered,
                p.repeated,
                p.late_window_drops,
            )
            process.quiet[p.partition] = 0
            process.sequencers[p.partition] = source.Sequencer(p.last)
            process.credits[p.partition] = credits.Credits(process.config.credits)

    def publish(self) -> None:
        """Every committed outbox that the sink lacks, in epoch order. Law: K1, K5, R1."""
        sink, config = self.world.sink, self.process.config
        applied = sink.record.last if sink.record else 0
        if applied > self.last:
            raise checkpoint_behind(applied, self.last)
        for epoch in range(applied + 1, self.last + 1):
            rows = self.world.outbox(self.world.disk.manifests[epoch]).rows
            sink.apply(config.pipeline, self.generation, epoch, rows)
            self.durable(SINK_STEP, epoch)

    # ---- the contract's Life ---------------------------------------------------------------------

    @property
    def duplicates(self) -> int:
        """Rows that came again. Law: S3."""
        return self.process.duplicates

    def position(self, partition: str) -> int:
        """Where the source goes on. Law: S3."""
        return self.process.sequencers.get(partition, source.Sequencer()).last

    def assigned(self) -> tuple[str, ...]:
        """The partitions assigned now."""
        return tuple(sorted(n for n, p in self.process.partitions.items() if p.assigned))

    def credit(self, partition: str) -> int:
        """c_p. Law: C1, C2."""
        return credits.available(self.process.credits[partition])

    def send(self, partition: str, rows: int) -> None:
        """New rows on the wire. Law: C1."""
        self.process.credits[partition] = credits.send(self.process.credits[partition], rows)

    def deliver(self, row: Row, prev: int) -> None:
        """A row arrives; an epoch is cut after the one that fills a credit window. Law: C2."""
        for accepted in self.process.deliver(row, prev):
            self.process.accept(accepted)
            window = credits.accept(self.process.credits[row.partition], 1)
            self.process.credits[row.partition] = window
            if credits.full(window):
                self.commit()

    def add(self, partition: str) -> None:
        """Assign a partition. Law: W5."""
        self.process.add(partition)

    def remove(self, partition: str) -> None:
        """Take a partition away. Law: W5."""
        self.process.remove(partition)

    def tick(self) -> None:
        """The engine has waited for rows; it reads the clock. Law: A4, W4."""
        self.process.tick()

    def idle(self, partitions: tuple[str, ...]) -> None:
        """A recorded reading happens again. Law: W4, T7."""
        self.process.idle(partitions)

    def resume(self) -> None:
        """The engine was at work until now. Law: W4."""
        self.process.resume()

    def drain(self) -> None:
        """W becomes END, once; the epoch is published. Law: W6."""
        if not self.process.drained:
            self.process.drain()
        self.commit()

    def commit(self) -> None:
        """Run, state and outbox, manifest, pointer; then source, credits and sink. Law: K1, K2, K3, K10."""
        process, disk = self.process, self.world.disk
        if not process.items:
            return
        epoch = self.last + 1
        process.end_epoch()
        rows, unfit, panes = output.outbox(process, epoch)
        kept = tuple(map(keep, process.operators))
        state = State(kept, dict(process.seen), process.window_states(), process.remembered())
        lanes = (tuple(process.late), tuple(process.invalid), tuple(unfit), tuple(panes))
        outbox = Outbox(tuple(rows), *lanes)
        names = tuple(checkpoint.file_name(epoch, k, self.nonce) for k in ("state", "outbox"))
        for name, content, step in zip(
            names, (state, outbox), (STATE_STEP, OUTBOX_STEP), strict=True
        ):
            disk.write(name, content)
            disk.sync([name])
            self.durable(step, epoch)
        disk.create(self.manifest(epoch, names))
        self.last = epoch
        self.durable(MANIFEST_STEP, epoch)
        disk.pointer = epoch
        self.durable(POINTER_STEP, epoch)
        process.credits_back()
        process.begin_epoch()
        self.durable(SOURCE_STEP, epoch)
        self.publish()

    def manifest(self, epoch: int, names: tuple[str, ...]) -> Manifest:
        """Everything of the epoch, its own files by name. Law: K2, K3."""
        process = self.process
        return Manifest(
            epoch=epoch,
            nonce=self.nonce,
            generation=self.generation,
            config=process.config,
            watermark=process.watermark,
            partitions=process.partition_states(),
            items=tuple(process.items),
            files=names,
            drained=process.drained,
        )


def keep(operator: Operator) -> Kept:
    """A copy of what an operator has open, and of the store that only grows. Law: E3, F3."""
    opened = {span: dict(groups) for span, groups in operator.open.items()}
    results = operator.results if operator.config.output == COMPLETE else {}
    return Kept(opened, results, dict(operator.panes))


def checkpoint_behind(applied: int, last: int) -> Exception:
    """The sink has an epoch that no manifest has: another history, or an older copy. Law: K5."""
    from thund_reference.sink import foreign

    return foreign(f"the sink has epoch {applied}, the newest manifest is {last}")
