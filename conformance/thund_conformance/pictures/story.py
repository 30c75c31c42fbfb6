"""What the reference does with a scenario, one moment after the other, for a picture to show.

It knows nothing of coordinates or colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from thund_conformance.engines.reference import Reference
from thund_conformance.link import Link
from thund_conformance.words import literal
from thund_contract.engine import Outcome
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Busy,
    Crash,
    Deliver,
    DrainAll,
    Duplicate,
    RemovePartition,
    Reorder,
    Restart,
    Scenario,
    Step,
    Tick,
)
from thund_contract.vocabulary import NEVER, SESSION, EpochRecord, Row
from thund_reference.pipeline import Life, World

ROW, QUIET, DEATH, START, DRAIN = "row", "quiet", "death", "start", "drain"
"""Kinds of moments; quiet ones are those that bring no row: time passes, or partitions change."""

INVALID = "invalid"
VERDICTS = ("admitted", "late", INVALID, "filtered", "repeated")

FILES = {"state": "its state", "outbox": "its outbox", "manifest": "the manifest"}
FILES |= {"pointer": "the pointer", "source": "the source's commit", "sink": "the sink's merge"}


@dataclass(frozen=True, slots=True, order=True)
class Bar:
    """An open window; key is "" where windows are the same for all keys."""

    start_ms: int
    end_ms: int
    key: str


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened. before, after: W. open: the windows after it.

    lost: no epoch of its life has committed it.
    """

    kind: str
    label: str
    before: int
    after: int
    open: frozenset[Bar]
    row: Row | None = None
    verdict: str = ""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """The moments [first, end) that one epoch commits; record is None where they were lost."""

    first: int
    end: int
    record: EpochRecord | None


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario as it went, and what came of it."""

    scenario: Scenario
    moments: tuple[Moment, ...]
    bands: tuple[Band, ...]
    outcome: Outcome


def tell(scenario: Scenario) -> Story:
    """Run a scenario on the reference and note each moment.

    Raises: ValueError for a scenario whose link reorders rows: a picture shows one row at a time.
    """
    teller = _Teller(Link(Reference(), scenario))
    for step in scenario.steps:
        for part in _apart(teller.link, step):
            teller.take(part)
    return teller.story()


def _apart(link: Link, step: Step) -> Iterator[Step]:
    """A step as steps of one row each, as far as the link lets them through."""
    match step:
        case Deliver(partition, rows):
            yield from [Deliver(partition, 1)] * rows
        case Reorder():
            raise ValueError("a picture shows one row at a time, and Reorder hands over several")
        case DrainAll():
            if link.life is None:
                yield Restart()
            for partition in sorted(link.wanted):
                while link.sent[partition] < len(link.logs.get(partition, ())):
                    yield Deliver(partition, 1)
            yield step
        case _:
            yield step


@dataclass(slots=True)
class _Teller:
    """A link, and the moments so far. pending: the first one that no epoch has committed."""

    link: Link
    moments: list[Moment] = field(default_factory=list)
    bands: list[tuple[int, int, int | None]] = field(default_factory=list)
    pending: int = 0
    kept: frozenset[Bar] = frozenset()
    kept_watermark: int = NEVER

    def take(self, step: Step) -> None:
        """One step, and what is to be seen of it."""
        link = self.link
        alive, durable = link.life is not None, len(link.durable_steps)
        epochs = set(self.world.disk.manifests)
        if alive and isinstance(step, Restart):
            self._die("killed")
        before = self._watermark() if link.life is not None else self.kept_watermark
        counted = self._counted()
        link.take(step)
        steps = link.durable_steps[durable:]
        if link.life is not None:
            self._note(step, before, counted, steps)
        for epoch in sorted(set(self.world.disk.manifests) - epochs):
            self._commit(epoch)
        if alive and link.life is None:
            after = f" after {FILES[steps[-1].partition(':')[0]]}" if steps else ""
            self._die(f"killed{after}")

    @property
    def world(self) -> World:
        """The reference's disk and sink."""
        return cast("World", self.link.world)

    @property
    def life(self) -> Life:
        """The reference's process that runs now."""
        return cast("Life", self.link.alive)

    def story(self) -> Story:
        """All of it. What no epoch has committed is a last band of its own."""
        if self.pending < len(self.moments):
            self._band(None)
        outcome = self.link.outcome()
        records = {record.epoch: record for record in outcome.epochs}
        bands = tuple(Band(first, end, records.get(epoch or 0)) for first, end, epoch in self.bands)
        return Story(self.link.scenario, tuple(self.moments), bands, outcome)

    # ---- one moment ----------------------------------------------------------------------------

    def _note(self, step: Step, before: int, counted: Mapping[str, int], steps: list[str]) -> None:
        kind, label = _words(step)
        row = self._row(step, counted)
        if isinstance(step, Barrier | Crash) or (isinstance(step, Deliver) and row is None):
            return
        if isinstance(step, Restart):
            published = [name.partition(":")[2] for name in steps]
            label += f", merges epoch {', '.join(published)}" if published else ""
            self.pending += 1
        idle = self._newly_idle() if isinstance(step, Tick) else ""
        verdict = self._verdict(counted) if row else ""
        label = self._label(row) if row else label + idle
        after, bars = self._watermark(), self._bars()
        self.moments.append(Moment(kind, label, before, after, bars, row, verdict))

    def _watermark(self) -> int:
        return self.life.process.watermark

    def _bars(self) -> frozenset[Bar]:
        """Of the first window, where a pipeline has several."""
        operator = self.life.process.operators[0]
        by_key = operator.config.window.kind == SESSION
        return frozenset(
            Bar(start, end, _names(key) if by_key else "")
            for (start, end), groups in operator.open.items()
            for key in groups
        )

    def _counted(self) -> dict[str, int]:
        """How many rows of each verdict there are, over all partitions."""
        if self.link.life is None:
            return {}
        states = self.life.process.partition_states()
        return {name: sum(getattr(p, name) for p in states) for name in VERDICTS}

    def _verdict(self, counted: Mapping[str, int]) -> str:
        return next(name for name, n in self._counted().items() if n > counted[name])

    def _row(self, step: Step, counted: Mapping[str, int]) -> Row | None:
        """The row that this step brought, if it was accepted."""
        if not isinstance(step, Deliver) or self._counted() == counted:
            return None
        last = self.life.position(step.partition)
        return next(row for row in self.link.logs[step.partition] if row.offset == last)

    def _label(self, row: Row) -> str:
        rows = [row for _, log in self.link.scenario.logs for row in log]
        words = [f"{row.partition}:{row.offset} at {literal(row.event_time)}"]
        if row.id:
            words.append("id " + ", ".join(map(_plain, row.id)))
        if len({each.key for each in rows}) > 1:
            words.append(_names(row.key))
        values = [value for value in row.values if value is not None]
        words += [_plain(values[0])] if values else []
        return ", ".join(words)

    def _newly_idle(self) -> str:
        items = self.life.process.items
        names = [name for item in items[:1] for name in getattr(item, "partitions", ())]
        return f", {', '.join(names)} idle" if names else ""

    # ---- epochs and deaths ---------------------------------------------------------------------

    def _commit(self, epoch: int) -> None:
        """Where W moves by the epoch, it moves at its end: after its last moment."""
        if self.link.life is not None:
            last = replace(self.moments[-1], after=self._watermark(), open=self._bars())
            self.moments[-1] = last
        self._band(epoch)
        self.kept, self.kept_watermark = self.moments[-1].open, self.moments[-1].after

    def _die(self, label: str) -> None:
        """What is not committed is lost; what is, stands."""
        if self.pending < len(self.moments):
            lost = [replace(m, lost=True) for m in self.moments[self.pending :]]
            self.moments[self.pending :] = lost
            self._band(None)
        w = self.kept_watermark
        self.moments.append(Moment(DEATH, label, w, w, self.kept))
        self.pending += 1

    def _band(self, epoch: int | None) -> None:
        self.bands.append((self.pending, len(self.moments), epoch))
        self.pending = len(self.moments)


def _words(step: Step) -> tuple[str, str]:
    match step:
        case AddPartition(partition):
            return QUIET, f"add {partition}"
        case RemovePartition(partition):
            return QUIET, f"remove {partition}"
        case Duplicate(partition, offset):
            return QUIET, f"{partition}:{offset} once more"
        case Tick(by_ms):
            return QUIET, f"{by_ms} ms of waiting"
        case Busy(by_ms):
            return QUIET, f"{by_ms} ms of work"
        case Restart():
            return START, "starts again"
        case DrainAll():
            return DRAIN, "drain"
    return ROW, ""


def _names(key: tuple[object, ...]) -> str:
    return ", ".join(map(_plain, key))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else literal(value)
