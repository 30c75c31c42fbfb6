"""Put what a link delivers back into the order of the log.

It knows of offsets only, not of event times, credits or rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from thund_contract.vocabulary import NONE_BEFORE


@dataclass(frozen=True, slots=True)
class Sequencer:
    """What one partition has accepted (`last`), and what waits for a gap: prev -> offset."""

    last: int = NONE_BEFORE
    held: Mapping[int, int] = field(default_factory=dict)


def deliver(state: Sequencer, prev: int, offset: int) -> tuple[Sequencer, tuple[int, ...], bool]:
    """Take one delivery; give the state, the offsets it lets in, and whether it was a duplicate.

    Law: S2, S3, T6.
    """
    assert NONE_BEFORE <= prev < offset
    if offset <= state.last or offset in state.held.values():
        return state, (), True
    last, held = state.last, {**state.held, prev: offset}
    accepted = []
    while last in held:
        last = held.pop(last)
        accepted.append(last)
    return Sequencer(last, held), tuple(accepted), False


def rows_after(log: Sequence[int], last: int, oldest: int = NONE_BEFORE) -> tuple[int, ...]:
    """The offsets of a log that follow `last`; reading them again gives the same.

    `oldest` is the newest offset that the source has lost, NONE_BEFORE where it has all.

    Law: S1, S4.
    """
    if oldest > last:
        raise LookupError(f"rows up to offset {oldest} are gone, and {last} is the last one known")
    return tuple(offset for offset in log if offset > last)


def delivery_order(logs: Mapping[str, Iterable[int]], chunk: int) -> list[tuple[str, int]]:
    """The order of a bounded source: by (offset div chunk, partition, offset).

    A function of the offsets alone, so any row says where to go on.

    Law: S5.
    """
    rows = [(partition, offset) for partition, log in logs.items() for offset in log]
    return sorted(rows, key=lambda row: (row[1] // chunk, row[0], row[1]))
