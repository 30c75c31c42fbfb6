"""The least (event time, partition, offset) of each entry, row by row."""

from __future__ import annotations

from thund.words import Array, Scalar, jit


@jit
def earlier(
    entries: Array,
    time: Array,
    number: Array,
    offset: Array,
    rank: Array,
    kept_time: Array,
    kept_number: Array,
    kept_offset: Array,
    row: Array,
    winners: Array,
) -> Scalar:
    """Let each row replace what its entry has, where it comes before it. Returns the winners' count.

    number: of the row's partition; rank: its place in the order of names. A kept number of -1 is no
    row yet. winners: entries whose row is new, and row[entry] which row that is; row is -1 elsewhere.
    """
    n = 0
    for r in range(len(entries)):
        e, t, p = entries[r], time[r], rank[number[r]]
        if kept_number[e] >= 0:
            if t > kept_time[e]:
                continue
            if t == kept_time[e]:
                q = rank[kept_number[e]]
                if p > q or (p == q and offset[r] >= kept_offset[e]):
                    continue
        if row[e] < 0:
            winners[n] = e
            n += 1
        kept_time[e], kept_number[e], kept_offset[e], row[e] = t, number[r], offset[r], r
    return n
