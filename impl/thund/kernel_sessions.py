"""Sessions in the kernel: each row to the open session of its key, and the sessions that W has passed.

The first words of an entry are the session's, in the order below; its states follow. The sessions
of a key are a list, the latest first, and no two of them overlap.
"""

from __future__ import annotations

import numpy as np

from thund.kernel import BLOCK, ENTRIES, fold
from thund.kernel_sum import QUEUED, WIDE_SHIFT, WIDE_WORDS
from thund.words import Array, Scalar, inline, jit, prefetch, word_at

START, END, EARLIER, KEY, STAMP, SHOWN = range(6)
"""Words of a session: start, end, the next earlier session of its key or 0, the key's number, the
last epoch that had a row of it, and whether an earlier epoch has shown it under its start. A session
that is no more has the key 0; one that was merged has the entry it went to as its start."""

SESSION_WORDS = len({START, END, EARLIER, KEY, STAMP, SHOWN})

CHUNK = 64
"""Sessions of which `lows` keeps the least end."""

MERGED, TAKEN, JOINED = range(3)
"""Of the lengths of place: merged pairs that both have states, shown starts that were taken away,
all merged pairs."""

NO_TIME, NEVER_DUE = -9223372036854775808, 9223372036854775807

_AHEAD = 16


@inline
def follow(entries: Array, size: Scalar, e: Scalar) -> Scalar:
    """The session that a merged one is part of now."""
    while entries[e * size + KEY] == 0:
        e = entries[e * size + START]
    return e


@inline
def take_away(entries: Array, b: Scalar, k: Scalar, taken: Array, lengths: Array) -> None:
    """Note the start of a session that loses it, if it was shown under it."""
    if entries[b + SHOWN] != 0:
        n = lengths[TAKEN]
        taken[n, 0], taken[n, 1] = k, entries[b + START]
        entries[b + SHOWN] = 0
        lengths[TAKEN] = n + 1


@inline
def join(
    entries: Array,
    size: Scalar,
    late: Scalar,
    early: Scalar,
    oldest: Scalar,
    merged: Array,
    due: Array,
    taken: Array,
    lengths: Array,
) -> Scalar:
    """Make one of two sessions of a key: the one that was made first stays. Returns it.

    `merged` gets the pair where both were there before this batch, and so have states.
    """
    keep, gone = min(late, early), max(late, early)
    b, c = late * size, early * size
    take_away(entries, b, entries[b + KEY], taken, lengths)
    start, end = entries[c + START], max(entries[b + END], entries[c + END])
    shown, earlier = entries[c + SHOWN], entries[c + EARLIER]
    b, c = keep * size, gone * size
    entries[b + START], entries[b + END] = start, end
    entries[b + SHOWN], entries[b + EARLIER] = shown, earlier
    entries[c + KEY], entries[c + START] = 0, keep
    due[gone] = NEVER_DUE
    lengths[JOINED] += 1
    if gone < oldest:
        n = lengths[MERGED]
        merged[n, 0], merged[n, 1] = gone, keep
        lengths[MERGED] = n + 1
    return keep


@inline
def is_within(
    entries: Array, size: Scalar, e: Scalar, t: Scalar, grace: Scalar, watermark: Scalar
) -> Scalar:
    """Whether a session of the list from e holds the time t and is open by the watermark."""
    while e != 0 and entries[e * size + START] > t:
        e = entries[e * size + EARLIER]
    if e == 0:
        return False
    end = entries[e * size + END]
    return t < end and end + grace > watermark


@jit
def place(
    times: Scalar,
    rows: Array,
    keys: Array,
    bars: Array,
    grace: Scalar,
    lo: Scalar,
    hi: Scalar,
    gap: Scalar,
    epoch: Scalar,
    heads: Array,
    entries: Array,
    size: Scalar,
    init: Array,
    limit: Scalar,
    oldest: Scalar,
    counters: Array,
    due: Array,
    lows: Array,
    merged: Array,
    taken: Array,
    lengths: Array,
    sessions: Array,
) -> Scalar:
    """The session of each row lo..hi of a list of rows, made, extended and merged row by row.

    Each covers [t, t + gap); touching covers stay apart. keys: the number of each row's key.
    bars: W for a row that only enters a session which holds it and which W has not closed, else
    NO_TIME; or none. oldest: the first entry made in this batch. sessions: 0 for a row that
    enters none. Returns the next row; short of hi where the entries are full.
    """
    dense, barred = len(rows) == 0, len(bars) > 0
    count = counters[ENTRIES]
    for r in range(lo, hi):
        if count == limit:
            break
        if r + _AHEAD < hi:
            prefetch(entries, np.uint64(heads[keys[r + _AHEAD]] * size))
        k = keys[r]
        t = word_at(times, np.uint64(r) if dense else np.uint64(rows[r]))
        bar = bars[r] if barred else np.int64(NO_TIME)
        if bar != NO_TIME and not is_within(entries, size, heads[k], t, grace, bar):
            sessions[r] = 0
            continue
        later, target, e, stop = 0, 0, heads[k], t + gap
        while e != 0:
            b = e * size
            if entries[b + START] >= stop:
                later, e = e, entries[b + EARLIER]
                continue
            if entries[b + END] <= t:
                break
            if target == 0:
                target = e
                if t < entries[b + START]:
                    take_away(entries, b, k, taken, lengths)
                    entries[b + START] = t
                entries[b + END] = max(entries[b + END], stop)
            else:
                target = join(entries, size, target, e, oldest, merged, due, taken, lengths)
                if later != 0:
                    entries[later * size + EARLIER] = target
                else:
                    heads[k] = target
            e = entries[target * size + EARLIER]
        if target == 0:
            target, b = count, count * size
            for w in range(len(init)):
                entries[b + w] = init[w]
            entries[b + START], entries[b + END] = t, stop
            entries[b + EARLIER], entries[b + KEY] = e, k
            if later != 0:
                entries[later * size + EARLIER] = target
            else:
                heads[k] = target
            due[target] = stop
            chunk = target // CHUNK
            lows[chunk] = min(lows[chunk], stop)
            count += 1
        entries[target * size + STAMP] = epoch
        sessions[r] = target
    else:
        r = hi
    counters[ENTRIES] = count
    return r


@jit
def fold_sessions(
    sessions: Array,
    program: Array,
    data: Array,
    bitmap: Array,
    offset: Array,
    entries: Array,
    size: Scalar,
    rows: Array,
    lo: Scalar,
    hi: Scalar,
    wide: Array,
    counters: Array,
    queue: Array,
    touched: Array,
) -> Scalar:
    """Rows lo..hi into the states of their sessions, or of what these were merged into.

    Returns the next row; short of hi where sums wait for room. `sessions` is set to where each went.
    """
    slot, slots = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    values, ordered = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    while lo < hi:
        m = min(BLOCK, hi - lo)
        for r in range(m):
            e = follow(entries, size, sessions[lo + r])
            sessions[lo + r] = e
            slot[r] = e * size
        fold(
            program, data, bitmap, offset, entries, rows, lo, m, slot, values, ordered, slots,
            wide, counters, queue, touched,
        )  # fmt: skip
        lo += m
        if counters[QUEUED] > 0:
            break
    return lo


@jit
def expire(
    limit: Scalar,
    count: Scalar,
    heads: Array,
    entries: Array,
    size: Scalar,
    due: Array,
    lows: Array,
    closed: Array,
) -> Scalar:
    """Take the sessions that end at `limit` or before off their lists. Returns how many they are.

    due: at most the end of each session; it follows the end only when it is reached.
    """
    n = 0
    for chunk in range((count + CHUNK - 1) // CHUNK):
        if lows[chunk] > limit:
            continue
        low = np.int64(NEVER_DUE)
        for e in range(max(1, chunk * CHUNK), min(count, (chunk + 1) * CHUNK)):
            if due[e] <= limit:
                end = entries[e * size + END]
                if end <= limit:
                    due[e] = NEVER_DUE
                    closed[n] = e
                    n += 1
                else:
                    due[e] = end
            low = min(low, due[e])
        lows[chunk] = low
    for i in range(n):
        k = entries[closed[i] * size + KEY]
        later, e = 0, heads[k]
        while e != 0 and entries[e * size + END] > limit:
            later, e = e, entries[e * size + EARLIER]
        if later != 0:
            entries[later * size + EARLIER] = 0
        else:
            heads[k] = 0
    return n


@jit
def resolve(entries: Array, size: Scalar, sessions: Array) -> None:
    """Set each session of a list to what it was merged into."""
    for i in range(len(sessions)):
        sessions[i] = follow(entries, size, sessions[i])


@jit
def pack(
    entries: Array,
    size: Scalar,
    count: Scalar,
    heads: Array,
    due: Array,
    lows: Array,
    moved: Array,
    sums: Array,
    wide: Array,
    kept: Array,
) -> Scalar:
    """Move the sessions that are left together, in their order. Returns the entries and wide sums.

    moved: gets the new number of each session. sums: the words that may name a wide sum; those that
    are still named are copied to `kept`.
    """
    n, used = 1, 0
    for e in range(1, count):
        moved[e] = 0
        b = e * size
        if entries[b + KEY] == 0:
            continue
        moved[e] = n
        to = n * size
        for w in range(size):
            entries[to + w] = entries[b + w]
        for s in range(len(sums)):
            number = entries[to + sums[s]] >> WIDE_SHIFT
            if number != 0:
                source = (number - 1) * WIDE_WORDS
                for w in range(WIDE_WORDS):
                    kept[used * WIDE_WORDS + w] = wide[source + w]
                used += 1
                entries[to + sums[s]] += (used - number) << WIDE_SHIFT
        due[n] = due[e]
        n += 1
    for chunk in range((count + CHUNK - 1) // CHUNK):
        lows[chunk] = NEVER_DUE
    for e in range(1, n):
        b = e * size
        if entries[b + EARLIER] != 0:
            entries[b + EARLIER] = moved[entries[b + EARLIER]]
        lows[e // CHUNK] = min(lows[e // CHUNK], due[e])
    for k in range(len(heads)):
        heads[k] = moved[heads[k]]
    return n, used
