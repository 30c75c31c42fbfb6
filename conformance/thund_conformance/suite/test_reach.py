"""The look back: every situation that a law speaks of was there."""

from __future__ import annotations

import pytest

from thund_conformance import plugin, reach


def test_required_every_situation_was_reached(request: pytest.FixtureRequest) -> None:
    """Runs last, and only where the whole suite ran before it."""
    if not plugin.whole_suite(request.session):
        pytest.skip("only a part of the suite runs")
    missing = reach.unreached()
    assert not missing, "no scenario reached: " + "; ".join(missing)
