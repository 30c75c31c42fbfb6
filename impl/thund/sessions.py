"""Open session windows: rows in, results out when a session closes or an epoch ends.

The state as a table, for whoever reads it without this code: `operator-windows` has a row per open
session, with `window_start` and `window_end` int64 (ms) and the columns that coding.py describes.
In update and complete mode every session of it was shown under its start.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.coding import Coding
from thund.columns import build, raw
from thund.kernel_sessions import END, KEY, SESSION_WORDS, START
from thund.results import Groups, Results
from thund.session_table import SessionTable, session_layout
from thund.table import NO_ROWS, Block, Layout, Pool, Table, concat
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, LawBroken

STATE = "operator-windows"

_NO_BARS: NDArray[np.int64] = np.empty(0, np.int64)
_SPARE = 1024
"""Keys without an open session are kept until they are this many, and most."""


class Sessions:
    """The operator of session windows. In each epoch: fold and close as rows come, emit, snapshot.

    Nothing that W has closed can touch a row that is not late: such a row is at W or after (law A2:
    at W - grace or after), and what is closed ends there or before. So the rows of a batch may be
    folded first and what W has passed closed after them: it shows the same as row by row.

    Law: G3, G4, A2, F1, F2, F3, F4, E1, E2, E3.
    Raises: CallerError for a column that is missing or cannot be used.
    """

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        _check(config)
        self._config = config
        self._gap, self._grace = config.window.gap_ms, config.grace_ms
        self._coding = Coding(config, schema)
        self._results = Results(config, self._coding)
        self._pool = Pool()
        self._clear()

    def _clear(self) -> None:
        self._layout = self._coding.layout
        self._keys = Table(self._key_layout(), self._pool)
        self._table = SessionTable(self._session_layout(), self._pool, self._gap)
        self._leaving: list[Block] = []
        self._closed_by = v.NEVER
        self._epoch = 1

    @property
    def open_groups(self) -> int:
        """How many sessions are open."""
        return self._table.groups

    # ---- layouts: that of the groups, split into keys and states ------------------------------------

    def _key_layout(self) -> Layout:
        keys, layout = self._coding.keys, self._coding.layout
        return Layout(keys.words, keys.text, [], key_nulls=layout.key_nulls, touch=False)

    def _session_layout(self) -> Layout:
        accumulators, layout = self._coding.accumulators, self._coding.layout
        nulls = any(label.startswith("nulls:") for label in layout.labels)
        return session_layout(accumulators.states(nulls=nulls), layout.kinds)

    def _adopt(self) -> None:
        """Follow the layout of the groups, which grows when the first null comes."""
        if self._layout is not self._coding.layout:
            self._layout = self._coding.layout
            self._keys.adopt(self._key_layout())
            self._table.adopt(self._session_layout())

    # ---- rows in ---------------------------------------------------------------------------------

    def fold(
        self, delivery: Delivery, event_time: NDArray[np.int64], rows: NDArray[np.uint32] | None
    ) -> None:
        """Fold admitted rows into their sessions; rows: which, or None for all.

        Law: G3, G4.
        """
        self.judge(delivery, event_time, rows, _NO_BARS)

    def judge(
        self,
        delivery: Delivery,
        event_time: NDArray[np.int64],
        rows: NDArray[np.uint32] | None,
        bars: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """As fold, but a row with a bar is folded only if an open session holds it. Says which were.

        bars: none, or per row NEVER or the W just before it, which says what is open.

        Law: A2, G3, G4.
        """
        chosen = NO_ROWS if rows is None else np.require(rows, np.uint32, ["C", "W"])
        n = len(event_time) if rows is None else len(rows)
        if n == 0:
            return np.empty(0, np.bool_)
        inputs = self._coding.inputs(delivery, event_time)
        self._adopt()
        times = np.ascontiguousarray(event_time)
        self._refuse_closed(times, chosen, bars)
        keys = self._keys.locate(inputs, chosen, 0, n)
        sessions = self._table.place(
            times, chosen, keys, bars, grace_ms=self._grace, epoch=self._epoch
        )
        entered: NDArray[np.bool_] = sessions != 0
        if not entered.all():
            chosen = (chosen if len(chosen) else np.arange(n, dtype=np.uint32))[entered]
            sessions = sessions[entered]
        self._table.fold(inputs, chosen, sessions)
        return entered

    def holds(self, delivery: Delivery, event_time: int, watermark: int) -> bool:
        """Whether an open session of a single row's key holds its time; W says what is open.

        Law: A2.
        """
        inputs = self._coding.inputs(delivery, np.array([event_time], np.int64))
        self._adopt()
        key = int(self._keys.locate(inputs, NO_ROWS, 0, 1)[0])
        return self._table.holds(key, event_time, watermark - self._grace)

    def _refuse_closed(
        self, times: NDArray[np.int64], chosen: NDArray[np.uint32], bars: NDArray[np.int64]
    ) -> None:
        """A closed session never opens again.

        Law: F2.
        """
        own = times[chosen] if len(chosen) else times
        own = own[bars == v.NEVER] if len(bars) else own
        low = int(own.min(initial=v.END))
        if low != v.END and self._closed_by != v.NEVER and low + self._grace < self._closed_by:
            raise LawBroken(
                f"a row of {low} ms, which may be in a session that is closed",
                allowed="rows that no closed session can hold (law F2)",
                where=f"pipeline {self._config.pipeline!r}",
                action="report this; what is committed stands",
            )

    # ---- results out -----------------------------------------------------------------------------

    def close(self, watermark: int) -> None:
        """Sessions with end + grace <= W leave the state; what they show waits for emit.

        Law: F1, F2, F3, E1.
        """
        if watermark <= self._closed_by:
            return
        self._closed_by = watermark
        numbers = self._table.expire(watermark - self._grace)
        if len(numbers) == 0:
            return
        self._leaving.append(self._table.pick(self._changed(numbers)))
        self._table.drop(numbers)

    def _changed(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some sessions that this epoch shows: in update mode what had a row.

        Law: E1, E2, E3, F4.
        """
        if self._results.shows_touched:
            return self._table.touched(numbers, self._epoch)
        return numbers

    def emit(self, epoch: int) -> tuple[pa.Table, pa.Table]:
        """The epoch's outbox rows and unfit values, by the output mode; they are then forgotten.

        An id that was shown by the end of an earlier epoch, and that a merge or a row before its
        session took away, gets a tombstone.
        Shape: as of Results.emit.

        Law: E1, E2, E3, E4, E5.
        """
        leaving, self._leaving = self._leaving, []
        if leaving:
            self._results.leave(self._groups(leaving))
        shown = []
        if self._results.shows_open:
            shown = [self._groups([self._table.pick(self._changed(self._table.numbers))])]
        taken = self._table.end_epoch()
        gone = self._results.ids(self._key_columns(taken[:, 0]), taken[:, 1].copy())
        if not self._results.shows_open:
            gone = gone[:0]
        self._epoch += 1
        out = self._results.emit(epoch, shown, gone)
        self._forget_keys()
        return out

    def _groups(self, blocks: list[Block]) -> Groups:
        """Sessions with their keys, under the layout of the groups."""
        block = concat(self._table.layout, blocks)
        layout = self._layout
        keys = self._keys.pick(block.words[KEY])
        words = np.zeros((layout.size, len(block.starts)), np.int64)
        words[: layout.states_at] = keys.words[: layout.states_at]
        for label, w in self._table.layout.at.items():
            if w >= SESSION_WORDS:
                words[layout.at[label]] = block.words[w]
        starts = block.words[START]
        group = Block(layout, starts, words, keys.arena, block.wide, block.extras)
        return Groups(group, block.words[END])

    def _key_columns(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        return self._coding.key_columns(self._keys.pick(numbers))

    def _forget_keys(self) -> None:
        """Keys without an open session go, when they are most.

        Law: F3.
        """
        live = self._table.keys()
        if self._keys.groups <= 2 * len(live) + _SPARE:
            return
        columns = self._key_columns(live)
        self._keys.free()
        self._keys = Table(self._key_layout(), self._pool, expected=len(live))
        self._keys.locate(self._coding.keys_of(columns), NO_ROWS, 0, len(live))
        self._table.rename(live)

    # ---- the state -------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, pa.Table]:
        """The state after an emit, as the tables that this file's first lines describe.

        Law: F3.
        """
        groups = self._groups([self._table.pick(self._table.numbers)])
        columns = {
            "window_start": build(pa.int64(), groups.block.starts),
            "window_end": build(pa.int64(), groups.ends),
        }
        columns.update(self._coding.state(groups.block))
        return {STATE: pa.table(columns), **self._results.snapshot()}

    def restore(self, tables: Mapping[str, pa.Table], watermark: int) -> None:
        """Take over a snapshot, made when W stood there; whatever the operator held is dropped."""
        self._keys.free()
        self._table.free()
        self._clear()
        self._closed_by = watermark
        self._results.restore(tables)
        state = tables[STATE]
        if state.num_rows == 0:
            return
        batch = state.combine_chunks().to_batches()[0]
        restored = self._coding.restored(batch)
        self._adopt()
        keys = self._keys.locate(restored.inputs, NO_ROWS, 0, batch.num_rows)
        starts, ends = raw(batch.column("window_start")), raw(batch.column("window_end"))
        self._table.restore(keys, starts, ends)
        words = np.zeros((self._table.layout.size, batch.num_rows), np.int64)
        for label, w in self._table.layout.at.items():
            if w >= SESSION_WORDS:
                words[w] = restored.words[self._layout.at[label]]
        self._table.fill(words, restored.wide, restored.extras)


def _check(config: v.Config) -> None:
    if config.window.gap_ms <= 0:
        raise CallerError(
            f"a session gap of {config.window.gap_ms} ms",
            allowed="at least 1 ms",
            where=f"pipeline {config.pipeline!r}",
            action="set window gap_ms",
        )
