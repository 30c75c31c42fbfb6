"""What the durations of a definition must satisfy: windows, watermark, and how long ids are kept."""

from __future__ import annotations

import zoneinfo

from thund.definition import (
    CalendarSpec,
    HoppingSpec,
    Pipeline,
    SessionSpec,
    TumblingSpec,
    WatermarkSpec,
    WindowKind,
)
from thund.durations import UNITS_MS, format_duration
from thund.refusal import fail, nearest
from thund_contract.vocabulary import DAY, HOUR, MAX_EVENT_TIME, MONTH, WEEK

LEAST_UNIT_MS = {
    HOUR: UNITS_MS["h"],
    DAY: UNITS_MS["d"],
    WEEK: 7 * UNITS_MS["d"],
    MONTH: 28 * UNITS_MS["d"],
}
"""What a calendar window's offset must be shorter than: a unit of local time, at its shortest."""

_Grid = TumblingSpec | HoppingSpec


def check_times(pipeline: Pipeline, where: str) -> None:
    """See that each duration is one, and that no sum of them leaves the declared range.

    Law: A4, A7, G1, G2, G3, G5, W4. Raises: CallerError.
    """
    windows = {"window": pipeline.window}
    windows |= {f"more.{each.name}.window": each.window for each in pipeline.more}
    for key, window in windows.items():
        if isinstance(window, SessionSpec):
            _above_zero(f"{key}.gap", window.gap_ms, "30m", where)
        elif isinstance(window, CalendarSpec):
            _check_calendar(key, window, where)
        else:
            _check_grid(key, window, where)
    _check_lengths(pipeline, where)
    for key, window in windows.items():
        _check_sum(key, window, pipeline.watermark, where)


def _above_zero(key: str, ms: int, example: str, where: str) -> None:
    if ms <= 0:
        fail(
            key,
            format_duration(ms),
            f"is no window {key.rpartition('.')[2]}",
            allowed=f'a duration above zero, such as "{example}"',
            action="give a length of time",
            where=where,
        )


def _check_grid(key: str, window: _Grid, where: str) -> None:
    _above_zero(f"{key}.size", window.size_ms, "1h", where)
    if isinstance(window, HoppingSpec):
        _above_zero(f"{key}.slide", window.slide_ms, "5m", where)
        if window.slide_ms > window.size_ms:
            fail(
                f"{key}.slide",
                format_duration(window.slide_ms),
                "leaves rows between two windows without one",
                allowed=f"at most the size, {format_duration(window.size_ms)} (law G2)",
                action="make the slide shorter or the size longer, or leave rows out with a filter",
                where=where,
            )


def _check_calendar(key: str, window: CalendarSpec, where: str) -> None:
    unit_ms = LEAST_UNIT_MS[window.unit]
    if abs(window.offset_ms) >= unit_ms:
        fail(
            f"{key}.offset",
            format_duration(window.offset_ms),
            f"is not shorter than the unit, {window.unit}",
            allowed=f"less than {format_duration(unit_ms)} to either side",
            action="give the part of a unit by which its windows start later",
            where=where,
        )
    zones = zoneinfo.available_timezones()
    if window.zone not in zones:
        guess = nearest(window.zone, zones)
        fail(
            f"{key}.zone",
            window.zone,
            "is no time zone",
            allowed='a name of the IANA time zone database, such as "Europe/Berlin" or "UTC"',
            action=f"did you mean {guess!r}?" if guess else "use such a name",
            where=where,
        )


def _check_lengths(pipeline: Pipeline, where: str) -> None:
    watermark, deduplicate = pipeline.watermark, pipeline.deduplicate
    lengths = {
        "watermark.delay": watermark.delay_ms,
        "watermark.grace": watermark.grace_ms,
        "watermark.max_future": watermark.max_future_ms or 0,
        "watermark.idle_timeout": watermark.idle_timeout_ms,
        "deduplicate.remember": deduplicate.remember_ms if deduplicate else 0,
    }
    for key, value in lengths.items():
        if not 0 <= value <= MAX_EVENT_TIME:
            fail(
                key,
                format_duration(value),
                "is out of range",
                allowed=f"0 to {MAX_EVENT_TIME} ms (2^52)",
                action="give a duration that is not negative",
                where=where,
            )


def _check_sum(key: str, kind: WindowKind, watermark: WatermarkSpec, where: str) -> None:
    """The sum of all that is added to an event time stays inside of int64. Law: A4."""
    window = kind.words()
    parts = {
        f"{key}.size": window.size_ms,
        f"{key}.slide": window.slide_ms,
        f"{key}.gap": window.gap_ms,
        f"|{key}.offset|": abs(window.offset_ms),
        "watermark.delay": watermark.delay_ms,
        "watermark.grace": watermark.grace_ms,
    }
    total = sum(parts.values())
    if total > MAX_EVENT_TIME:
        fail(
            " + ".join(name for name, part in parts.items() if part),
            format_duration(total),
            "is out of range",
            allowed=f"at most {MAX_EVENT_TIME} ms (2^52) together, so that no window bound overflows",
            action="give smaller durations",
            where=where,
        )
