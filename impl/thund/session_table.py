"""The open sessions of an operator: intervals and states, found by the number of a key or their own.

It refuses to know: keys but by number, Arrow, output modes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thund.columns import address
from thund.extras import grown
from thund.kernel import ENTRIES
from thund.kernel_sessions import (
    CHUNK,
    EARLIER,
    END,
    JOINED,
    KEY,
    MERGED,
    NEVER_DUE,
    SESSION_WORDS,
    SHOWN,
    STAMP,
    START,
    TAKEN,
    expire,
    fold_sessions,
    pack,
    place,
    resolve,
)
from thund.kernel_sum import QUEUED, WIDE_USED, WIDE_WORDS, replay
from thund.table import Inputs, Layout, Pool, State, Table

_NONE: NDArray[np.int64] = np.empty(0, np.int64)
_SPARE = 1024
"""Sessions that are no more keep their entries until they are this many, and most."""


def session_layout(states: list[State], kinds: Any) -> Layout:
    """The layout of session entries for the states of some aggregates."""
    return Layout(SESSION_WORDS, (), states, key_nulls=False, touch=False, kinds=kinds)


class SessionTable(Table):
    """Sessions of keys 1, 2, ..., each in the entry of its number. Sessions of a key never overlap.

    Law: G3, F1, F3.
    Cost: 64 bytes and the states for a session; at most half of the entries are of closed ones.
    """

    def __init__(self, layout: Layout, pool: Pool, gap_ms: int) -> None:
        self._due, self._lows, self._heads = _NONE, _NONE, np.zeros(1, np.int64)
        super().__init__(layout, pool)
        self._gap = gap_ms
        self._open = 0
        self._taken: list[NDArray[np.int64]] = []

    @property
    def groups(self) -> int:
        """How many sessions are open."""
        return self._open

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the open sessions."""
        return np.flatnonzero(self._words()[:, KEY])

    def _words(self) -> NDArray[np.int64]:
        """The entries as rows, the unused first one too."""
        count, size = int(self.counters[ENTRIES]), self.layout.size
        return self._entries[: count * size].reshape(count, size)

    def _resize(self) -> None:
        self._capacity = self._limit = len(self._entries) // self.layout.size
        self._due = grown(self._due, self._capacity, NEVER_DUE)
        self._lows = grown(self._lows, self._capacity // CHUNK + 1, NEVER_DUE)

    def _reindex(self) -> None:
        """There is no index: an entry is found by its number."""

    # ---- rows in ---------------------------------------------------------------------------------

    def place(
        self,
        times: NDArray[np.int64],
        rows: NDArray[np.uint32],
        keys: NDArray[np.int64],
        bars: NDArray[np.int64],
        *,
        grace_ms: int,
        epoch: int,
    ) -> NDArray[np.int64]:
        """The session of each row, made, extended or merged; 0 for a barred row that enters none.

        rows: which of the times, or none for all. keys: the number of each row's key. bars: none, or
        per row the W by which it may only enter an open session that holds it, or NEVER.

        Law: G3, A2.
        """
        n, oldest = len(keys), int(self.counters[ENTRIES])
        self._heads = grown(self._heads, int(keys.max()) + 1, 0)
        merged, taken = np.empty((n, 2), np.int64), np.empty((n, 2), np.int64)
        lengths, sessions = np.zeros(3, np.int64), np.empty(n, np.int64)
        done = 0
        while True:
            done = place(
                np.uint64(address(times)),
                rows,
                keys,
                bars,
                grace_ms,
                done,
                n,
                self._gap,
                epoch,
                self._heads,
                self._entries,
                self.layout.size,
                self.layout.init,
                self._limit,
                oldest,
                self.counters,
                self._due,
                self._lows,
                merged,
                taken,
                lengths,
                sessions,
            )
            if done == n:
                break
            self._make_room(2 * self._capacity)
        self._open += int(self.counters[ENTRIES]) - oldest - int(lengths[JOINED])
        if lengths[TAKEN]:
            self._taken.append(taken[: lengths[TAKEN]].copy())
        self._merge_states(merged[: lengths[MERGED]])
        return sessions

    def _merge_states(self, pairs: NDArray[np.int64]) -> None:
        """The states of merged sessions go to what each is part of now."""
        if len(pairs):
            to = pairs[:, 1].copy()
            resolve(self._entries, self.layout.size, to)
            self.merge_into(self.pick(pairs[:, 0]), to)

    def holds(self, key: int, time: int, past: int) -> bool:
        """Whether a session of the key that ends after `past` holds the time."""
        words = self._words()
        e = int(self._heads[key]) if key < len(self._heads) else 0
        while e and words[e, START] > time:
            e = int(words[e, EARLIER])
        return bool(e and max(time, past) < words[e, END])

    def fold(self, inputs: Inputs, rows: NDArray[np.uint32], sessions: NDArray[np.int64]) -> None:
        """Fold rows into the states of their sessions.

        rows: which rows of the batch, or none for all.

        Law: G4.
        """
        done, n, layout = 0, len(sessions), self.layout
        while done < n:
            done = fold_sessions(
                sessions,
                layout.program,
                inputs.data,
                inputs.bitmap,
                inputs.offset,
                self._entries,
                layout.size,
                rows,
                done,
                n,
                self._wide,
                self.counters,
                self._queue,
                self._touched,
            )
            waiting = int(self.counters[QUEUED])
            if waiting:
                self._reserve_wide(waiting)
                replay(self._entries, self._wide, self.counters, self._queue)
        if self._extras and n:
            self._fold_extras(inputs, rows if len(rows) else slice(0, n), sessions)

    # ---- sessions out ----------------------------------------------------------------------------

    def expire(self, limit: int) -> NDArray[np.int64]:
        """The numbers of the sessions that end at `limit` or before; they are open no longer.

        `drop` must follow, when what they show was picked.

        Law: F1.
        Cost: about 10 ns for each 64 sessions, and more only where one may be due.
        """
        closed = np.empty(self._open, np.int64)
        n = expire(
            min(limit, NEVER_DUE - 1),
            int(self.counters[ENTRIES]),
            self._heads,
            self._entries,
            self.layout.size,
            self._due,
            self._lows,
            closed,
        )
        return closed[:n]

    def drop(self, numbers: NDArray[np.int64]) -> None:
        """Forget expired sessions; the others may get new numbers.

        Law: F3.
        """
        self._words()[numbers, KEY] = 0
        self._open -= len(numbers)
        gone = int(self.counters[ENTRIES]) - 1 - self._open
        if gone > self._open + _SPARE:
            self._pack()

    def _pack(self) -> None:
        count, live = int(self.counters[ENTRIES]), self.numbers
        moved, old = np.zeros(count, np.int64), self._wide
        self._wide = self._pool.take(int(self.counters[WIDE_USED]) * WIDE_WORDS)
        kept, used = pack(
            self._entries,
            self.layout.size,
            count,
            self._heads,
            self._due,
            self._lows,
            moved,
            np.array(self.layout.heads, np.int64),
            old,
            self._wide,
        )
        self._pool.give(old)
        self.counters[ENTRIES], self.counters[WIDE_USED] = kept, used
        extras = self._extras
        self._extras = [kind.new() for kind in self.layout.kinds]
        for new, extra in zip(self._extras, extras, strict=True):
            new.absorb(moved[live], extra.states(live))
        if self._capacity > 8 * (kept + _SPARE):
            self._make_room(2 * (kept + _SPARE))

    def touched(self, numbers: NDArray[np.int64], epoch: int) -> NDArray[np.int64]:
        """Those of some sessions that had a row in the epoch."""
        own: NDArray[np.int64] = numbers[self._words()[numbers, STAMP] == epoch]
        return own

    def end_epoch(self) -> NDArray[np.int64]:
        """All open sessions were shown. Gives what was taken away of earlier ones: key, start.

        Law: E2, E3.
        """
        self._words()[:, SHOWN] = 1
        taken = np.concatenate([np.empty((0, 2), np.int64), *self._taken])
        self._taken = []
        return taken

    # ---- keys and the state ----------------------------------------------------------------------

    def keys(self) -> NDArray[np.int64]:
        """The numbers of the keys that have an open session."""
        return np.flatnonzero(self._heads)

    def rename(self, keys: NDArray[np.int64]) -> None:
        """Key keys[i] becomes i + 1, for all that `keys` gives."""
        new = np.zeros(len(self._heads), np.int64)
        new[keys] = np.arange(1, len(keys) + 1)
        words = self._words()
        words[:, KEY] = new[words[:, KEY]]
        self._heads = np.concatenate([np.zeros(1, np.int64), self._heads[keys]])

    def restore(
        self,
        keys: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> None:
        """Make sessions 1, 2, ... of these keys, starts and ends, as shown before; no states yet."""
        n = len(keys)
        if n + 1 > self._capacity:
            self._make_room(2 * n)
        self.counters[ENTRIES], self._open = n + 1, n
        words = self._words()
        words[1:] = self.layout.init
        order = np.lexsort((starts, keys))
        follows = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        words[order[follows + 1] + 1, EARLIER] = order[follows] + 1
        latest = np.delete(order, follows)
        self._heads = grown(self._heads, int(keys.max(initial=0)) + 1, 0)
        self._heads[keys[latest]] = latest + 1
        words[1:, START], words[1:, END], words[1:, KEY], words[1:, SHOWN] = starts, ends, keys, 1
        self._due[1 : n + 1] = ends
        np.minimum.at(self._lows, np.arange(1, n + 1) // CHUNK, ends)
