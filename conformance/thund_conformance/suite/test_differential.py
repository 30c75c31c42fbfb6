"""The implementation against the reference: all that comes of a scenario, compared."""

from __future__ import annotations

from hypothesis import given

from thund_conformance import engines, judge, strategies
from thund_contract.scenario import Scenario


@given(scenario=strategies.scenarios(strategies.PLAIN))
def test_required_engine_and_reference_agree(candidate_name: str, scenario: Scenario) -> None:
    judge.expect_agreement(scenario, (engines.REFERENCE, candidate_name))


@given(scenario=strategies.scenarios(strategies.WITH_CRASHES))
def test_required_engine_and_reference_agree_through_deaths(
    candidate_name: str, scenario: Scenario
) -> None:
    judge.expect_agreement(scenario, (engines.REFERENCE, candidate_name))


@given(wire=strategies.wires())
def test_required_engine_and_reference_agree_on_any_wire(
    candidate_name: str, wire: strategies.Wire
) -> None:
    """Partitions interleaved in one batch, rows in any order, twice, or of a removed partition."""
    judge.expect_agreement_on_wire(wire, (engines.REFERENCE, candidate_name))
