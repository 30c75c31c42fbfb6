"""A portable test input: a configuration, the logs of a source, and what happens to them.

A scenario is data. It can be drawn, written by hand, printed when a test fails, and run on any engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from thund_contract.vocabulary import Config, Row


@dataclass(frozen=True, slots=True)
class Deliver:
    """The link hands over the next `rows` rows of the partition that this life has not sent yet.

    Rows outside the partition's credit window wait at the source (law C2): fewer may arrive.
    """

    partition: str
    rows: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The link hands over the row at `offset` once more, if this life has sent it (law S2)."""

    partition: str
    offset: int


@dataclass(frozen=True, slots=True)
class Reorder:
    """As Deliver, but the rows arrive last one first (laws S2, S3)."""

    partition: str
    rows: int


@dataclass(frozen=True, slots=True)
class AddPartition:
    """The partition is assigned, again if it was removed (law W5)."""

    partition: str


@dataclass(frozen=True, slots=True)
class RemovePartition:
    """The partition is no longer assigned; what was held of it is dropped (law W5)."""

    partition: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock moves on while the engine waits for rows, which then reads it (laws A4, W4, K3).

    In an epoch that has begun the reading is for the guard; between two epochs it is for idleness.
    """

    by_ms: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The clock moves on while the engine is at work: no partition's idle clock runs (law W4)."""

    by_ms: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """An epoch is cut and published; nothing happens where it would have no items (law K1)."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The process dies right after the `after`-th durable step from here; 0 means at once.

    Steps count on over later Barriers. What follows a death, up to the Restart, does not happen.
    """

    after: int


@dataclass(frozen=True, slots=True)
class Restart:
    """A new process recovers from the store; without a death before it, the old one is killed."""


@dataclass(frozen=True, slots=True)
class DrainAll:
    """Recover if dead; every row not yet accepted arrives, by partition, then offset; then a drain.

    A row that waits for credit arrives after the epoch that the full window cuts (laws C2, W6).
    """


Step = (
    Deliver
    | Duplicate
    | Reorder
    | AddPartition
    | RemovePartition
    | Tick
    | Busy
    | Barrier
    | Crash
    | Restart
    | DrainAll
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """logs: the rows of each partition in offset order. assigned: the partitions at the start.

    why: the sentence that a reader of the file sees first.
    """

    config: Config
    logs: tuple[tuple[str, tuple[Row, ...]], ...]
    assigned: tuple[str, ...]
    steps: tuple[Step, ...]
    why: str = ""
