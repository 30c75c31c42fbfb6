"""Event times in the kernel: the row rule, window numbers, and rows sorted by window."""

from __future__ import annotations

import numpy as np

from thund.words import Array, Scalar, inline, int_at, jit, word_at

NO_TIME = -9223372036854775808
"""A partition's largest event time before its first valid row, and W before any candidate."""

_PASSES = 3
"""Windows of a batch up to which a pass over the rows for each is faster than counting."""

_NO_PARTITION = 9223372036854775807

BY_W, BY_WINDOW, BY_PARTITION, BY_CLOSE, BY_SESSION = range(5)
"""The late rules (laws A1, A2, A3); A2 by a formula, by each row's own close, by the sessions."""

ACCEPTED, ADMITTED, LATE, INVALID, MISSED, FILTERED, REPEATED = range(7)
"""Columns of the counters of partitions (laws A5, A2)."""

COUNTS = 7

NOT_PASSED = 255
"""In place of a reason: the time is valid, and the filter does not pass the row (law A8)."""


@jit
def span(times: Scalar, n: Scalar) -> Scalar:
    """The lowest and the highest of n times at an address."""
    low, high = np.int64(_NO_PARTITION), np.int64(NO_TIME)
    for i in range(n):
        t = word_at(times, np.uint64(i))
        low = min(low, t)
        high = max(high, t)
    return low, high


@jit
def lowest(tops: Array, assigned: Array, idle: Array) -> Scalar:
    """The least of the active partitions' largest times; NO_TIME where one has none."""
    low = np.int64(_NO_PARTITION)
    for p in range(len(tops)):
        if assigned[p] and not idle[p]:
            low = min(low, tops[p])
    return low


@jit
def peaks(times: Scalar, partition: Scalar, slots: Array, n: Scalar, tops: Array) -> None:
    """Raise tops to each partition's largest time."""
    for i in range(n):
        t = word_at(times, np.uint64(i))
        p = slots[int_at(partition, np.uint64(i))]
        if t > tops[p]:
            tops[p] = t


@inline
def count_run(
    counts: Array,
    p: Scalar,
    accepted: Scalar,
    admitted: Scalar,
    late: Scalar,
    invalid: Scalar,
    before: Array,
) -> None:
    """Add what became of a run of one partition; `before` says how long three lists were then."""
    listed = admitted - before[0] + late - before[1] + invalid - before[2]
    counts[p, ACCEPTED] += accepted
    counts[p, ADMITTED] += admitted - before[0]
    counts[p, LATE] += late - before[1]
    counts[p, INVALID] += invalid - before[2]
    counts[p, FILTERED] += accepted - listed
    before[0], before[1], before[2] = admitted, late, invalid


@inline
def is_late(
    t: Scalar,
    watermark: Scalar,
    top: Scalar,
    delay: Scalar,
    edge: Scalar,
    rule: Array,
    closes: Array,
    i: Scalar,
) -> Scalar:
    """Whether the time of row i is late by the rule, before its row moves a thing.

    top: the largest time of its partition so far. With sessions it is for them to say.
    """
    kind = rule[0]
    if kind == BY_WINDOW:
        size, slide, offset, grace = rule[1], rule[2], rule[3], rule[4]
        last = (t - offset) // slide * slide + offset
        return last + size + grace <= watermark
    if kind == BY_CLOSE:
        return closes[i] <= watermark
    if kind == BY_SESSION:
        return False
    if t < watermark + edge:
        return True
    return kind == BY_PARTITION and top != NO_TIME and t < top - delay


@jit
def walk(
    times: Scalar,
    reasons: Array,
    partition: Scalar,
    slots: Array,
    n: Scalar,
    tops: Array,
    assigned: Array,
    idle: Array,
    counts: Array,
    watermark: Scalar,
    delay: Scalar,
    edge: Scalar,
    rule: Array,
    closes: Array,
    moves: Scalar,
    admitted: Array,
    late: Array,
    late_watermark: Array,
    invalid: Array,
    invalid_watermark: Array,
    seen: Array,
) -> Scalar:
    """Judge the rows one by one, each by what stood before it.

    idle: which partitions are; a row wakes its own. reasons: one byte a row, 0 for a valid time, or
    none at all; NOT_PASSED for a valid time that goes to no list. rule: kind, size, slide, offset and grace. closes: per row the W that closes its
    window, where the rule asks for it. moves: whether rows move W. seen: room for the W just before
    each row, or none. Returns W and how many rows went to each of the three lists.
    """
    checked = len(reasons) > 0
    a = b = c = begun = 0
    p = slots[int_at(partition, np.uint64(0))]
    top = tops[p]
    idle[p] = False
    low = lowest(tops, assigned, idle)
    fresh = True  # the candidate may have risen without a row that raised a top
    before = np.zeros(3, np.int64)  # lists' lengths when the run of one partition began
    for i in range(n):
        q = slots[int_at(partition, np.uint64(i))]
        if q != p:
            tops[p] = top
            count_run(counts, p, i - begun, a, b, c, before)
            p, top, begun = q, tops[q], i
            if idle[p]:
                idle[p] = False
                low = lowest(tops, assigned, idle)
                fresh = True
        if len(seen):
            seen[i] = watermark
        if checked and reasons[i] != 0 and reasons[i] != NOT_PASSED:
            invalid[c] = i
            invalid_watermark[c] = watermark
            c += 1
            continue
        t = word_at(times, np.uint64(i))
        if checked and reasons[i] == NOT_PASSED:
            pass  # it moves W, and is on no list
        elif is_late(t, watermark, top, delay, edge, rule, closes, i):
            late[b] = i
            late_watermark[b] = watermark
            b += 1
        else:
            admitted[a] = i
            a += 1
        if t > top:
            old, top = top, t
            if old == low:
                tops[p] = top
                low = lowest(tops, assigned, idle)
                fresh = True
        if fresh:
            fresh = False
            if moves and low != NO_TIME and low - delay > watermark:
                watermark = low - delay
    tops[p] = top
    count_run(counts, p, n - begun, a, b, c, before)
    return watermark, a, b, c


@jit
def number_windows(
    times: Scalar, rows: Array, n: Scalar, size: Scalar, offset: Scalar, numbers: Array
) -> None:
    """The number floor((time - offset) / size) of n rows' windows, exactly.

    The estimate by reciprocal is at most one off, for |time| and |offset| up to 2**52.
    """
    inverse = 1.0 / size
    dense = len(rows) == 0
    for r in range(n):
        i = np.uint64(r) if dense else np.uint64(rows[r])
        d = word_at(times, i) - offset
        x = np.int64(np.floor(d * inverse))
        rest = d - x * size
        numbers[r] = x + (rest >= size) - (rest < 0)


@jit
def sort_rows(numbers: Array, first: Scalar, rows: Array, ends: Array, order: Array) -> None:
    """Rows by window number, stable. `ends`, zero before, becomes the end of each window's rows.

    order has room for one more row than there are: a pass writes it before it knows.
    """
    dense = len(rows) == 0
    total = 0
    if len(ends) <= _PASSES:  # a pass per window, without a branch or a counter in memory
        for w in range(len(ends)):
            for r in range(len(numbers)):
                order[total] = r if dense else rows[r]
                total += numbers[r] - first == w
            ends[w] = total
        return
    for r in range(len(numbers)):
        ends[numbers[r] - first] += 1
    for w in range(len(ends)):
        count = ends[w]
        ends[w] = total
        total += count
    for r in range(len(numbers)):
        w = numbers[r] - first
        order[ends[w]] = r if dense else rows[r]
        ends[w] += 1
