"""How long each partition has given no row while rows were waited for.

It reads no clock: the readings are handed in.
"""

from __future__ import annotations

from collections.abc import Callable


class Quiet:
    """The idle clocks of one process, one for each partition that is assigned and not idle.

    What passes between a reading and a `resume` is the engine's own work, and runs no clock.

    Law: W4.
    """

    def __init__(self, timeout_ms: int, now_ms: int) -> None:
        self._timeout, self._mark = timeout_ms, now_ms
        self._clocks: dict[str, int] = {}

    def start(self, partition: str) -> None:
        """The partition is assigned, or a row of it was accepted: its clock starts anew."""
        self._clocks[partition] = 0

    def stop(self, partition: str) -> None:
        """The partition is idle, or gone: it has no clock."""
        self._clocks.pop(partition, None)

    def resume(self, now_ms: int) -> None:
        """What passed until now was not spent waiting."""
        self._mark = now_ms

    def waited(self, now_ms: int, stands: Callable[[str], bool]) -> None:
        """What passed until now was spent waiting; a clock that `stands` does not run."""
        elapsed, self._mark = max(0, now_ms - self._mark), now_ms
        for name in self._clocks:
            if not stands(name):
                self._clocks[name] += elapsed

    def over(self) -> tuple[str, ...]:
        """The partitions that were quiet for the timeout, sorted; none where idleness is off."""
        if self._timeout == 0:
            return ()
        return tuple(sorted(name for name, ms in self._clocks.items() if ms >= self._timeout))
