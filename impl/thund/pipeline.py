"""The rooms composed in memory: rows in, epochs out.

It does no input or output, reads no clock but the one it is handed, and knows no store and no sink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import UNREADABLE_TIME, Delivery
from thund.credits import Credits
from thund.epoch import INVALID_SCHEMA, LATE_SCHEMA, Epoch, Outbox
from thund.idleness import Quiet
from thund.operators import Operators
from thund.prepare import Preparation
from thund.repeats import Repeats
from thund.session_rule import SessionRule
from thund.sessions import Sessions
from thund.source import Sequencer
from thund.watermark import (
    REASONS,
    Admission,
    EventTimes,
    LateRule,
    Watermark,
    decode_event_time,
)
from thund_contract.errors import InputError
from thund_contract.vocabulary import (
    NEVER,
    NONE_BEFORE,
    UNDECODABLE_TIME,
    WINDOW_RULE,
    Add,
    Clock,
    Config,
    Drain,
    Idle,
    Item,
    PartitionState,
    Remove,
    Rows,
)

_REASONS = pa.array(REASONS, pa.string())


class Core:
    """Sequencer, credits, watermark and windows of one process, an epoch at a time.

    `schema` is the source's. `restored` is the newest committed epoch, without its outbox.

    Law: C2, K3, W1, W6.
    """

    def __init__(
        self,
        config: Config,
        schema: pa.Schema,
        *,
        now: Callable[[], int],
        restored: Epoch | None = None,
    ) -> None:
        self.config, self.now = config, now
        self._preparation = Preparation(config, schema)
        columns = self._preparation.schema
        self.windows = Operators(config, columns)
        self._repeats = Repeats(config, columns) if config.deduplicate else None
        states = restored.partitions if restored else ()
        self.watermark = Watermark(
            config.delay_ms,
            config.max_future_ms,
            states,
            watermark=restored.watermark if restored else NEVER,
            rule=LateRule.of(config),
            tells_seen=bool(config.deduplicate),
        )
        first = self.windows.first
        self._session_rule = (
            SessionRule(first, self.watermark, self._repeats, config.grace_ms)
            if isinstance(first, Sessions) and config.late_rule == WINDOW_RULE
            else None
        )
        self.credits = Credits(config.credits)
        self.drained = restored.drained if restored else False
        self._quiet = Quiet(config.idle_timeout_ms, now() if config.idle_timeout_ms else 0)
        self._last = {p.partition: p.last for p in states}
        self.sequencer = Sequencer(self._last)
        for p in states:
            self.credits.add(p.partition)
            if p.assigned and not p.idle:
                self._quiet.start(p.partition)
        if restored:
            self.windows.restore(restored.state, restored.watermark)
            if self._repeats:
                self._repeats.restore(restored.state)
        self._pending: list[Delivery] = []
        self._begin()

    def _begin(self) -> None:
        self._items: list[Item] = []
        self._late: list[pa.RecordBatch] = []
        self._invalid: list[pa.RecordBatch] = []
        self.rows_in_epoch = 0
        self.bytes_in_epoch = 0

    # ---- what can be asked -------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """The epoch has an item."""
        return bool(self._items)

    @property
    def duplicates(self) -> int:
        """Rows that came again in this life. Law: S3, T6."""
        return int(self.sequencer.duplicates)

    @property
    def pending_rows(self) -> int:
        """Rows accepted by the sequencer that `advance` has not processed."""
        return sum(d.num_rows for d in self._pending)

    @property
    def idle_now(self) -> bool:
        """Between two epochs, a reading would find some partition idle. Law: W4."""
        return bool(self._quiet.over()) and not self.drained

    def position(self, partition: str) -> int:
        """The last offset the sequencer has accepted: where a source goes on. Law: S3."""
        return int(self.sequencer.position(partition)) if partition in self._last else NONE_BEFORE

    def assigned(self) -> tuple[str, ...]:
        """The partitions assigned now, sorted."""
        return tuple(p.partition for p in self.partitions() if p.assigned)

    def partitions(self) -> tuple[PartitionState, ...]:
        """Every partition that was ever assigned, sorted by name. Law: W1, W5, A5, K3."""
        return tuple(
            PartitionState(
                partition=p.partition,
                assigned=p.assigned,
                last=self._last[p.partition],
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
            for p in self.watermark.partitions()
        )

    # ---- actions -----------------------------------------------------------------------------------

    def add(self, partition: str) -> None:
        """A partition is assigned; one that was here goes on where it was. Law: W4, W5."""
        self._record(Add(partition))
        self._quiet.start(partition)
        self._last.setdefault(partition, NONE_BEFORE)
        self.sequencer.add(partition, self._last[partition])
        self.credits.add(partition)
        self.watermark.add(partition)
        self.windows.close(self.watermark.W)

    def remove(self, partition: str) -> None:
        """A partition goes; its progress stays, what was held of it does not. Law: W3, W5."""
        self.advance()
        self._record(Remove(partition))
        self._quiet.stop(partition)
        self.sequencer.remove(partition)
        self.credits.drop_held(partition)
        self.watermark.remove(partition)
        self.windows.close(self.watermark.W)

    def resume(self) -> None:
        """What passed since the last reading was the engine's own work. Law: W4."""
        if self.config.idle_timeout_ms:
            self._quiet.resume(self.now())

    def waited(self) -> None:
        """What passed since the last reading was spent waiting for rows.

        The clock of a partition stands while a row of it waits for one before it. Law: W4.
        """
        if self.config.idle_timeout_ms:
            self._quiet.waited(self.now(), lambda name: self.sequencer.held(name) > 0)

    def tick(self) -> None:
        """Rows were waited for until now; read one clock.

        In an epoch that has begun it is the guard's, if that is on; else that of idleness.

        Law: A4, K3, W4.
        """
        self.waited()
        if not self._items:
            if self.idle_now:
                self.idle(self._quiet.over())
        elif self.config.max_future_ms is not None:
            self._read_clock()

    def idle(self, partitions: tuple[str, ...]) -> None:
        """One reading found these partitions idle; they go together. Law: W3, W4, K3."""
        self._record(Idle(partitions))
        for name in partitions:
            self._quiet.stop(name)
        self.watermark.idle(partitions)
        self.windows.close(self.watermark.W)

    def deliver(self, delivery: Delivery) -> None:
        """Take rows from the link; those in order wait for `advance`. Law: S2, S3."""
        accepted = self.sequencer.deliver(delivery)
        if accepted.num_rows:
            self._pending.append(accepted)

    def advance(self, max_rows: int | None = None) -> int:
        """Process accepted rows, in order, up to `max_rows` or the row that fills a window.

        Gives the number of rows processed. Law: C2, W3.
        """
        done = 0
        while self._pending and not self.credits.full() and (max_rows is None or done < max_rows):
            first = self._pending[0]
            limit = first.num_rows if max_rows is None else min(first.num_rows, max_rows - done)
            stop = self._stop(first, limit)
            self._process(first if stop == first.num_rows else first.slice(0, stop))
            self._pending[0:1] = (
                [] if stop == first.num_rows else [first.slice(stop, first.num_rows)]
            )
            done += stop
        return done

    def drain(self) -> None:
        """The caller says that every row was accepted: W becomes END. Law: W6."""
        if self.drained:
            return
        self._record(Drain())
        self.drained = True
        self.watermark.drain()
        self.windows.close(self.watermark.W)

    def cut(self, number: int) -> Epoch | None:
        """What the epoch shows, and what its checkpoint keeps; None for an epoch without items.

        Law: K1, K3, E1, E2, E3.
        """
        if not self._items:
            return None
        self.end_epoch()
        outbox = self.show(number)
        epoch = Epoch(
            number=number,
            items=tuple(self._items),
            watermark=self.watermark.W,
            partitions=self.partitions(),
            state=self._snapshot(),
            outbox=outbox,
            drained=self.drained,
        )
        self._begin()
        return epoch

    def end_epoch(self) -> None:
        """What follows the last item: W moves now, where rows do not move it. Law: W3, A7, F1."""
        self.watermark.end_epoch()
        self.windows.close(self.watermark.W)
        if self._repeats:
            self._repeats.forget(self.watermark.W)

    def _snapshot(self) -> dict[str, pa.Table]:
        return self.windows.snapshot() | (self._repeats.snapshot() if self._repeats else {})

    def show(self, version: int) -> Outbox:
        """The rows and lanes of the epoch, which are forgotten by it. Law: A6, E1, E2, E3, E6."""
        shown, unfit = self.windows.show(version, self.watermark.W)
        first = shown.pop("")
        return Outbox(
            epoch=version,
            rows=first.rows,
            late=pa.Table.from_batches(self._late, LATE_SCHEMA),
            invalid=pa.Table.from_batches(self._invalid, INVALID_SCHEMA),
            unfit=unfit,
            panes=first.panes,
            more=shown,
        )

    def committed(self) -> None:
        """The epoch is durable: credits go back. Law: C1, K1."""
        self.credits.commit()

    # ---- one run of rows ---------------------------------------------------------------------------

    def _stop(self, delivery: Delivery, limit: int) -> int:
        """How many rows to take so that the last one is at most the one that fills a window."""
        if len(delivery.partitions) == 1:
            return min(limit, self.credits.room(delivery.partitions[0]))
        rows = delivery.partition[:limit]
        for index, name in enumerate(delivery.partitions):
            room = self.credits.room(name) if name in self._last else limit
            if room <= limit:
                places = np.flatnonzero(rows == index)
                if len(places) >= room:
                    limit = int(places[room - 1]) + 1
                    rows = rows[:limit]
        return limit

    def _process(self, delivery: Delivery) -> None:
        """Judge the rows by W row by row, fold the admitted ones, close what W has passed.

        Law: A1, A4, A5, A6, A8, F1, K3, W3.
        """
        if self.drained:
            self._refuse_after_drain(delivery)
        self._record_rows(delivery)
        self.rows_in_epoch += delivery.num_rows
        self.bytes_in_epoch += delivery.nbytes
        prepared = self._preparation.apply(delivery.columns)
        delivery = replace(delivery, columns=prepared.columns)
        times = self._event_times(delivery.columns)
        admission = self.watermark.admit(
            times, delivery.partition, delivery.partitions, passes=prepared.passes
        )
        if self._session_rule and len(admission.seen):
            admission = self._session_rule.fold(delivery, times.values, admission)
        else:
            self._fold(delivery, times, self._without_repeats(delivery, times, admission))
        self._keep_lanes(delivery, times, admission)
        self.windows.close(self.watermark.W)

    def _without_repeats(
        self, delivery: Delivery, times: EventTimes, admission: Admission
    ) -> Admission:
        """What is left of the admitted rows; each is remembered. Law: A5, A7."""
        if self._repeats is None:
            return admission
        rows = admission.admitted
        rows = np.arange(delivery.num_rows, dtype=np.uint32) if rows is None else rows
        repeated = self._repeats.judge(delivery.columns, times.values, admission.seen, rows)
        if not repeated.any():
            return admission
        again = delivery.partition[rows[repeated]]
        self.watermark.count_repeated(again, delivery.partitions)
        return replace(admission, admitted=rows[~repeated])

    def _fold(self, delivery: Delivery, times: EventTimes, admission: Admission) -> None:
        """Admitted rows to their windows; those that missed some, after these have closed.

        Law: A2, F2.
        """
        rows = admission.admitted
        if len(admission.missed) == 0 or not admission.missed.any():
            self.windows.fold(delivery, times.values, rows)
            return
        rows = np.arange(delivery.num_rows, dtype=np.uint32) if rows is None else rows
        missed = admission.missed[rows]
        self.windows.fold(delivery, times.values, rows[missed == 0])
        rows, missed = rows[missed > 0], missed[missed > 0]
        names = [delivery.partitions[index] for index in delivery.partition[rows].tolist()]
        self.watermark.count_missed(names, missed.tolist())
        cuts = np.flatnonzero(np.diff(admission.closed[rows])) + 1
        for part in np.split(rows, cuts) if len(rows) else []:
            lo, hi = int(part[0]), int(part[-1]) + 1
            self.windows.close(int(admission.seen[lo]))
            self.windows.fold(delivery.slice(lo, hi), times.values[lo:hi], part - np.uint32(lo))

    def _record(self, item: Item) -> None:
        if not self._items and self.config.max_future_ms is not None:
            self._read_clock()
        self._items.append(item)

    def _read_clock(self) -> None:
        now_ms = self.now()
        self.watermark.clock(now_ms)
        self._items.append(Clock(now_ms))

    def _record_rows(self, delivery: Delivery) -> None:
        """One Rows item per unbroken run of one partition; credits and clocks by partition.

        Law: K3, C1, W4.
        """
        partition, offset = delivery.partition, delivery.offset
        one = len(delivery.partitions) == 1
        starts = np.zeros(1, np.intp) if one else np.flatnonzero(np.diff(partition, prepend=-1))
        stops = np.append(starts[1:], len(partition))
        names = delivery.partitions
        runs = zip(
            partition[starts].tolist(),
            offset[starts].tolist(),
            offset[stops - 1].tolist(),
            (stops - starts).tolist(),
            strict=True,
        )
        for index, first, last, rows in runs:
            self._append_run(Rows(names[index], first, last, rows))
        for name, (rows, last) in delivery.by_partition().items():
            self.credits.accept(name, rows)
            self._last[name] = last
            self._quiet.start(name)

    def _append_run(self, run: Rows) -> None:
        before = self._items[-1] if self._items else None
        if isinstance(before, Rows) and before.partition == run.partition:
            self._items[-1] = Rows(run.partition, before.first, run.last, before.rows + run.rows)
        else:
            self._record(run)

    def _keep_lanes(self, delivery: Delivery, times: EventTimes, admission: Admission) -> None:
        """Late rows where their lane is configured, invalid rows always. Law: A4, A6."""
        if self.config.late_lane and len(admission.late):
            at = admission.late
            self._late.append(
                pa.record_batch(
                    [
                        _names(delivery, at),
                        delivery.offset[at],
                        times.values[at],
                        admission.late_watermark,
                    ],
                    schema=LATE_SCHEMA,
                )
            )
        if len(admission.invalid):
            at = admission.invalid
            self._invalid.append(
                pa.record_batch(
                    [
                        _names(delivery, at),
                        delivery.offset[at],
                        _REASONS.take(pa.array(admission.invalid_reason)),
                        admission.invalid_watermark,
                    ],
                    schema=INVALID_SCHEMA,
                )
            )

    def _event_times(self, columns: pa.RecordBatch) -> EventTimes:
        """The event times; a cell that a text source could not read is undecodable, not null.

        Law: A4.
        """
        times = decode_event_time(columns.column(self.config.event_time))
        if times.reasons is None or UNREADABLE_TIME not in columns.schema.names:
            return times
        unreadable = columns.column(UNREADABLE_TIME).to_numpy(zero_copy_only=False)
        reasons = np.where(unreadable, REASONS.index(UNDECODABLE_TIME), times.reasons)
        return replace(times, reasons=reasons.astype(np.uint8))

    def _refuse_after_drain(self, delivery: Delivery) -> None:
        """After a drain everything would be late: the state says that it is over. Law: W6."""
        name = delivery.partitions[int(delivery.partition[0])]
        raise InputError(
            f"{delivery.num_rows} rows after the drain, the first is {name}:{delivery.offset[0]}",
            allowed="no rows once a bounded source was drained",
            where=f"partition {name}",
            action="use a new state_root for a source that has grown, or do not drain it",
            code="drained",
        )


def _names(delivery: Delivery, at: NDArray[np.uint32]) -> pa.Array:
    names = pa.array(delivery.partitions, pa.string())
    return names.take(pa.array(delivery.partition[at]))
