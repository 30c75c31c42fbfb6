"""The soak draws what it says, does it again from its seed, and finds a bug that was put in."""

import dataclasses
import random

import pytest
from hypothesis import HealthCheck, given, settings

import thund_reference.watermark
from thund_conformance import golden, reach, soak, strategies
from thund_contract.scenario import Crash, DrainAll


def drawn_scenario():
    found = []

    @settings(
        max_examples=5,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(scenario=strategies.scenarios(strategies.WITH_CRASHES))
    def look(scenario):
        found.append(scenario)

    look()
    return found[-1]


def test_required_the_same_rows_are_dealt_anew():
    """Other steps and rules over the same logs; every death leaves a drain for the end."""
    scenario = drawn_scenario()
    dealt = list(soak.dealt_anew(scenario, strategies.WITH_CRASHES, random.Random(5)))
    assert len(dealt) == soak.DEALT
    assert all(d.logs == scenario.logs and d.config.key == scenario.config.key for d in dealt)
    assert len({repr(d) for d in dealt}) == len(dealt)
    for d in dealt:
        deaths = sum(isinstance(step, Crash) for step in d.steps)
        assert d.steps[-1 - deaths :] == (DrainAll(),) * (1 + deaths)
    again = list(soak.dealt_anew(scenario, strategies.WITH_CRASHES, random.Random(5)))
    assert again == dealt


def test_required_a_chunk_counts_what_it_ran_and_what_it_reached():
    found = soak.draw(1, seed=3, count=2)
    assert found.failed is None
    assert found.scenarios == 2 * (1 + soak.DEALT)
    assert sum(found.reached[reach.OUTPUT + mode] for mode in ("append", "update", "complete")) == (
        2 * found.scenarios
    )


def test_required_a_difference_is_found_and_written_down(monkeypatch: pytest.MonkeyPatch):
    """A reference that calls a row at W late: the scenario comes back as a golden file."""
    monkeypatch.setattr(
        thund_reference.watermark, "is_late", lambda event_time, watermark: event_time <= watermark
    )
    found = soak.draw(1, seed=3, count=20, shrink=False)
    assert found.failed is not None
    text, difference = found.failed
    assert "late" in difference
    scenario = golden.parse(text).scenario
    assert dataclasses.replace(scenario, why="") == scenario
