"""The laws of publishing: each outbox into the table once, in order, or an error that says why."""

from __future__ import annotations

import pytest

from thund.history import History, manifest_name
from thund.sink import MemorySink, publish, rebuild
from thund_conformance import judge, link
from thund_conformance.engines.thund import ThundWorld
from thund_conformance.lives import checkpoints, epochs_of, story, world
from thund_conformance.scripts import counts
from thund_contract.errors import StoreError, ThundError
from thund_contract.scenario import (
    Barrier,
    Crash,
    Deliver,
    Restart,
)


def publish_into(sink: MemorySink, at: link.Link, nonce: str = "publisher") -> int:
    own = checkpoints(world(at).store, at.config, nonce)
    own.recover()
    return publish(own, sink, durable=lambda name, epoch: None)


@pytest.mark.law("K5")
def test_required_a_sink_gets_what_it_lacks_once_and_in_order() -> None:
    """A new sink beside the old one gets all three epochs, empty outboxes too, then none."""
    at = epochs_of(3)
    sink = MemorySink()
    assert publish_into(sink, at) == 3
    assert publish_into(sink, at) == 0
    record = sink.record()
    assert record is not None
    assert (record.pipeline, record.generation, record.last) == ("p", "life-1", 3)
    assert sink.table() == world(at).sink.table()


@pytest.mark.law("K5")
def test_required_a_table_that_is_ahead_of_the_state_is_an_error() -> None:
    """The state folder was copied back to an older day; the table was not."""
    at = epochs_of(3)
    sink = world(at).sink
    store = world(at).store
    store.delete(manifest_name(3))
    with pytest.raises(StoreError) as error:
        publish_into(sink, at)
    assert error.value.code == "sink_ahead"


@pytest.mark.law("K5")
def test_required_a_table_of_another_history_is_an_error() -> None:
    """The same pipeline with a new state folder: another generation."""
    old, new = epochs_of(2), epochs_of(2)
    fresh = ThundWorld(new.config)
    fresh.lives = 5
    engine = new.engine
    life = engine.live(new.config, fresh, now=lambda: 0, durable=lambda name, epoch: None)
    life.add("p0")
    life.commit()
    own = checkpoints(fresh.store, new.config, "publisher")
    own.recover()
    with pytest.raises(ThundError) as error:
        publish(own, world(old).sink, durable=lambda name, epoch: None)
    assert "generation" in str(error.value)


@pytest.mark.law("K5")
def test_required_an_outbox_that_is_gone_is_an_error_and_a_rebuild_refuses() -> None:
    at = epochs_of(3)
    own = checkpoints(world(at).store, at.config, "publisher")
    own.recover()
    own.collect(1, {"memory": 3})
    with pytest.raises(StoreError) as error:
        publish_into(MemorySink(), at)
    assert error.value.code == "outbox_gone"
    before = world(at).sink.table()
    with pytest.raises(StoreError):
        rebuild(own, world(at).sink, durable=lambda name, epoch: None)
    assert world(at).sink.table() == before


@pytest.mark.law("K5")
def test_required_a_rebuild_fills_the_table_again() -> None:
    """Asked for; whatever the table held before is gone."""
    at = epochs_of(3)
    sink = MemorySink()
    sink.apply(History(world(at).store).outbox(1), pipeline="p", generation="another")
    own = checkpoints(world(at).store, at.config, "publisher")
    own.recover()
    rebuild(own, sink, durable=lambda name, epoch: None)
    assert sink.table() == world(at).sink.table()


@pytest.mark.law("K5")
@pytest.mark.parametrize("step", [3, 4, 5])
def test_required_recovery_publishes_what_was_committed(engine_name: str, step: int) -> None:
    """Died between the manifest and the sink: the next process applies the outbox, once."""
    s = story(Crash(step), Deliver("p0", 2), Barrier(), Restart())
    outcome = judge.run_on(engine_name, s)
    assert counts(outcome.table) == {("a", 0): 1}
    assert outcome.steps[step:] == ("sink:1",)
