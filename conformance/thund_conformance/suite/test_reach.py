"""The look back: every situation that a law speaks of was there, and every line of the reference."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from thund_conformance import engines, golden, link, plugin, reach
from thund_reference import accumulators, calendar, operators, output, process, windows

ROOMS = (accumulators, calendar, operators, output, process, windows)
"""What golden files alone must reach; stores, sinks and sources have tests of their own."""
OWN_TESTS = ("raise ", "return USER[")
"""Refusals, and monoids of a user's own: test_monoids.py."""


def test_required_every_situation_was_reached(request: pytest.FixtureRequest) -> None:
    """Runs last, and only where the whole suite ran before it."""
    if not plugin.whole_suite(request.session):
        pytest.skip("only a part of the suite runs")
    missing = reach.unreached()
    assert not missing, "no scenario reached: " + "; ".join(missing)


def lines_of(code: types.CodeType) -> Iterator[int]:
    """The lines inside functions; a class's own lines run when it is made."""
    inside = bool(code.co_flags & 0x02)  # a function has locals of its own
    if inside:
        yield from (line for _, _, line in code.co_lines() if line and line > code.co_firstlineno)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from lines_of(constant)


def test_required_golden_files_reach_every_line_of_the_rooms() -> None:
    """A branch of the reference that no file reaches is one that nobody has looked at."""
    paths = {str(room.__file__) for room in ROOMS}
    seen: set[tuple[str, int]] = set()

    def line(frame: types.FrameType, event: str, _: object) -> object:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: types.FrameType, event: str, _: object) -> object:
        return line if frame.f_code.co_filename in paths else None

    calendar.distance.cache_clear()  # other tests may have asked for the same instants
    calendar.reached.cache_clear()
    before = sys.gettrace()
    sys.settrace(call)  # type: ignore[arg-type]
    try:
        for path in golden.paths():
            scenario = golden.read(path).scenario
            link.run(engines.make(engines.REFERENCE, scenario), scenario)
    finally:
        sys.settrace(before)
    missing = []
    for name in sorted(paths):
        text = Path(name).read_text(encoding="utf-8")
        source = text.splitlines()
        for number in sorted(set(lines_of(compile(text, name, "exec")))):
            code = source[number - 1].strip()
            if (name, number) not in seen and not code.startswith(OWN_TESTS) and "..." not in code:
                missing.append(f"{Path(name).name}:{number} {code}")
    assert missing == []
