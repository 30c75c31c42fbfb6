"""Bound what is in flight between the source and the last committed epoch, per partition.

It counts rows; it does not know what is in them. A source without credit is paused, never shed.
Two threads may use it: one that reads ahead, and one that accepts and commits.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from thund_contract.errors import LawBroken


@dataclass(slots=True)
class _Window:
    """One partition's window: rows sent and not committed, and those of them accepted."""

    in_flight: int = 0
    accepted: int = 0


class Credits:
    """The offset windows of all partitions, `window` rows each.

    Law: C1, C2, C3.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._windows: dict[str, _Window] = {}
        self._lock = threading.Lock()

    def add(self, partition: str) -> None:
        """A partition starts with a whole window; one that is known keeps its own. Law: C1."""
        self._windows.setdefault(partition, _Window())

    def available(self, partition: str) -> int:
        """c_p: how many more rows the source may send. Law: C1."""
        return self.window - self._windows[partition].in_flight

    def send(self, partition: str, rows: int) -> None:
        """New rows go on the wire; each takes a credit.

        Law: C1, C4.
        Raises: LawBroken where the source sends more than it was given.
        """
        with self._lock:
            left = self.available(partition)
            if not 0 <= rows <= left:
                raise LawBroken(
                    f"{rows} rows sent with {left} credits",
                    allowed="no row without a credit (C1)",
                    where=f"partition {partition}",
                    action="report this: the source asked for more than it may",
                )
            self._windows[partition].in_flight += rows

    def accept(self, partition: str, rows: int) -> None:
        """Rows are accepted, and stay in flight until they are committed. Law: C1, C2."""
        self._windows[partition].accepted += rows

    def room(self, partition: str) -> int:
        """How many more rows of the window can be accepted before only an epoch helps. Law: C2."""
        return self.window - self._windows[partition].accepted

    def full(self) -> bool:
        """Some partition's window is accepted whole: the epoch must be cut. Law: C2, C3."""
        return any(w.accepted >= self.window for w in self._windows.values())

    def commit(self) -> None:
        """The epoch is durable: its rows give their credits back. Law: C1, C3."""
        with self._lock:
            for w in self._windows.values():
                w.in_flight -= w.accepted
                w.accepted = 0

    def drop_held(self, partition: str) -> None:
        """The partition goes: what is not accepted will be sent again. Law: C1, W5."""
        with self._lock:
            window = self._windows[partition]
            window.in_flight = window.accepted
