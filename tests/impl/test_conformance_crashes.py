"""The enumeration of deaths finds a recovery that forgets, and goes through every step."""

import pytest

import thund_reference.pipeline
from thund_conformance import crashes, engines
from thund_conformance.scripts import config, log, scenario
from thund_contract.scenario import Barrier, Deliver, DrainAll
from thund_contract.vocabulary import NEVER

STORY = scenario(
    config(), [log("p0", 30, 5), log("p1", 20)], Deliver("p1", 1), Deliver("p0", 1), Barrier(),
    Deliver("p0", 1), DrainAll(),
)  # fmt: skip
"""p0's row at 5 is late, because W is 20."""


def test_required_each_step_and_each_pair_is_tried():
    assert list(crashes.deaths(2, pairs=False)) == [(1,), (2,)]
    pairs = [plan for plan in crashes.deaths(2, pairs=True) if len(plan) == 2]
    assert {(1, 2), (1, 3), (2, 3)} <= set(pairs)
    swept = crashes.sweep(engines.REFERENCE, STORY)
    assert swept.steps == 12
    assert swept.runs == 12 + 18 * 17 // 2


def test_required_a_recovery_that_forgets_is_found(monkeypatch):
    recover = thund_reference.pipeline.Life.recover

    def forgetful(self):
        recover(self)
        self.process.watermark = NEVER
        for name, progress in self.process.partitions.items():
            self.process.partitions[name] = type(progress)(assigned=progress.assigned)

    monkeypatch.setattr(thund_reference.pipeline.Life, "recover", forgetful)
    with pytest.raises(AssertionError, match="crash"):
        crashes.sweep(engines.REFERENCE, STORY)


def test_required_an_outbox_that_recovery_leaves_is_found(monkeypatch):
    """A death between the manifest of the drain and the sink: nothing publishes it any more."""
    life = thund_reference.pipeline.Life
    recover, publish = life.recover, life.publish

    def start(self):
        recover(self)
        self.starting = True

    def later(self):
        starting, self.starting = self.starting, False
        if not starting:
            publish(self)

    monkeypatch.setattr(life, "recover", start)
    monkeypatch.setattr(life, "publish", later)
    with pytest.raises(AssertionError, match="table"):
        crashes.sweep(engines.REFERENCE, STORY, pairs=False)
