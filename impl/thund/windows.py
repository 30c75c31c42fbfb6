"""Open windows of a grid: rows in, results out when a window closes or an epoch ends.

The state as a table, for whoever reads it without this code: `operator-windows` has a row per open
(cell, key), with `window_start` int64 (ms) and the columns that coding.py describes. A cell is a
window, but for hopping windows: there the starts and ends of all windows cut time into cells, the
column is called `cell_start`, and a window's groups are those of the cells from its start to its
end. A window is open until W reaches its end and grace, a cell until the last window over it is
not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.calendar import Calendar
from thund.coding import Coding, Restored
from thund.columns import build, raw
from thund.grid import Grid, Slides
from thund.results import Groups, Results
from thund.table import NO_ROWS, Block, Pool, Table, concat
from thund_contract import vocabulary as v
from thund_contract.errors import CallerError, LawBroken

STATE = "operator-windows"

_FEW_CELLS = 4


class Windows:
    """The window operator of a grid. In each epoch: fold and close as rows come, emit, snapshot.

    Law: G1, G2, G4, G5, F1, F2, F3, F4, E1, E2, E3.
    Raises: CallerError for a column that is missing or cannot be used.
    """

    def __init__(self, config: v.Config, schema: pa.Schema) -> None:
        self._config = config
        self._grid = grid_of(config)
        self._coding = Coding(config, schema)
        self._results = Results(config, self._coding)
        self._start = "cell_start" if config.window.kind == v.HOPPING else "window_start"
        self._pool = Pool()
        self._tables: dict[int, Table] = {}
        self._closed_by = v.NEVER
        self._expected = 0
        self._epoch = 1

    @property
    def open_groups(self) -> int:
        """How many (cell, key) the state holds."""
        return sum(table.groups for table in self._tables.values())

    # ---- rows in ---------------------------------------------------------------------------------

    def fold(
        self, delivery: Delivery, event_time: NDArray[np.int64], rows: NDArray[np.uint32] | None
    ) -> None:
        """Fold admitted rows into their cells; rows: which, or None for all.

        Law: G1, G2, G4, G5.
        Cost: 1 to 3 ns a row and aggregate, 2 for the key, 4 where a batch spans several cells.
        """
        chosen = NO_ROWS if rows is None else np.require(rows, np.uint32, ["C", "W"])
        if len(event_time) == 0 or (rows is not None and len(rows) == 0):
            return
        inputs = self._coding.inputs(delivery, event_time)
        cells = self._grid.cells(event_time, chosen)
        self._refuse_closed(min(cell for cell, *_ in cells))
        for cell, order, lo, hi in cells:
            self._table(cell).update(inputs, order, lo, hi)

    def _refuse_closed(self, cell: int) -> None:
        """A closed window never opens again.

        Law: F2.
        """
        start, end = self._grid.last_window(cell)
        if end <= self._passed:
            raise LawBroken(
                f"a row for the window that starts at {start} ms",
                allowed="rows of open windows: this one is closed (law F2)",
                where=f"pipeline {self._config.pipeline!r}",
                action="report this; what is committed stands",
            )

    @property
    def _passed(self) -> int:
        """Windows that end there or before are closed. Law: F1."""
        return self._closed_by - self._config.grace_ms

    def _table(self, cell: int) -> Table:
        """The table of a cell, under the newest layout; a new one where there is none."""
        table = self._tables.get(cell)
        if table is None:
            expected = self._expected if len(self._tables) < _FEW_CELLS else 0
            table = self._tables[cell] = self._new_table(expected)
        elif table.layout is not self._coding.layout:
            table.adopt(self._coding.layout)
        return table

    def _new_table(self, expected: int) -> Table:
        table = Table(self._coding.layout, self._pool, expected=expected)
        table.stamp(self._epoch)
        return table

    # ---- results out -----------------------------------------------------------------------------

    def close(self, watermark: int) -> None:
        """Windows with end + grace <= W leave the state; what they show waits for emit.

        Law: F1, F2, F3, E1.
        """
        before, self._closed_by = self._passed, max(self._closed_by, watermark)
        for start, end in self._closed_since(before):
            self._results.leave(self._groups(start, end).own())
        for cell in sorted(self._tables):
            if self._grid.last_window(cell)[1] > self._passed:
                break
            table = self._tables.pop(cell)
            self._expected = table.groups
            table.free()

    def _closed_since(self, before: int) -> list[tuple[int, int]]:
        """Windows with rows that are closed, and end after `before`; in order."""
        due: set[tuple[int, int]] = set()
        for cell in sorted(self._tables):
            windows = self._grid.windows(cell, after=before)
            closed = [window for window in windows if window[1] <= self._passed]
            if not closed:
                break
            due.update(closed)
        return sorted(due)

    def _open_windows(self) -> list[tuple[int, int]]:
        """Open windows with rows, in order."""
        passed = self._passed
        return sorted({w for cell in self._tables for w in self._grid.windows(cell, after=passed)})

    def _groups(self, start: int, end: int) -> Groups:
        """What a window shows at close or at the end of an epoch: in update mode what changed.

        Law: E1, E2, E3, F4, G2.
        """
        tables = [table for cell, table in self._tables.items() if start <= cell < end]
        if len(tables) == 1:
            block = tables[0].block(start, touched=self._results.shows_touched)
        else:
            block = self._merged(start, tables)
        return Groups(block, np.full(len(block.starts), end, np.int64))

    def _merged(self, start: int, tables: Sequence[Table]) -> Block:
        """The groups of a window over several cells.

        Cost: 10 to 30 ns for each group of each cell.
        """
        layout = self._coding.layout
        whole = self._new_table(max(table.groups for table in tables))
        for table in tables:
            block = table.block(start)
            whole.merge(block, block.inputs(layout))
        out = whole.block(start, touched=self._results.shows_touched).own()
        whole.free()
        return out

    def emit(self, epoch: int) -> tuple[pa.Table, pa.Table]:
        """The epoch's outbox rows and unfit values, by the output mode; see Results.

        Law: E1, E2, E3, E4, E5.
        """
        windows = self._open_windows() if self._results.shows_open else []
        still_open = [self._groups(start, end) for start, end in windows]
        out = self._results.emit(epoch, still_open)
        self._epoch += 1
        for table in self._tables.values():
            table.stamp(self._epoch)
        return out

    # ---- the state -------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, pa.Table]:
        """The state after an emit, as the tables that this file's first lines describe.

        Law: F3.
        """
        blocks = [table.block(cell) for cell, table in sorted(self._tables.items())]
        block = concat(self._coding.layout, blocks)
        columns = {self._start: build(pa.int64(), block.starts), **self._coding.state(block)}
        return {STATE: pa.table(columns), **self._results.snapshot()}

    def restore(self, tables: Mapping[str, pa.Table], watermark: int) -> None:
        """Take over a snapshot, made when W stood there; whatever the windows held is dropped."""
        for table in self._tables.values():
            table.free()
        self._tables, self._closed_by = {}, watermark
        self._results.restore(tables)
        state = tables[STATE]
        if state.num_rows == 0:
            return
        batch = state.combine_chunks().to_batches()[0]
        restored = self._coding.restored(batch)
        starts = raw(batch.column(self._start))
        order = np.argsort(starts, kind="stable").astype(np.uint32)
        cuts = [0, *(np.flatnonzero(np.diff(starts[order])) + 1).tolist(), len(order)]
        for lo, hi in pairwise(cuts):
            self._restore_cell(int(starts[order[lo]]), restored, order[lo:hi])

    def _restore_cell(self, cell: int, restored: Restored, rows: NDArray[np.uint32]) -> None:
        if not self._grid.is_cell(cell) or not restored.fill(self._table(cell), rows):
            raise LawBroken(
                f"{len(rows)} groups at {cell} ms",
                allowed="one group per key and cell of the grid",
                where=f"state of pipeline {self._config.pipeline!r}",
                action="report this; what is committed stands",
            )


def grid_of(config: v.Config) -> Grid:
    """The grid of a configuration's windows.

    Law: G1, G2, G5.
    Raises: CallerError for a kind that has none, or sizes that make none.
    """
    window = config.window
    if window.kind == v.CALENDAR:
        return Calendar(window.zone, window.unit, window.offset_ms)
    slide = window.slide_ms if window.kind == v.HOPPING else window.size_ms
    if window.kind not in (v.TUMBLING, v.HOPPING) or not 0 < slide <= window.size_ms:
        raise CallerError(
            f"window {window.kind} of {window.size_ms} ms at each {slide} ms",
            allowed=f"{v.TUMBLING} of at least 1 ms, {v.HOPPING} with 1 ms <= slide <= size, "
            f"{v.CALENDAR}",
            where=f"pipeline {config.pipeline!r}",
            action="set window size_ms and slide_ms",
        )
    return Slides(size_ms=window.size_ms, slide_ms=slide, offset_ms=window.offset_ms)
