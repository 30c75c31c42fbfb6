"""Run a pipeline on this machine: one thread reads ahead under credits, one works.

The clock is handed in. It owns no window, watermark or checkpoint logic.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from thund.batch import Delivery
from thund.definition import TriggerSpec
from thund.engine import Engine
from thund.pipeline import Core
from thund.source import READ_ROWS, Source, next_row
from thund_contract.errors import InputError

QUEUE_BATCHES = 4
"""How many read batches may wait; what they hold is bounded by the credits too."""
WAIT_S = 0.2
"""How long the reader sleeps where a source has nothing more, and is not bounded by `once`."""
CLOCK_MS = 1000
"""How old the reading of a long epoch may be that rows from the future are compared with."""
STOP_TRIES = 10
"""How many times WAIT_S a reader may take to end; one whose source never answers is left behind."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a person wants to see of a run; rows are counted over all lives of the state."""

    epoch: int
    accepted: int
    admitted: int
    late: int
    invalid: int
    filtered: int
    repeated: int
    late_window_drops: int
    duplicates: int
    watermark: int
    drained: bool
    open_groups: int


def progress_of(core: Core, *, epoch: int) -> Progress:
    """The counters as they stand. Law: A2, A5, A6, A7, A8."""
    states = core.partitions()
    return Progress(
        epoch=epoch,
        accepted=sum(p.accepted for p in states),
        admitted=sum(p.admitted for p in states),
        late=sum(p.late for p in states),
        invalid=sum(p.invalid for p in states),
        filtered=sum(p.filtered for p in states),
        repeated=sum(p.repeated for p in states),
        late_window_drops=sum(p.late_window_drops for p in states),
        duplicates=core.duplicates,
        watermark=core.watermark.W,
        drained=core.drained,
        open_groups=core.windows.open_groups,
    )


@dataclass(frozen=True, slots=True)
class _Appeared:
    """The source has partitions that are not assigned; the reader waits until they are."""

    partitions: tuple[str, ...]


class _Nothing:
    """No item came in time."""


NOTHING = _Nothing()


class _Reader:
    """The thread that reads ahead. It sends only what it has credit for. Law: C1, C2, C4, S5."""

    def __init__(self, source: Source, engine: Engine, *, once: bool) -> None:
        self.source, self.engine, self.once = source, engine, once
        self.out: queue.Queue[Delivery | _Appeared | BaseException | None] = queue.Queue(
            QUEUE_BATCHES
        )
        self.go_on = threading.Event()
        self.stopped = threading.Event()
        self.sent = {p: engine.position(p) for p in engine.assigned()}
        self.thread = threading.Thread(target=self._run, name="thund-reader", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopped.set()
        self.go_on.set()
        for _ in range(STOP_TRIES):
            while self.out.qsize():  # unblocks a reader that waits to hand over
                self.next(0)
            self.thread.join(timeout=WAIT_S)
            if not self.thread.is_alive():
                return

    def next(self, timeout: float) -> Delivery | _Appeared | BaseException | _Nothing | None:
        """What comes next; NOTHING where nothing came in time, None at the end of what is there."""
        try:
            return self.out.get(timeout=timeout)
        except queue.Empty:
            return NOTHING

    def _run(self) -> None:
        try:
            while not self.stopped.is_set():
                self.go_on.clear()
                if self._appeared():
                    continue
                credit = {p: self.engine.credit(p) for p in self.sent}
                delivery = self.source.read(self.sent, credit, READ_ROWS)
                if delivery is None and self.once:
                    break
                if delivery is None:
                    self.out.put(None)
                    self.stopped.wait(WAIT_S)
                elif delivery.num_rows == 0:
                    self.go_on.wait(WAIT_S)
                else:
                    self._hand_over(delivery)
            self.out.put(None)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that can raise it
            self.out.put(error)

    def _appeared(self) -> bool:
        """Tell of partitions that are new in the source, and wait until they are assigned."""
        names = tuple(name for name in self.source.partitions() if name not in self.sent)
        if names:
            self.out.put(_Appeared(names))
            while not self.stopped.is_set() and names[-1] not in self.sent:
                self.go_on.wait(WAIT_S)
        return bool(names)

    def _hand_over(self, delivery: Delivery) -> None:
        for name, (rows, last) in delivery.by_partition().items():
            self.engine.send(name, rows)
            self.sent[name] = last
        self.out.put(delivery)


def run(
    engine: Engine,
    source: Source,
    trigger: TriggerSpec,
    *,
    now: Callable[[], int],
    progress: Callable[[Progress], None] = lambda progress: None,
    stop: threading.Event | None = None,
) -> Progress:
    """Run until what is there is done (`once`), or until `stop` is set.

    Law: C3, K1, W6.
    Raises: InputError where a drained pipeline's source has grown, or the source has changed.
    """
    stop = stop or threading.Event()
    _assign(engine, source.partitions())
    if engine.core.drained:
        _check_nothing_more(engine, source)
        return progress_of(engine.core, epoch=engine.last)
    reader = _Reader(source, engine, once=bool(trigger.once))
    begun_ms = read_ms = now()
    try:
        while not stop.is_set():
            item = _wait(reader, engine)
            if isinstance(item, BaseException):
                raise item
            if item is None and trigger.once:
                break
            if isinstance(item, _Appeared):
                _assign(engine, item.partitions)
                reader.sent.update({name: engine.position(name) for name in item.partitions})
            elif isinstance(item, Delivery):
                if engine.core.begun and now() - read_ms >= CLOCK_MS:
                    engine.tick()
                    read_ms = now()
                engine.deliver(item, max_rows=trigger.rows)
            if _due(engine, trigger, now() - begun_ms):
                engine.commit()
                begun_ms = now()
            if not trigger.once:
                engine.read_idleness()
            reader.go_on.set()
            progress(progress_of(engine.core, epoch=engine.last))
        if trigger.drain and trigger.once and not stop.is_set():
            engine.drain()
        else:
            engine.commit()
    finally:
        reader.stop()
    last = progress_of(engine.core, epoch=engine.last)
    progress(last)
    return last


def _wait(
    reader: _Reader, engine: Engine
) -> Delivery | _Appeared | BaseException | _Nothing | None:
    """What comes next. Only this wait runs idle clocks, for what comes of it, too. Law: W4."""
    engine.resume()
    item = reader.next(WAIT_S)
    engine.waited()
    return item


def _assign(engine: Engine, partitions: tuple[str, ...]) -> None:
    """Partitions of the source that are not assigned yet. Law: W5."""
    known = engine.assigned()
    for name in partitions:
        if name not in known:
            engine.add(name)


def _due(engine: Engine, trigger: TriggerSpec, elapsed_ms: int) -> bool:
    """A trigger by bytes or by time; rows and full credit windows are cut to the row. Law: K1."""
    size, interval = trigger.bytes, trigger.interval_ms
    enough = size is not None and engine.core.bytes_in_epoch >= size
    return enough or (interval is not None and elapsed_ms >= interval)


def _check_nothing_more(engine: Engine, source: Source) -> None:
    """A drained state is over: a source that has grown since then is said so. Law: W6."""
    after = {p: engine.position(p) for p in source.partitions()}
    more = next_row(source, after)
    if more is not None:
        name = more.partitions[int(more.partition[0])]
        raise InputError(
            f"the state was drained, and {name} has a row {int(more.offset[0])} after it",
            allowed="a source that has not grown since the drain",
            where=f"partition {name}",
            action="use a new state_root, or run without `drain`",
            code="drained",
        )
