"""The hash table of one open window, its layout, and the groups that leave it as a block of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.columns import address, picked
from thund.extras import ExtraKind, Places
from thund.kernel import (
    BLOCK,
    COUNTERS,
    ENTRIES,
    ROWS,
    STAMP,
    SUM_FLOAT,
    TOUCH,
    TOUCHED,
    columns,
    relayout,
    update,
)
from thund.kernel_find import ARENA, reindex
from thund.kernel_merge import merge
from thund.kernel_sum import QUEUED, WIDE_SHIFT, WIDE_USED, WIDE_WORDS, replay
from thund.words import Array

NO_ROWS: NDArray[np.uint32] = np.empty(0, np.uint32)
EMPTY_PROGRAM: NDArray[np.int64] = np.empty((0, 3), np.int64)
"""A program that only makes entries."""
_NO_OFFSETS: NDArray[np.int64] = np.empty(0, np.int64)
_LEAST = 512
_POOLED = 8


@dataclass(frozen=True, slots=True)
class State:
    """One line of the program and the words it owns: their labels and what a new entry holds."""

    operation: int
    column: int
    labels: tuple[str, ...] = ()
    init: tuple[int, ...] = ()


class Layout:
    """Where each word of an entry lies: key, nulls, places of long texts, rows, states, touch.

    kinds: the partials that a table keeps beside its words.
    """

    def __init__(
        self,
        key_words: int,
        text: Sequence[int],
        states: Sequence[State],
        *,
        key_nulls: bool,
        touch: bool,
        kinds: Sequence[ExtraKind] = (),
    ) -> None:
        labels = [f"key:{c}" for c in range(key_words)]
        labels += ["nulls"] * key_nulls
        self.words = len(labels)
        labels += [f"place:{t}" for t in range(len(text))]
        init = [0] * len(labels)
        self.states_at = len(labels)
        lines = []
        ends = [State(TOUCH, 0, ("touch",), (0,))] if touch else []
        for state in [State(ROWS, 0, ("rows",), (0,)), *states, *ends]:
            lines.append((state.operation, len(labels), state.column))
            labels += state.labels
            init += state.init
        self.key_words, self.key_nulls = key_words, key_nulls
        self.text = np.array(text, np.int64)
        self.labels = tuple(labels)
        self.at = {label: w for w, label in enumerate(labels)}
        self.size = len(labels)
        self.program = np.array(lines, np.int64).reshape(-1, 3)
        self.init = np.array(init, np.int64)
        self.kinds = tuple(kinds)
        self.heads = [w for operation, w, _ in lines if operation == SUM_FLOAT]

    def source(self, old: Layout) -> NDArray[np.int64]:
        """Per word of this layout the word of an older one, or -1 for a new word."""
        return np.array([old.at.get(label, -1) for label in self.labels], np.int64)


@dataclass(slots=True)
class Inputs:
    """One batch as the kernel reads it: addresses of streams. keep: what they point into.

    extra: for each of the layout's kinds the columns it reads; places: where the rows stand.
    """

    key: NDArray[np.uint64]
    stride: NDArray[np.uint64]
    long: bool
    data: NDArray[np.uint64]
    bitmap: NDArray[np.uint64]
    offset: NDArray[np.uint64]
    keep: list[Any] = field(default_factory=list)
    extra: Sequence[Sequence[Any]] = ()
    places: Places | None = None


class Pool:
    """Buffers of closed windows, used again: fresh memory costs a page fault per 4 KiB.

    At most _POOLED buffers are kept.

    Law: F3.
    """

    def __init__(self) -> None:
        self._free: list[NDArray[np.int64]] = []

    def take(self, words: int) -> NDArray[np.int64]:
        """A buffer of at least so many words, with anything in it."""
        best = min((a for a in self._free if words <= len(a) <= 4 * words), key=len, default=None)
        if best is None:
            return np.frombuffer(pa.allocate_buffer(8 * max(1, words)), np.int64)
        self._free = [a for a in self._free if a is not best]
        return best

    def give(self, buffer: NDArray[np.int64]) -> None:
        """Take a buffer back; the oldest goes if there are too many."""
        if len(buffer):
            self._free.append(buffer)
            self._free = self._free[-_POOLED:]


@dataclass(slots=True)
class Block:
    """Groups that left their tables: one column per word of a layout.

    Shape: words (layout.size, groups); wide (sums, WIDE_WORDS); starts per group; extras by label,
    a portable partial per group.
    """

    layout: Layout
    starts: NDArray[np.int64]
    words: NDArray[np.int64]
    arena: NDArray[np.uint8]
    wide: NDArray[np.int64]
    extras: dict[str, Any] = field(default_factory=dict)

    def word(self, label: str) -> NDArray[np.int64]:
        """The column of a word."""
        row: NDArray[np.int64] = self.words[self.layout.at[label]]
        return row

    def under(self, layout: Layout) -> NDArray[np.int64]:
        """The words under a newer layout."""
        if layout is self.layout:
            return self.words
        out = np.empty((layout.size, len(self.starts)), np.int64)
        for w, s in enumerate(layout.source(self.layout)):
            out[w] = layout.init[w] if s < 0 else self.words[s]
        return out

    def own(self) -> Block:
        """The block with memory of its own, so that its table may go."""
        return replace(self, arena=self.arena.copy(), wide=self.wide.copy())

    def inputs(self, layout: Layout) -> Inputs:
        """The keys of the groups, one row each, for a table of a layout as new or newer."""
        words = self.under(layout)
        streams = [words[w] for w in range(layout.words)]
        long = len(self.arena) > 0
        if long:
            places = range(layout.words, layout.words + len(layout.text))
            streams += [words[w] + address(self.arena) for w in places]
        where = np.array([address(stream) for stream in streams], np.uint64)
        none = np.zeros(1, np.uint64)
        stride = np.ones(len(streams), np.uint64)
        return Inputs(where, stride, long, none, none, none, [self, streams])


def concat(layout: Layout, blocks: Sequence[Block]) -> Block:
    """Blocks one after the other, their places and wide sums numbered anew."""
    if len(blocks) == 1 and blocks[0].layout is layout:
        return blocks[0]
    pieces, arena, wide = [], 0, 0
    extras = {
        kind.label: pa.chunked_array(
            [block.extras[kind.label] for block in blocks], kind.state_type
        ).combine_chunks()
        for kind in layout.kinds
    }
    places = [w for w, label in enumerate(layout.labels) if label.startswith("place:")]
    for block in blocks:
        words = block.under(layout)
        if words is block.words and (places or layout.heads):
            words = words.copy()
        for w in places:
            words[w] += arena
        for w in layout.heads:
            words[w, words[w] >> WIDE_SHIFT != 0] += wide << WIDE_SHIFT
        pieces.append(words)
        arena += len(block.arena)
        wide += len(block.wide)
    if not blocks:
        return Block(
            layout,
            np.empty(0, np.int64),
            np.empty((layout.size, 0), np.int64),
            np.empty(0, np.uint8),
            np.empty((0, WIDE_WORDS), np.int64),
            extras,
        )
    return Block(
        layout,
        np.concatenate([block.starts for block in blocks]),
        np.concatenate(pieces, axis=1),
        np.concatenate([block.arena for block in blocks]),
        np.concatenate([block.wide for block in blocks]),
        extras,
    )


class Table:
    """The groups of one open window. It grows by doubling; `expected` says how many may come.

    Law: G4.
    Cost: 8 to 16 bytes of index per group beside the words of its entry.
    """

    def __init__(self, layout: Layout, pool: Pool, *, expected: int = 0) -> None:
        self._pool = pool
        self.layout = layout
        self.counters = np.zeros(COUNTERS, np.int64)
        self.counters[ENTRIES] = 1
        self._arena: NDArray[np.int64] = pool.take(_LEAST) if len(layout.text) else _NO_OFFSETS
        self._wide: NDArray[np.int64] = _NO_OFFSETS
        self._touched: NDArray[np.int64] = _NO_OFFSETS
        self._entries: NDArray[np.int64] = _NO_OFFSETS
        self._raw_index: NDArray[np.int64] = _NO_OFFSETS
        expected = max(_LEAST, expected)
        self._new_index(max(10, (2 * expected - 1).bit_length()))
        self._make_room(expected + 1)
        self._queue = _NO_OFFSETS
        self._prepare_queue()
        self._extras = [kind.new() for kind in layout.kinds]

    @property
    def groups(self) -> int:
        """How many groups the table has."""
        return int(self.counters[ENTRIES]) - 1

    def _prepare_queue(self) -> None:
        self._queue = np.empty(2 * BLOCK * len(self.layout.heads), np.int64)

    def _new_index(self, bits: int) -> None:
        self._pool.give(self._raw_index)
        self._bits, self._raw_index = bits, self._pool.take(1 << (bits - 1))
        self._index = self._raw_index.view(np.uint32)[: 1 << bits]
        self._index.fill(0)
        self._shift = np.uint64(64 - bits)

    def _make_room(self, capacity: int) -> None:
        size, count, old = self.layout.size, int(self.counters[ENTRIES]), self._entries
        self._entries = self._pool.take(capacity * size)
        self._entries[:size] = 0
        if len(old):
            self._entries[: count * size] = old[: count * size]
            self._pool.give(old)
        self._resize()

    def _resize(self) -> None:
        self._capacity = len(self._entries) // self.layout.size
        self._limit = min(self._capacity, (1 << self._bits) // 2)
        if "touch" in self.layout.at and len(self._touched) < self._capacity:
            touched = np.empty(self._capacity, np.int64)
            touched[: self.counters[TOUCHED]] = self._touched[: self.counters[TOUCHED]]
            self._touched = touched

    def update(self, inputs: Inputs, rows: NDArray[np.uint32], lo: int, hi: int) -> None:
        """Fold rows lo..hi of the batch, or of a list of its rows, into the groups."""
        located = np.empty(hi - lo, np.int64) if self._extras else _NO_OFFSETS
        self._run(inputs, self.layout.program, rows, lo, hi, located=located)
        if self._extras and hi > lo:
            self._fold_extras(inputs, rows[lo:hi] if len(rows) else slice(lo, hi), located)

    def _fold_extras(self, inputs: Inputs, rows: Any, located: NDArray[np.int64]) -> None:
        assert inputs.places is not None
        places = inputs.places.at(rows)
        for extra, read in zip(self._extras, inputs.extra, strict=True):
            extra.fold(located, [picked(column, rows) for column in read], places)

    def locate(
        self, inputs: Inputs, rows: NDArray[np.uint32], lo: int, hi: int
    ) -> NDArray[np.int64]:
        """The numbers of the rows' entries, 1, 2, ...; a new key makes one. Nothing is folded."""
        located = np.empty(hi - lo, np.int64)
        self._run(inputs, EMPTY_PROGRAM, rows, lo, hi, located=located)
        return located

    def _run(
        self,
        inputs: Inputs,
        program: Array,
        rows: NDArray[np.uint32],
        lo: int,
        hi: int,
        *,
        located: NDArray[np.int64],
    ) -> None:
        layout, start = self.layout, lo
        text = layout.text if inputs.long else _NO_OFFSETS
        while True:
            lo = update(
                inputs.key,
                inputs.stride,
                layout.words,
                text,
                self._arena.view(np.uint8),
                program,
                inputs.data,
                inputs.bitmap,
                inputs.offset,
                self._entries,
                np.uint64(layout.size),
                self._index,
                self._shift,
                self._limit,
                layout.init,
                rows,
                lo,
                hi,
                self._wide,
                self.counters,
                self._queue,
                self._touched,
                located[lo - start :],
            )
            if lo >= hi and not self.counters[QUEUED]:
                return
            self._grow()

    def merge(self, block: Block, inputs: Inputs) -> None:
        """Merge the partials of a block's groups; inputs: a key for each, several may be equal.

        The block's layout is the table's, or an older one.

        Law: G4.
        Cost: 10 to 30 ns a group, beside the extras.
        """
        if len(block.starts):
            self.merge_into(block, self.locate(inputs, NO_ROWS, 0, len(block.starts)))

    def merge_into(self, block: Block, located: NDArray[np.int64]) -> None:
        """As merge, group i into entry located[i]."""
        layout, n = self.layout, len(located)
        words = np.ascontiguousarray(block.under(layout))
        others, done = np.ascontiguousarray(block.wide).reshape(-1), 0
        while done < n * len(layout.program):
            done = merge(
                layout.program,
                words,
                others,
                located,
                self._entries,
                np.int64(layout.size),
                self._wide,
                self.counters,
                self._touched,
                done,
            )
            if done < n * len(layout.program):
                self._reserve_wide(min(n, BLOCK))
        self.absorb(located, block.extras)

    def absorb(self, located: NDArray[np.int64], extras: Mapping[str, Any]) -> None:
        """Merge portable partials, by label, into entries."""
        for extra, kind in zip(self._extras, self.layout.kinds, strict=True):
            extra.absorb(located, extras[kind.label])

    def _grow(self) -> None:
        count = int(self.counters[ENTRIES])
        if self.counters[QUEUED]:
            self._reserve_wide(int(self.counters[QUEUED]))
            replay(self._entries, self._wide, self.counters, self._queue)
        elif count < self._limit:
            self._grow_arena()
        if count >= (1 << self._bits) // 2:
            self._new_index(self._bits + 1)
            self._reindex()
        if count >= self._capacity:
            self._make_room(2 * self._capacity)
        self._resize()

    def _reindex(self) -> None:
        reindex(
            self._entries,
            np.uint64(self.layout.size),
            self.layout.words,
            self._index,
            self._shift,
            int(self.counters[ENTRIES]),
        )

    def _grow_arena(self) -> None:
        arena = self._pool.take(2 * len(self._arena) + (_LEAST << 4))
        arena[: len(self._arena)] = self._arena
        self._pool.give(self._arena)
        self._arena = arena

    def _reserve_wide(self, more: int) -> None:
        blocks = int(self.counters[WIDE_USED])
        if (blocks + more) * WIDE_WORDS > len(self._wide):
            wide = self._pool.take(2 * (blocks + more) * WIDE_WORDS)
            wide[: blocks * WIDE_WORDS] = self._wide[: blocks * WIDE_WORDS]
            self._pool.give(self._wide)
            self._wide = wide

    def adopt(self, layout: Layout) -> None:
        """Go on under a layout with more words."""
        source, old, count = layout.source(self.layout), self._entries, int(self.counters[ENTRIES])
        entries = self._pool.take(self._capacity * layout.size)
        entries[: layout.size] = 0
        relayout(old, self.layout.size, entries, layout.size, source, layout.init, count)
        touched = self._touched[: self.counters[TOUCHED]]
        touched[:] = touched // self.layout.size * layout.size
        self._pool.give(old)
        self.layout, self._entries = layout, entries
        self._resize()
        self._index.fill(0)
        self._reindex()

    def block(self, start: int, *, touched: bool = False) -> Block:
        """The groups as a block: all, or those touched since the stamp; arena and sums as views."""
        chosen = self._touched[: self.counters[TOUCHED]] if touched else _NO_OFFSETS
        n = len(chosen) if touched else self.groups
        return self._block(chosen, n, start)

    def pick(self, numbers: NDArray[np.int64]) -> Block:
        """The groups of some entries as a block, with starts of 0; the arena as a view."""
        block = self._block(numbers * self.layout.size, len(numbers), 0)
        used, heads = 0, self.layout.heads
        pieces = []
        for w in heads:
            far = np.flatnonzero(block.words[w] >> WIDE_SHIFT)
            pieces.append(block.wide[(block.words[w, far] >> WIDE_SHIFT) - 1])
            block.words[w, far] &= (1 << WIDE_SHIFT) - 1
            block.words[w, far] |= np.arange(used + 1, used + len(far) + 1) << WIDE_SHIFT
            used += len(far)
        block.wide = np.concatenate([block.wide[:0], *pieces])
        return block

    def _block(self, chosen: NDArray[np.int64], n: int, start: int) -> Block:
        """Some groups: the entries at the offsets chosen, or the first n where there are none."""
        layout = self.layout
        words = np.frombuffer(pa.allocate_buffer(8 * max(1, layout.size * n)), np.int64)
        words = words[: layout.size * n].reshape(layout.size, n)
        if n:
            columns(self._entries, layout.size, chosen, words)
        blocks = int(self.counters[WIDE_USED])
        located = chosen // layout.size if len(chosen) else np.arange(1, n + 1)
        return Block(
            layout,
            np.full(n, start, np.int64),
            words,
            self._arena.view(np.uint8)[: self.counters[ARENA]],
            self._wide[: blocks * WIDE_WORDS].reshape(blocks, WIDE_WORDS),
            {
                kind.label: extra.states(located)
                for kind, extra in zip(layout.kinds, self._extras, strict=True)
            },
        )

    def stamp(self, epoch: int) -> None:
        """Begin a new epoch: nothing is touched yet."""
        self.counters[STAMP], self.counters[TOUCHED] = epoch, 0

    def fill(
        self, states: NDArray[np.int64], wide: NDArray[np.int64], extras: Mapping[str, Any]
    ) -> None:
        """Set the states of entries 1, 2, ... from a restored block of as many groups.

        Shape: states (layout.size, groups); their heads count in wide (sums, WIDE_WORDS).
        """
        layout, n, sums = self.layout, self.groups, 0
        for w in layout.heads:
            far = np.flatnonzero(states[w] >> WIDE_SHIFT)
            self._reserve_wide(len(far))
            target = self._wide[sums * WIDE_WORDS : (sums + len(far)) * WIDE_WORDS]
            target[:] = wide[(states[w, far] >> WIDE_SHIFT) - 1].reshape(-1)
            own = np.arange(sums + 1, sums + len(far) + 1)
            states[w, far] = (states[w, far] & ((1 << WIDE_SHIFT) - 1)) | own << WIDE_SHIFT
            sums += len(far)
            self.counters[WIDE_USED] = sums
        entries = self._entries[layout.size : (n + 1) * layout.size].reshape(n, layout.size)
        entries[:, layout.states_at :] = states[layout.states_at :].T
        self.absorb(np.arange(1, n + 1), extras)

    def free(self) -> None:
        """Give all buffers back; the table is done."""
        for buffer in (self._entries, self._raw_index, self._arena, self._wide):
            self._pool.give(buffer)
        self._entries = self._raw_index = self._arena = self._wide = _NO_OFFSETS
        self._index = self._raw_index.view(np.uint32)
        self._extras = []
