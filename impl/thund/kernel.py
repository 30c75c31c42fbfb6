"""The one compiled kernel: rows of any batch into the entries of one table, by a small program.

It refuses to know: windows, watermarks, Arrow. It sees addresses of 64-bit columns, a list of rows
and one table. Rows go by blocks: first the entries of a block are found, then each line of the
program is one tight loop over entries that are warm in cache.
"""

from __future__ import annotations

import numpy as np

from thund.kernel_find import ARENA, PREFETCH_FROM, locate_1, locate_2, locate_n
from thund.kernel_sum import QUEUED, WIDE_USED, add_floats, order_floats
from thund.words import Array, Scalar, add_128, address_of, byte_at, inline, jit, part, word_at

BLOCK = 256
"""Rows of a block: their entries stay in the first two caches."""

ROWS, NULLS, SUM_INTEGER, SUM_FLOAT, ORDER, MIN, MAX, TOUCH = range(8)
"""Operations of a program line (operation, word in the entry, column). ORDER turns the floats of
the column into integers of the same order, for the MIN and MAX that follow."""

ENTRIES, TOUCHED, STAMP = 0, 3, 5
"""Of a table's counters: entries (with entry 0, which is never used), entries touched in this
epoch, the epoch."""

COUNTERS = len({ENTRIES, ARENA, WIDE_USED, TOUCHED, QUEUED, STAMP})

_0, _1, _3, _7 = (np.uint64(x) for x in (0, 1, 3, 7))


@inline
def is_valid(bitmap: Scalar, offset: Scalar, i: Scalar) -> Scalar:
    """Arrow's validity bit of row i; a bitmap at address 0 has no nulls."""
    j = i + offset
    return bitmap == _0 or (byte_at(bitmap, j >> _3) >> (j & _7)) & 1 != 0


@part
def block_streams(
    address: Array, stride: Array, rows: Array, lo: Scalar, m: Scalar, copies: Array, streams: Array
) -> None:
    """Addresses of the block's key words, one after the other; copied where they are not so."""
    for c in range(len(address)):
        if len(rows) == 0 and stride[c] == _1:
            streams[c] = address[c] + np.uint64(8 * lo)
            continue
        base = c * BLOCK
        if len(rows) == 0:
            for r in range(m):
                copies[base + r] = word_at(address[c], np.uint64(lo + r) * stride[c])
        else:
            for r in range(m):
                copies[base + r] = word_at(address[c], np.uint64(rows[lo + r]) * stride[c])
        streams[c] = address_of(copies) + np.uint64(8 * base)


@part
def take_valid(
    data: Scalar,
    bitmap: Scalar,
    offset: Scalar,
    rows: Array,
    lo: Scalar,
    m: Scalar,
    slot: Array,
    values: Array,
    slots: Array,
) -> Scalar:
    """The valid values of one column for the block, and their entries, packed. Returns how many."""
    dense = len(rows) == 0
    n = 0
    for r in range(m):
        i = np.uint64(lo + r) if dense else np.uint64(rows[lo + r])
        values[n] = word_at(data, i)
        slots[n] = slot[r]
        n += is_valid(bitmap, offset, i)
    return n


@inline
def count_nulls(
    entries: Array,
    w: Scalar,
    bitmap: Scalar,
    offset: Scalar,
    rows: Array,
    lo: Scalar,
    m: Scalar,
    slot: Array,
) -> None:
    """Count the nulls of a column per entry."""
    dense = len(rows) == 0
    for r in range(m):
        i = np.uint64(lo + r) if dense else np.uint64(rows[lo + r])
        entries[slot[r] + w] += 0 if is_valid(bitmap, offset, i) else 1


@part
def fold(
    program: Array,
    data: Array,
    bitmap: Array,
    offset: Array,
    entries: Array,
    rows: Array,
    lo: Scalar,
    m: Scalar,
    slot: Array,
    values: Array,
    ordered: Array,
    slots: Array,
    wide: Array,
    counters: Array,
    queue: Array,
    touched: Array,
) -> None:
    """Each line of the program in one tight loop over the block. Lines go by column."""
    column, source, k, at = np.int64(-1), _0, m, slot
    for line in range(len(program)):
        operation, w, c = program[line, 0], np.uint64(program[line, 1]), program[line, 2]
        if operation == ROWS:
            for r in range(m):
                entries[slot[r] + w] += 1
            continue
        if operation == TOUCH:
            stamp, n = counters[STAMP], counters[TOUCHED]
            for r in range(m):
                if entries[slot[r] + w] != stamp:
                    entries[slot[r] + w] = stamp
                    touched[n] = slot[r]
                    n += 1
            counters[TOUCHED] = n
            continue
        if operation == NULLS:
            if bitmap[c] != _0:
                count_nulls(entries, w, bitmap[c], offset[c], rows, lo, m, slot)
            continue
        if c != column:
            column = c
            if len(rows) == 0 and bitmap[c] == _0:
                source, k, at = data[c] + np.uint64(8 * lo), m, slot
            elif bitmap[c] == _0:
                for r in range(m):
                    values[r] = word_at(data[c], np.uint64(rows[lo + r]))
                source, k, at = address_of(values), m, slot
            else:
                k = take_valid(data[c], bitmap[c], offset[c], rows, lo, m, slot, values, slots)
                source, at = address_of(values), slots
        if operation == SUM_INTEGER:
            for r in range(k):
                add_128(entries, at[r] + w, word_at(source, np.uint64(r)))
        elif operation == SUM_FLOAT:
            add_floats(entries, w, source, k, at, wide, counters, queue)
        elif operation == ORDER:
            order_floats(source, k, ordered)
            source = address_of(ordered)
        elif operation == MIN:
            for r in range(k):
                x, b = word_at(source, np.uint64(r)), at[r] + w
                y = entries[b]
                entries[b] = min(y, x)
        elif operation == MAX:
            for r in range(k):
                x, b = word_at(source, np.uint64(r)), at[r] + w
                y = entries[b]
                entries[b] = max(y, x)


@jit
def update(
    key_address: Array,
    key_stride: Array,
    words: Scalar,
    text: Array,
    arena: Array,
    program: Array,
    data: Array,
    bitmap: Array,
    offset: Array,
    entries: Array,
    size: Scalar,
    index: Array,
    shift: Scalar,
    limit: Scalar,
    init: Array,
    rows: Array,
    lo: Scalar,
    hi: Scalar,
    wide: Array,
    counters: Array,
    queue: Array,
    touched: Array,
    located: Array,
) -> Scalar:
    """Rows lo..hi of the batch, or of the row list, into one table. Returns the next row.

    Short of hi where the table is full: the caller makes room and calls again. The numbers of the
    rows' entries go to `located`, if it is not empty.
    """
    first = lo
    slot, slots, q = (
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
    )
    values, ordered = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    copies = np.empty(BLOCK * len(key_address), np.int64)
    streams = np.empty(len(key_address), np.uint64)
    big = len(index) > PREFETCH_FROM
    count = counters[ENTRIES]
    while lo < hi:
        m = min(BLOCK, hi - lo)
        block_streams(key_address, key_stride, rows, lo, m, copies, streams)
        if words == 1:
            done, count = locate_1(
                streams[0], entries, size, index, shift, count, limit, init, m, slot, q, big
            )
        elif words == 2 and len(text) == 0:
            done, count = locate_2(
                streams[0], streams[1], entries, size, index, shift, count, limit, init, m, slot, q, big
            )  # fmt: skip
        else:
            done, count = locate_n(
                streams, words, text, arena, counters, entries, size, index, shift, count, limit,
                init, m, slot, q,
            )  # fmt: skip
        counters[ENTRIES] = count
        if len(located):
            for r in range(done):
                located[lo - first + r] = slot[r] // size
        fold(
            program, data, bitmap, offset, entries, rows, lo, done, slot, values, ordered, slots,
            wide, counters, queue, touched,
        )  # fmt: skip
        lo += done
        if done < m or counters[QUEUED] > 0:
            break
    return lo


@jit
def relayout(
    old: Array,
    old_size: Scalar,
    new: Array,
    new_size: Scalar,
    source: Array,
    init: Array,
    count: Scalar,
) -> None:
    """Entries under another layout: word w comes from word source[w], or is new where that is -1."""
    for j in range(1, count):
        for w in range(len(source)):
            s = source[w]
            new[j * new_size + w] = init[w] if s < 0 else old[j * old_size + s]


@jit
def columns(entries: Array, size: Scalar, picked: Array, out: Array) -> None:
    """Entries as columns, out[word, i]: those at the offsets picked, or 1, 2, ... if there are none."""
    n = out.shape[1]
    for start in range(0, n, 64):
        stop = min(n, start + 64)
        for w in range(size):
            for i in range(start, stop):
                b = np.int64(picked[i]) if len(picked) else (i + 1) * size
                out[w, i] = entries[b + w]
