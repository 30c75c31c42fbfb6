"""Which rows bring an id that is remembered, one after the other."""

from __future__ import annotations

from thund.words import Array, Scalar, jit


@jit
def settle(
    entries: Array,
    times: Array,
    watermarks: Array,
    known: Array,
    last: Array,
    remember: Scalar,
    repeated: Array,
) -> None:
    """Judge rows in order, each with the entry of its id, its event time and the W just before it.

    known, last: per entry whether its id was ever admitted, and the event time of the row that
    brought it then. repeated: set for each row.
    """
    for r in range(len(entries)):
        e = entries[r]
        repeated[r] = known[e] and watermarks[r] <= last[e] + remember
        if not repeated[r]:
            known[e] = True
            last[e] = times[r]
