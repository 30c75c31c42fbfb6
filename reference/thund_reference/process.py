"""The memory of one process: every room's state, and one step per action of the specification.

It does no input or output; the clock is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from thund_contract.errors import InputError
from thund_contract.vocabulary import (
    BY_EPOCH,
    BY_ROW,
    END,
    NEVER,
    PARTITION_RULE,
    WINDOW_RULE,
    Add,
    Clock,
    Config,
    Drain,
    Idle,
    InvalidRow,
    Item,
    LateRow,
    PartitionState,
    Remove,
    Row,
    Rows,
    Seen,
    WindowState,
)
from thund_reference import credits, source, watermark, windows
from thund_reference.operators import Operator, configs_of
from thund_reference.watermark import ADMITTED, FILTERED, LATE, REPEATED
from thund_reference.windows import Key


class Process:
    """The variables, and the steps that change them. A step never looks at a store or a sink."""

    def __init__(self, config: Config, now: Callable[[], int]) -> None:
        self.config, self.now = config, now
        self.watermark = NEVER
        self.partitions: dict[str, watermark.Progress] = {}
        self.sequencers: dict[str, source.Sequencer] = {}
        self.credits: dict[str, credits.Credits] = {}
        self.held: dict[tuple[str, int], Row] = {}
        self.operators = tuple(Operator(one) for one in configs_of(config))
        self.seen: dict[Key, int] = {}
        self.clock_ms: int | None = None
        self.quiet: dict[str, int] = {}
        self.mark = now()
        self.duplicates = 0
        self.drained = False
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget what the last epoch showed. Law: E1, E2."""
        self.items: list[Item] = []
        for operator in self.operators:
            operator.begin_epoch()
        self.late: list[LateRow] = []
        self.invalid: list[InvalidRow] = []

    def record(self, item: Item) -> None:
        """Every item, in processing order; the epoch's first is the clock where it matters. Law: K3."""
        if not self.items and self.config.max_future_ms is not None:
            self.read_clock()
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
        self.partitions[partition] = replace(known, assigned=True, idle=False)
        self.quiet[partition] = 0
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
        """The engine has waited for rows: the idle clocks run on, and one clock is read. Law: A4, W4, K3."""
        now, held = self.now(), {partition for partition, _ in self.held}
        for name in watermark.active(self.partitions):
            if name not in held:
                self.quiet[name] += now - self.mark
        self.mark = now
        if not self.items:
            self.read_idle()
        elif self.config.max_future_ms is not None:
            self.read_clock()

    def resume(self) -> None:
        """What passed was the engine's own work: no idle clock ran. Law: W4."""
        self.mark = self.now()

    def read_clock(self) -> None:
        """An item, for the guard depends on it. Law: A4, K3."""
        self.clock_ms = self.now()
        self.items.append(Clock(self.clock_ms))

    def read_idle(self) -> None:
        """Between two epochs: those found idle go idle together, and start an epoch. Law: W4, K3."""
        found = watermark.quiet_enough(self.partitions, self.quiet, self.config.idle_timeout_ms)
        if found and not self.drained:
            self.idle(found)

    def idle(self, found: tuple[str, ...]) -> None:
        """One reading found these partitions idle: W goes on without them. Law: W3, W4, K3."""
        self.record(Idle(found))
        self.partitions |= {name: replace(self.partitions[name], idle=True) for name in found}
        self.move_watermark()

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
        self.quiet[partition] = 0
        reason = watermark.why_invalid(row.event_time, self.clock_ms, self.config.max_future_ms)
        if reason is not None:
            self.invalid.append(InvalidRow(partition, row.offset, reason, self.watermark))
            self.partitions[partition] = watermark.refused(progress)
            return
        assert isinstance(row.event_time, int)
        verdict = self.judge(row, row.event_time)
        progress = watermark.counted(progress, row.event_time, verdict)
        if verdict == LATE and self.config.late_lane:
            self.late.append(LateRow(partition, row.offset, row.event_time, self.watermark))
        if verdict == ADMITTED and (missed := self.admit(row, row.event_time)):
            progress = replace(progress, late_window_drops=progress.late_window_drops + missed)
        self.partitions[partition] = progress
        if self.config.watermark_update == BY_ROW:
            self.move_watermark()

    def judge(self, row: Row, event_time: int) -> str:
        """What becomes of a valid row, by what stands before it. Law: A5, A7, A8."""
        config = self.config
        if config.filter is not None and row.passes is not True:
            return FILTERED
        if self.is_late(row, event_time):
            return LATE
        first = self.seen.get(windows.canonical_key(row.id)) if config.deduplicate else None
        remembered = first is not None and self.watermark <= first + config.remember_ms
        return REPEATED if remembered else ADMITTED

    def is_late(self, row: Row, event_time: int) -> bool:
        """By the configured rule, and by what stands before the row. Law: A1, A2, A3, T8."""
        config = self.config
        if config.late_rule == WINDOW_RULE:
            return self.operators[0].misses_all(row.key, event_time, self.watermark)
        behind = config.late_rule == PARTITION_RULE and watermark.is_behind(
            event_time, self.partitions[row.partition].max_event_time, config.delay_ms
        )
        return behind or watermark.is_late(event_time, self.watermark)

    def admit(self, row: Row, event_time: int) -> int:
        """The row joins every operator's windows; how many it misses. Law: A2, A7."""
        if self.config.deduplicate:
            self.seen[windows.canonical_key(row.id)] = event_time
        views = ((row.key, row.values), *row.more)
        place = (event_time, row.partition, row.offset)
        return sum(
            operator.admit(key, values, place, self.watermark)
            for operator, (key, values) in zip(self.operators, views, strict=True)
        )

    def end_epoch(self) -> None:
        """What follows the last item: W moves now, where rows do not move it. Law: W3, F1."""
        if self.config.watermark_update == BY_EPOCH:
            self.move_watermark()
        kept = {i: t for i, t in self.seen.items() if t + self.config.remember_ms >= self.watermark}
        self.seen = kept  # A7: bounded

    def drain(self) -> None:
        """The caller says that all is accepted: W becomes END, and every window closes. Law: W6."""
        self.record(Drain())
        self.watermark, self.drained = END, True
        self.close()

    # ---- what follows from an action ---------------------------------------------------------------

    def move_watermark(self) -> None:
        """W after a row, an idle reading or a change of the partitions; then windows close. Law: W2, W3, W4, F1."""
        if not self.drained:
            self.watermark = watermark.moved(self.watermark, self.partitions, self.config.delay_ms)
        self.close()

    def close(self) -> None:
        """Windows that W has passed leave the state. Law: F1, F2, F3."""
        for operator in self.operators:
            operator.close(self.watermark)

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

    # ---- what an epoch leaves --------------------------------------------------------------------------

    def window_states(self) -> tuple[WindowState, ...]:
        """The open groups of all operators in normal form. Law: F3."""
        first, *others = self.operators
        states = list(first.window_states(""))
        for operator in others:
            states += operator.window_states(operator.config.operator)
        return tuple(states)

    def remembered(self) -> tuple[Seen, ...]:
        """The ids that may come again. Law: A7."""
        return tuple(Seen(id_, time) for id_, time in self.seen.items())

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
                idle=p.idle,
                filtered=p.filtered,
                repeated=p.repeated,
                late_window_drops=p.late_window_drops,
            )
            for name, p in sorted(self.partitions.items())
        )

    def credits_back(self) -> None:
        """The epoch is durable. Law: C1, C3, K1."""
        self.credits = {name: credits.commit(c) for name, c in self.credits.items()}
