"""Bound what is in flight between a source and the last committed epoch, per partition.

It knows neither rows nor time; a source without credit is paused, and nothing is shed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Credits:
    """`window` is C_p; in_flight counts rows sent and not committed, accepted those let in."""

    window: int
    in_flight: int = 0
    accepted: int = 0

    def __post_init__(self) -> None:
        """Nothing else is ever a state. Law: C1."""
        assert 0 <= self.accepted <= self.in_flight <= self.window


def available(state: Credits) -> int:
    """c_p: how many rows the source may still send. Law: C1."""
    return state.window - state.in_flight


def send(state: Credits, rows: int) -> Credits:
    """New rows go on the wire; each takes a credit. A duplicate does not come here.

    Law: C1, C4.
    """
    assert 0 <= rows <= available(state)
    return Credits(state.window, state.in_flight + rows, state.accepted)


def accept(state: Credits, rows: int) -> Credits:
    """Rows that were on the wire are accepted, and stay in flight until they are committed."""
    return Credits(state.window, state.in_flight, state.accepted + rows)


def commit(state: Credits) -> Credits:
    """The epoch is durable: its rows give their credits back. Law: C1, C3."""
    return Credits(state.window, state.in_flight - state.accepted, 0)


def drop_held(state: Credits) -> Credits:
    """The partition goes: what is not accepted will have to be sent again. Law: C1, W5."""
    return Credits(state.window, state.accepted, state.accepted)


def full(state: Credits) -> bool:
    """Every row of the window is accepted: only an epoch can give credit back. Law: C2."""
    return state.accepted == state.window
