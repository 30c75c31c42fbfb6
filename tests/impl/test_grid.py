"""Grids of hopping and tumbling windows against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thund.grid import Slides
from thund_contract import vocabulary as v


@st.composite
def grids(draw: st.DrawFn) -> tuple[int, int, int]:
    size = draw(st.integers(1, 40) | st.sampled_from([60_000, 86_400_000]))
    slide = draw(st.integers(max(1, size // 9), size))
    return size, slide, draw(st.integers(-3 * size, 3 * size))


def windows_of(time: int, grid: tuple[int, int, int]) -> list[tuple[int, int]]:
    """The windows [n * slide + offset, + size) that hold a time."""
    size, slide, offset = grid
    near = (time - offset) // slide
    starts = [n * slide + offset for n in range(near - size // slide - 2, near + 3)]
    return [(start, start + size) for start in starts if start <= time < start + size]


@given(
    grids(),
    st.lists(st.integers(-300, 300), min_size=1, max_size=40),
    st.sampled_from([1, 10**9, 10**13]),
    st.booleans(),
)
def test_required_rows_of_a_cell_are_in_the_same_windows(
    grid: tuple[int, int, int], times: list[int], spread: int, some: bool
) -> None:
    """Each row is in one cell, whose windows are those that hold the row's time."""
    size, slide, offset = grid
    slides = Slides(size_ms=size, slide_ms=slide, offset_ms=offset)
    event_time = np.array(times, np.int64) * spread
    chosen = list(range(0, len(times), 2)) if some else []
    rows = np.array(chosen, np.uint32)
    found = []
    for cell, order, lo, hi in slides.cells(event_time, rows):
        assert slides.is_cell(cell)
        for row in order[lo:hi].tolist() if len(order) else range(lo, hi):
            time = int(event_time[row])
            assert cell <= time
            assert slides.windows(cell) == windows_of(time, grid)
            assert slides.last_window(cell) == windows_of(time, grid)[-1]
            found.append(row)
    assert sorted(found) == (chosen or list(range(len(times))))


@given(grids(), st.integers(-200, 200), st.integers(-200, 200))
def test_required_only_windows_that_end_after_a_time_are_told(
    grid: tuple[int, int, int], time: int, after: int
) -> None:
    size, slide, offset = grid
    slides = Slides(size_ms=size, slide_ms=slide, offset_ms=offset)
    [(cell, *_)] = slides.cells(np.array([time]), np.empty(0, np.uint32))
    wanted = [window for window in windows_of(time, grid) if window[1] > after]
    assert slides.windows(cell, after=after) == wanted
    assert slides.windows(cell, after=v.NEVER) == windows_of(time, grid)


@pytest.mark.parametrize(
    ("size", "slide", "cells"), [(60, 10, 6), (60, 60, 1), (25, 10, 5), (10, 7, 3)]
)
def test_required_a_window_is_cut_into_few_cells(size: int, slide: int, cells: int) -> None:
    """A cell ends only where a window starts or ends: one a slide, two if it does not divide size."""
    slides = Slides(size_ms=size, slide_ms=slide, offset_ms=0)
    times = np.arange(100 * slide, 100 * slide + size)
    assert len(slides.cells(times, np.empty(0, np.uint32))) == cells
