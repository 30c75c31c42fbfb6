"""CrossHair looks for inputs that break the asserts of the reference's pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from thund_reference import watermark, windows

CONFIRMED = (windows.window_start, watermark.is_late, watermark.advance)
"""Every path was followed: no input breaks an assert."""

BOUNDED = (watermark.candidate, windows.is_closed)
"""Lists and records have no end of paths: nothing is found in SECONDS each."""

SECONDS = 4.0


def messages(function: Callable[..., Any]) -> set[str]:
    """What CrossHair says of a function, as the names of its message types.

    A function without a leading assert is skipped in silence by CrossHair: that is an error here.
    """
    from crosshair.core_and_libs import analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet

    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.asserts],
        per_condition_timeout=SECONDS,
        report_all=True,
    )
    checkables = list(analyze_function(function, options))
    assert checkables, f"{function.__name__} has no assert that CrossHair can start from"
    return {found.state.name for found in run_checkables(checkables)}


@pytest.mark.law("G1", "A1", "W3")
@pytest.mark.parametrize("function", CONFIRMED, ids=lambda f: f.__name__)
def test_required_no_input_breaks_the_asserts(function: Callable[..., Any]) -> None:
    assert messages(function) == {"CONFIRMED"}


@pytest.mark.law("W2", "F1")
@pytest.mark.parametrize("function", BOUNDED, ids=lambda f: f.__name__)
def test_required_no_input_is_found_in_bounded_time(function: Callable[..., Any]) -> None:
    assert messages(function) <= {"CONFIRMED", "CANNOT_CONFIRM"}


def truncating_start(event_time: int, size_ms: int, offset_ms: int) -> int:
    """The start of a window, wrong before 1970: it truncates."""
    assert size_ms > 0
    whole = abs(event_time - offset_ms) // size_ms
    start = (whole if event_time >= offset_ms else -whole) * size_ms + offset_ms
    assert start <= event_time < start + size_ms
    return start


def falling(watermark_ms: int, proposed: int) -> int:
    """W, wrong where the proposal is lower."""
    assert watermark_ms > 0
    moved = proposed
    assert moved >= watermark_ms
    return moved


@pytest.mark.law("G1", "W3")
@pytest.mark.parametrize("function", [truncating_start, falling], ids=lambda f: f.__name__)
def test_required_a_wrong_function_is_found(function: Callable[..., Any]) -> None:
    """Were CrossHair to skip functions or run out of time, this would not fail them."""
    assert messages(function) & {"POST_FAIL", "EXEC_ERR"}
