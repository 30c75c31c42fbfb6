"""The memory of one process: every room's state, and one step per action of the specification.

It does no input or output; the clock is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from thund_contract.errors import InputError
from thund_contract.vocabulary import (
    APPEND,
    BY_EPOCH,
    BY_ROW,
    END,
    NEVER,
    PARTITION_RULE,
    UPDATE,
    WINDOW_RULE,
    Add,
    Clock,
    Config,
    Drain,
    InvalidRow,
    Item,
    LateRow,
    PartitionState,
    Put,
    Remove,
    Row,
    Rows,
    Unfit,
    WindowState,
)
from thund_reference import accumulators, credits, source, watermark, windows
from thund_reference.windows import Group, Key, Partials


class Process:
    """The variables, and the steps that change them. A step never looks at a store or a sink."""

    def __init__(self, config: Config, now: Callable[[], int]) -> None:
        self.config, self.now = config, now
        self.watermark = NEVER
        self.partitions: dict[str, watermark.Progress] = {}
        self.sequencers: dict[str, source.Sequencer] = {}
        self.credits: dict[str, credits.Credits] = {}
        self.held: dict[tuple[str, int], Row] = {}
        self.open: dict[int, dict[Key, Partials]] = {}
        self.results: dict[Group, Partials] = {}
        self.clock_ms: int | None = None
        self.duplicates = 0
        self.drained = False
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget what the last epoch showed. Law: E1, E2."""
        self.items: list[Item] = []
        self.closed: dict[Group, Partials] = {}
        self.touched: set[Group] = set()
        self.late: list[LateRow] = []
        self.invalid: list[InvalidRow] = []

    def record(self, item: Item) -> None:
        """Every item, in processing order; the epoch's first is the clock where it matters. Law: K3."""
        if not self.items and self.config.max_future_ms is not None:
            self.tick()
        last = self.items[-1] if self.items else None
        if isinstance(item, Rows) and isinstance(last, Rows) and last.partition == item.partition:
            self.items[-1] = replace(last, last=item.last, rows=last.rows + item.rows)
        else:
            self.items.append(item)

    # ---- actions ---------------------------------------------------------------------------------

    def add(self, partition: str) -> None:
        """A partition is assigned; one that was here goes on where it was. Law: W5."""
        self.record(Add(partition))
        known = self.partitions.get(partition, watermark.Progress())
        self.partitions[partition] = replace(known, assigned=True)
        self.sequencers.setdefault(partition, source.Sequencer())
        self.credits.setdefault(partition, credits.Credits(self.config.credits))
        self.move_watermark()

    def remove(self, partition: str) -> None:
        """A partition goes; its progress stays, what was held of it does not. Law: W3, W5."""
        self.record(Remove(partition))
        self.partitions[partition] = replace(self.partitions[partition], assigned=False)
        self.sequencers[partition] = source.Sequencer(self.sequencers[partition].last)
        self.credits[partition] = credits.drop_held(self.credits[partition])
        self.held = {k: row for k, row in self.held.items() if k[0] != partition}
        self.move_watermark()

    def tick(self) -> None:
        """Read the clock: an item, for the guard depends on it. Law: A4, K3."""
        self.clock_ms = self.now()
        self.items.append(Clock(self.clock_ms))

    def deliver(self, row: Row, prev: int) -> list[Row]:
        """Take a row from the link; give those that are now accepted, in order. Law: S2, S3."""
        partition = row.partition
        self.sequencers[partition], offsets, duplicate = source.deliver(
            self.sequencers[partition], prev, row.offset
        )
        self.duplicates += duplicate
        if not duplicate:
            self.held[partition, row.offset] = row
        return [self.held.pop((partition, offset)) for offset in offsets]

    def accept(self, row: Row) -> None:
        """One row in the order of the log: judged by W as it stands, then W moves. Law: A1, A4, A6, W1, W3."""
        self.check_open(row)
        partition = row.partition
        self.record(Rows(partition, row.offset, row.offset, 1))
        progress = self.partitions[partition]
        reason = watermark.why_invalid(row.event_time, self.clock_ms, self.config.max_future_ms)
        if reason is not None:
            self.invalid.append(InvalidRow(partition, row.offset, reason, self.watermark))
            self.partitions[partition] = watermark.refused(progress)
            return
        assert isinstance(row.event_time, int)
        late = self.is_late(row.event_time, progress)
        if late and self.config.late_lane:
            self.late.append(LateRow(partition, row.offset, row.event_time, self.watermark))
        if not late:
            self.admit(row, row.event_time)
        self.partitions[partition] = watermark.seen(progress, row.event_time, late=late)
        if self.config.watermark_update == BY_ROW:
            self.move_watermark()

    def is_late(self, event_time: int, progress: watermark.Progress) -> bool:
        """By the configured rule, and by what stands before the row. Law: A1, A2, A3, T8."""
        if self.config.late_rule == WINDOW_RULE:
            return self.is_closed(self.start_of(event_time))
        behind = self.config.late_rule == PARTITION_RULE and watermark.is_behind(
            event_time, progress.max_event_time, self.config.delay_ms
        )
        return behind or watermark.is_late(event_time, self.watermark)

    def admit(self, row: Row, event_time: int) -> None:
        """The row joins the group of its key and window. Law: G1, G4."""
        start = self.start_of(event_time)
        key = windows.canonical_key(row.key)
        groups = self.open.setdefault(start, {})
        groups[key] = windows.fold(groups.get(key), self.config.aggregates, row.values)
        self.touched.add((key, start))

    def end_epoch(self) -> None:
        """What follows the last item: W moves now, where rows do not move it. Law: W3, F1."""
        if self.config.watermark_update == BY_EPOCH:
            self.move_watermark()

    def drain(self) -> None:
        """The caller says that all is accepted: W becomes END, and every window closes. Law: W6."""
        self.record(Drain())
        self.watermark, self.drained = END, True
        self.close()

    # ---- what follows from an action ---------------------------------------------------------------

    def start_of(self, event_time: int) -> int:
        """The start of the row's window. Law: G1."""
        window = self.config.window
        return windows.window_start(event_time, window.size_ms, window.offset_ms)

    def is_closed(self, start_ms: int) -> bool:
        """The window is no longer open. Law: F1."""
        config = self.config
        return windows.is_closed(start_ms, config.window, config.grace_ms, self.watermark)

    def move_watermark(self) -> None:
        """W after a row or a change of the partitions; then windows close. Law: W2, W3, F1."""
        if not self.drained:
            self.watermark = watermark.moved(self.watermark, self.partitions, self.config.delay_ms)
        self.close()

    def close(self) -> None:
        """Windows that W has passed leave the state, each once. Law: F1, F2, F3."""
        for start in [start for start in self.open if self.is_closed(start)]:
            groups = {(key, start): partials for key, partials in self.open.pop(start).items()}
            assert not groups.keys() & self.closed.keys()
            self.closed.update(groups)

    def check_open(self, row: Row) -> None:
        """After a drain nothing more may come: it would all be late. Law: W6."""
        if self.drained:
            raise InputError(
                f"row {row.partition}:{row.offset} after the drain",
                allowed="no rows once a bounded source was drained",
                where=f"partition {row.partition}",
                action="start a new state_root for a source that has grown",
                code="drained",
            )

    # ---- what an epoch shows ---------------------------------------------------------------------------

    def emitted(self) -> dict[Group, Partials]:
        """The groups whose rows this epoch shows, by output mode. Law: E1, E2, E3, E4, F4."""
        if self.config.output == APPEND:
            return self.closed
        if self.config.output == UPDATE:
            return {
                g: p for g, p in (self.open_groups() | self.closed).items() if g in self.touched
            }
        self.results = {**self.results, **self.closed}
        return {**self.results, **self.open_groups()}

    def open_groups(self) -> dict[Group, Partials]:
        """The state, one entry per key and window. Law: F3."""
        return {(k, start): p for start, groups in self.open.items() for k, p in groups.items()}

    def outbox(self, version: int) -> tuple[list[Put], list[Unfit]]:
        """Rows under their identity and version, and the values that do not fit. Law: E1, E2, E3, E5, G4."""
        puts, unfit = [], []
        for group, partials in self.emitted().items():
            key, start = group
            identity = windows.identity(self.config, group)
            values = []
            for aggregate, partial in zip(self.config.aggregates, partials, strict=True):
                value, exact = accumulators.shown(aggregate.operation, partial)
                values.append(value)
                if exact is not None:
                    unfit.append(Unfit(identity, aggregate.name, exact))
            end = start + self.config.window.size_ms
            puts.append(Put(identity, version, key, start, end, tuple(values)))
        return sorted(puts, key=lambda put: put.id), sorted(
            unfit, key=lambda u: (u.id, u.aggregate)
        )

    def window_states(self) -> tuple[WindowState, ...]:
        """The open groups in normal form. Law: F3."""
        operations = [a.operation for a in self.config.aggregates]
        return tuple(
            WindowState(key, start, tuple(map(accumulators.normal, operations, partials)))
            for (key, start), partials in self.open_groups().items()
        )

    def partition_states(self) -> tuple[PartitionState, ...]:
        """What the manifest keeps of each partition, removed ones too. Law: W1, K3."""
        return tuple(
            PartitionState(
                partition=name,
                assigned=p.assigned,
                last=self.sequencers[name].last,
                max_event_time=p.max_event_time,
                accepted=p.accepted,
                admitted=p.admitted,
                late=p.late,
                invalid=p.invalid,
            )
            for name, p in sorted(self.partitions.items())
        )

    def credits_back(self) -> None:
        """The epoch is durable. Law: C1, C3, K1."""
        self.credits = {name: credits.commit(c) for name, c in self.credits.items()}
