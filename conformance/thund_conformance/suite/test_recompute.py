"""The laws of the default mode, and that both modes give the same answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import thund.recompute
from thund.epoch import Outbox
from thund.sink import MemorySink, Record
from thund_conformance import compare, engines, judge, strategies
from thund_conformance.crashes import timeless
from thund_conformance.engines.carrier import Carrier
from thund_conformance.engines.log_source import LogSource
from thund_conformance.engines.thund import all_puts
from thund_conformance.scripts import config, counts, drained, log
from thund_contract.errors import ThundError
from thund_contract.scenario import Deliver, DrainAll, Scenario
from thund_contract.vocabulary import (
    BY_EPOCH,
    BY_ROW,
    PARTITION_RULE,
    ROW_RULE,
    WINDOW_RULE,
    Put,
    Row,
)

few = strategies.share(4)


def source_of(s: Scenario) -> LogSource:
    return LogSource(s, Carrier(s))


def recompute(s: Scenario, sink: Any, *, drain: bool = True) -> tuple[Put, ...]:
    """One trigger over the logs of a scenario; gives the rows of the sink's tables."""
    thund.recompute.recompute(s.config, source_of(s), sink, now=lambda: 0, drain=drain)
    return all_puts(s.config, sink)


LOGS = (log("p0", 5, 30, 2, None, 31), log("p1", 7, 40))


@pytest.mark.law("R2")
def test_required_recompute_gives_the_answer_and_the_lanes() -> None:
    """Chunks of 2 offsets: p0 5 30, p1 7 40, p0 2 null, p0 31; W is 5, 7 and then 30."""
    s = drained(config(), *LOGS)
    sink = MemorySink()
    table = recompute(s, sink)
    assert counts(table) == {("a", 0): 2, ("a", 30): 2, ("a", 40): 1}
    assert sink.lanes()["late"]["offset"].to_pylist() == [2]
    assert sink.lanes()["invalid"]["offset"].to_pylist() == [3]


@pytest.mark.law("R2")
def test_required_each_trigger_replaces_table_and_lanes_under_the_next_version() -> None:
    """The second log has lost a row and gained one: nothing of the first answer is left."""
    sink = MemorySink()
    recompute(drained(config(), *LOGS), sink)
    assert sink.record() == Record("p", "recompute", 1)
    table = recompute(drained(config(), log("p0", 5, 55)), sink)
    assert sink.record() == Record("p", "recompute", 2)
    assert counts(table) == {("a", 0): 1, ("a", 50): 1}
    assert {put.version for put in table} == {2}
    assert sink.lanes()["late"].num_rows == 0


class Beaten(MemorySink):
    """Another run is quicker, once: it replaces the table after this one read the version."""

    def __init__(self, quicker: Scenario) -> None:
        super().__init__()
        self.quicker: Scenario | None = quicker

    def replace(self, outbox: Outbox, *, pipeline: str, version: int) -> bool:
        if self.quicker is not None:
            other, self.quicker = self.quicker, None
            recompute(other, self)
        return super().replace(outbox, pipeline=pipeline, version=version)


@pytest.mark.law("R2")
def test_required_a_run_that_was_beaten_computes_again() -> None:
    sink = Beaten(drained(config(), log("p0", 1)))
    table = recompute(drained(config(), *LOGS), sink)
    assert sink.record() == Record("p", "recompute", 2)
    assert counts(table) == {("a", 0): 2, ("a", 30): 2, ("a", 40): 1}
    assert {put.version for put in table} == {2}


@pytest.mark.law("R2")
def test_required_a_table_of_the_other_mode_stops_both() -> None:
    s = drained(config(), *LOGS)
    own = engines.make(engines.THUND, s)
    world: Any = own.world(s.config)
    life = own.live(s.config, world, now=lambda: 0, durable=lambda name, epoch: None)
    life.add("p0")
    life.commit()
    with pytest.raises(ThundError):
        recompute(s, world.sink)
    recomputed = MemorySink()
    recompute(s, recomputed)
    world.sink = recomputed
    with pytest.raises(ThundError):
        own.live(s.config, world, now=lambda: 0, durable=lambda name, epoch: None)


@pytest.mark.law("R2")
@pytest.mark.law("F1")
@pytest.mark.parametrize("update", [BY_ROW, BY_EPOCH])
def test_required_windows_stay_open_without_a_drain(update: str) -> None:
    s = drained(config(watermark_update=update), log("p0", 5, 15, 25))
    assert counts(recompute(s, MemorySink(), drain=False)) == {("a", 0): 1, ("a", 10): 1}


@pytest.mark.law("R2")
@pytest.mark.parametrize(
    ("rule", "update", "late"),
    [
        (ROW_RULE, BY_ROW, [1, 4]),
        (WINDOW_RULE, BY_ROW, [4]),
        (PARTITION_RULE, BY_ROW, [1, 4]),
        (ROW_RULE, BY_EPOCH, []),
        (WINDOW_RULE, BY_EPOCH, []),
        (PARTITION_RULE, BY_EPOCH, [1, 4]),
    ],
)
def test_required_recompute_keeps_to_the_late_rule(rule: str, update: str, late: list[int]) -> None:
    """7, 5, 20, 21, 3: 5 is before W in an open window, 3 in a closed one."""
    sink = MemorySink()
    recompute(
        drained(config(late_rule=rule, watermark_update=update), log("p0", 7, 5, 20, 21, 3)), sink
    )
    assert sink.lanes()["late"]["offset"].to_pylist() == late


# ---- T2 -----------------------------------------------------------------------------------------


def in_source_order(s: Scenario) -> Scenario:
    """The same rows, delivered one by one in the order of the source that recompute reads."""
    rows: list[Row] = [row for _, part in s.logs for row in part]
    rows.sort(key=lambda row: (row.offset // 2, row.partition, row.offset))
    steps = tuple(Deliver(row.partition, 1) for row in rows)
    names = tuple(sorted(name for name, _ in s.logs))
    return replace(s, assigned=names, steps=(*steps, DrainAll()))


@pytest.mark.law("T2")
def test_required_both_modes_give_the_same_answer(engine_name: str) -> None:
    s = in_source_order(drained(config(), *LOGS))
    outcome = judge.run_on(engine_name, s)
    assert timeless(outcome.table) == timeless(recompute(s, MemorySink()))


@pytest.mark.law("T2")
@few
@given(s=strategies.scenarios(strategies.FIXED))
def test_required_both_modes_give_the_same_answer_for_anything(
    slow_engine_name: str, s: Scenario
) -> None:
    """The source's order is a function of the logs, all partitions are there from the start.

    Recompute is one epoch: where rows do not move W, incremental mode has to be one as well.
    """
    if s.config.watermark_update == BY_EPOCH:
        s = replace(s, config=replace(s.config, credits=1_048_576))
    s = in_source_order(s)
    outcome = judge.run_on(slow_engine_name, s)
    assert compare.same(timeless(outcome.table), timeless(recompute(s, MemorySink())))
