"""What an engine gives to be judged: lives over a world that survives them, and what they left.

Third parties implement this, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from thund_contract.vocabulary import Config, EpochRecord, Put, Row

Durable = Callable[[str, int], None]
"""Called with (step name, epoch) just after a step became durable. It may raise: that is a death."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can show; what it cannot is not compared, and listed as such."""

    epochs: bool = True
    crashes: bool = True
    credits: bool = True
    state: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a scenario.

    epochs: one record per committed epoch, in order (an epoch lost in a crash is not there).
    table: the sink's rows, sorted. steps: the durable steps in the order they happened, as
    "name:epoch". credits: (partition, c_p) at the end. duplicates: the last life's counter.
    fault: the code of the error that stopped the run, if one did.
    """

    epochs: tuple[EpochRecord, ...]
    table: tuple[Put, ...]
    steps: tuple[str, ...]
    credits: tuple[tuple[str, int], ...]
    duplicates: int
    fault: str | None = None


class World(Protocol):
    """What survives a process: the state store and the sink."""

    def epochs(self) -> tuple[EpochRecord, ...]:
        """Every committed epoch, read back from the store."""
        ...

    def table(self) -> tuple[Put, ...]:
        """The sink's rows, sorted."""
        ...


class Life(Protocol):
    """One process, from its recovery to its death. Making one recovers (laws K4, K5)."""

    duplicates: int

    def position(self, partition: str) -> int:
        """The last accepted offset of a partition, or NONE_BEFORE."""
        ...

    def assigned(self) -> tuple[str, ...]:
        """The partitions assigned now, sorted."""
        ...

    def credit(self, partition: str) -> int:
        """c_p: how many more rows the source may send (laws C1, C2)."""
        ...

    def send(self, partition: str, rows: int) -> None:
        """The source puts so many new rows on the wire; each takes a credit."""
        ...

    def deliver(self, row: Row, prev: int) -> None:
        """A row arrives, naming the offset before it. A full window cuts an epoch (law C2)."""
        ...

    def add(self, partition: str) -> None: ...

    def remove(self, partition: str) -> None: ...

    def tick(self) -> None:
        """The engine has waited for rows since the last tick or resume; it reads the clock.

        Where an epoch has begun, for the guard, if that is on; else for idleness, if that is on.
        """
        ...

    def idle(self, partitions: tuple[str, ...]) -> None:
        """An Idle item happens again: these partitions go idle together (laws W4, K3, T7)."""
        ...

    def resume(self) -> None:
        """What passed since the last tick or resume was the engine's own work (law W4)."""
        ...

    def commit(self) -> None:
        """Cut an epoch, if it has items, and publish it (law K1)."""
        ...

    def drain(self) -> None:
        """W becomes END, in an epoch of its own or the one begun, which is then published."""
        ...


class Engine(Protocol):
    """All that a third party implements."""

    name: str
    capabilities: Capabilities

    def world(self, config: Config) -> World:
        """An empty store and an empty sink."""
        ...

    def live(
        self, config: Config, world: World, *, now: Callable[[], int], durable: Durable
    ) -> Life:
        """A new process over the world: it recovers, then takes rows."""
        ...
