"""Run scenarios on engines by name, and fail with all that differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thund_conformance import compare, engines, golden, link
from thund_conformance.strategies import Wire
from thund_contract.engine import Engine, Outcome
from thund_contract.scenario import Scenario
from thund_contract.vocabulary import NONE_BEFORE, EpochRecord, Put

_latest: Scenario | None = None


def run_on(name: str, scenario: Scenario, *, watch: link.Watch | None = None) -> Outcome:
    """What comes of a scenario on an engine."""
    remember(scenario)
    return link.run(engines.make(name, scenario), scenario, watch=watch)


def maker(name: str, scenario: Scenario) -> Engine:
    """An engine for a test that moves the life itself; a failure prints the scenario."""
    remember(scenario)
    return engines.make(name, scenario)


def remember(scenario: Scenario) -> None:
    """The scenario that a failing test prints: the last one that ran."""
    global _latest  # noqa: PLW0603 - one process judges one scenario after the other
    _latest = scenario


def latest() -> Scenario | None:
    """The last scenario that ran, if any; then it is forgotten."""
    global _latest
    found, _latest = _latest, None
    return found


def as_golden(scenario: Scenario) -> str:
    """The scenario as a golden file with the reference's outcome, ready to commit."""
    try:
        outcome = link.run(engines.make(engines.REFERENCE, scenario), scenario)
    except Exception:  # noqa: BLE001 - a reference that fails leaves the second half empty
        return golden.render_scenario(scenario) + golden.CUT + "\n"
    return golden.render(golden.Golden(scenario, golden.expected_of(outcome)))


def expect_same(left: Outcome, right: Outcome, names: tuple[str, str], scenario: Scenario) -> None:
    """Fail with every difference of two outcomes."""
    can = [engines.make(name, scenario).capabilities for name in names]
    lines = compare.differences(left, right, names=names, can=can)
    assert not lines, "\n" + "\n".join(lines)


def expect_agreement(scenario: Scenario, names: Sequence[str]) -> Outcome:
    """Run on all, compare each with the first; give the first one's outcome."""
    first = run_on(names[0], scenario)
    for name in names[1:]:
        expect_same(first, run_on(name, scenario), (names[0], name), scenario)
    return first


def expect_agreement_on_wire(wire: Wire, names: Sequence[str]) -> None:
    """As expect_agreement, where rows arrive without a link that orders them."""
    first, *others = [_over_wire(name, wire) for name in names]
    for name, found in zip(names[1:], others, strict=True):
        moves = " ".join(f"{verb}:{partition}:{number}" for verb, partition, number in wire.moves)
        lines = compare.differences(first, found, names=(names[0], name))
        assert not lines, "\n".join(["", *lines, "", moves])


def _over_wire(name: str, wire: Wire) -> Outcome:
    at = link.Link(maker(name, wire.scenario), wire.scenario)
    for partition, log in wire.scenario.logs:
        at.alive.send(partition, len(log))
    for verb, partition, number in wire.moves:
        known = partition in at.alive.assigned()
        if verb == "commit":
            at.alive.commit()
        elif verb == "add" and not known:
            at.alive.add(partition)
            at.alive.send(partition, at.alive.credit(partition) // 2)
        elif verb == "remove" and known:
            at.alive.remove(partition)
        elif verb == "deliver" and known:
            row = at.logs[partition][number]
            prev = at.logs[partition][number - 1].offset if number else NONE_BEFORE
            at.alive.deliver(row, prev)
    at.alive.drain()
    at.duplicates = at.alive.duplicates
    return at.outcome()


def expect_same_epochs(
    left: Sequence[EpochRecord], right: Sequence[EpochRecord], names: tuple[str, str]
) -> None:
    """Fail with every difference of two histories."""
    lines = compare.epoch_differences(left, right, names=names)
    assert not lines, "\n" + "\n".join(lines)


def results(table: Iterable[Put]) -> list[tuple[object, ...]]:
    """A table without ids and versions, in the order of oracle.py."""
    return sorted(((p.key, p.start_ms, p.end_ms, p.values) for p in table), key=repr)
