"""Durations as text ("2h", "1h30m", "1500ms") and as whole milliseconds."""

from __future__ import annotations

import re

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
"""The units, largest first, in the order in which a text may use them."""

ALLOWED = (
    'whole numbers with the units d, h, m, s, ms, such as "2h", "1h30m", "1500ms"; or a count of ms'
)

_PART = re.compile(r"([0-9]+)(ms|d|h|m|s)")
_TEXT = re.compile(r"-?(?=[0-9])([0-9]+d)?([0-9]+h)?([0-9]+m(?!s))?([0-9]+s)?([0-9]+ms)?", re.ASCII)


def parse_duration(value: object) -> int:
    """Milliseconds of a duration; a leading minus goes for all of its parts.

    Raises: ValueError for anything else.

    >>> parse_duration("1h30m"), parse_duration("-1500ms"), parse_duration(250)
    (5400000, -1500, 250)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not _TEXT.fullmatch(value):
        raise ValueError(ALLOWED)
    total = sum(int(number) * UNITS_MS[unit] for number, unit in _PART.findall(value))
    return -total if value.startswith("-") else total


def format_duration(ms: int) -> str:
    """The text that `parse_duration` reads back, in as few parts as there can be.

    >>> format_duration(5400000), format_duration(-1500), format_duration(0)
    ('1h30m', '-1s500ms', '0s')
    """
    rest, parts = abs(ms), []
    for unit, size in UNITS_MS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if ms < 0 else "") + ("".join(parts) or "0s")
