"""The laws of the output: what an epoch shows in each mode, and under which identity."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from thund_conformance import judge
from thund_conformance.scripts import config, counts, drained, log, row, scenario
from thund_contract.engine import Outcome
from thund_contract.scenario import Barrier, Deliver, DrainAll, Restart
from thund_contract.vocabulary import COMPLETE, UPDATE, Row


def outboxes(outcome: Outcome) -> list[dict[tuple[object, int], object]]:
    return [dict(counts(e.outbox)) for e in outcome.epochs]


STORY = log("p0", 1, 2, 12, 13, 25)
"""Two rows in [0, 10), two in [10, 20), one in [20, 30); an epoch after rows 1, 3 and 5."""


def story(mode: str, name: str) -> Outcome:
    s = scenario(
        config(output=mode),
        [STORY],
        Deliver("p0", 1),
        Barrier(),
        Deliver("p0", 2),
        Barrier(),
        Deliver("p0", 2),
        Barrier(),
        DrainAll(),
    )
    return judge.run_on(name, s)


@pytest.mark.law("E1")
def test_required_append_shows_a_window_once_when_it_closes(engine_name: str) -> None:
    shown = outboxes(story("append", engine_name))
    assert shown == [{}, {("a", 0): 2}, {("a", 10): 2}, {("a", 20): 1}]


@pytest.mark.law("E2")
def test_required_update_shows_what_had_a_row_in_the_epoch(engine_name: str) -> None:
    """A window that closes shows nothing more, unless a row came in this epoch too."""
    shown = outboxes(story(UPDATE, engine_name))
    assert shown == [{("a", 0): 1}, {("a", 0): 2, ("a", 10): 1}, {("a", 10): 2, ("a", 20): 1}, {}]


@pytest.mark.law("E2")
def test_required_update_leaves_other_keys_alone(engine_name: str) -> None:
    rows = tuple(row("p0", i, t, k) for i, (t, k) in enumerate([(1, "a"), (2, "b"), (3, "b")]))
    s = scenario(config(output=UPDATE), [("p0", rows)], *(Deliver("p0", 1), Barrier()) * 3)
    assert outboxes(judge.run_on(engine_name, s)) == [{("a", 0): 1}, {("b", 0): 1}, {("b", 0): 2}]


@pytest.mark.law("E3")
def test_required_complete_shows_the_whole_result_each_time(engine_name: str) -> None:
    """Closed windows stay in it, also after a restart."""
    outcome = story(COMPLETE, engine_name)
    assert outboxes(outcome) == [
        {("a", 0): 1},
        {("a", 0): 2, ("a", 10): 1},
        {("a", 0): 2, ("a", 10): 2, ("a", 20): 1},
        {("a", 0): 2, ("a", 10): 2, ("a", 20): 1},
    ]
    assert [w.start_ms for w in outcome.epochs[2].state] == [20]


@pytest.mark.law("E3")
def test_required_complete_keeps_closed_rows_over_a_restart(engine_name: str) -> None:
    s = scenario(
        config(output=COMPLETE),
        [STORY],
        Deliver("p0", 3),
        Barrier(),
        Restart(),
        Deliver("p0", 1),
        Barrier(),
    )
    assert outboxes(judge.run_on(engine_name, s))[1] == {("a", 0): 2, ("a", 10): 2}


@pytest.mark.law("E4")
def test_required_the_drained_table_is_the_same_in_all_modes(engine_name: str) -> None:
    tables = []
    for mode in ("append", UPDATE, COMPLETE):
        found = story(mode, engine_name).table
        tables.append([(p.id, p.key, p.start_ms, p.end_ms, p.values) for p in found])
    assert len(tables[0]) == 3
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.law("E5")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, "1ee9f1412adaf9aca82603575274a4e5"),
        (True, "6dd7f2dc0eba6efb42eacf4828709398"),
        (False, "d48544a451f63f918fa6c72bebb3c36d"),
        (-1, "127198a7876e7745cbcbb1546eadf6a6"),
        (2**63 - 1, "aa4fffe285ef8dfee5c1550533c31de9"),
        (1.5, "7b83c1d01b32fa63e11f90ce7a9a87b6"),
        (-0.0, "3cc40f5952920b0b1d1e1794b1896353"),
        (0.0, "3cc40f5952920b0b1d1e1794b1896353"),
        (math.nan, "6142f87cd0e71701e78315f338e71d8a"),
        ("é", "c307ec5309c3a88f20e8bf256e432fff"),
        (b"\x00a", "e5f7c02a80f87c4e78f3ba615584fd20"),
        (("date32[day]", -7), "f88099696655c6d98d44732aec6600cb"),
        (("timestamp[us, tz=UTC]", 1), "8636483cec61584c9a2a5c572b356646"),
    ],
)
def test_required_identity_is_the_published_hash(
    engine_name: str, key: object, expected: str
) -> None:
    """The ids of pipeline p, operator window, one key, the window at 0; made by hand once."""
    found = judge.run_on(engine_name, drained(config(), log("p0", 1, key=key))).table
    assert [p.id for p in found] == [expected]


@pytest.mark.law("E5")
def test_required_identity_of_no_key_and_of_two(engine_name: str) -> None:
    none = replace(config(key=()), pipeline="p")
    logs = [("p0", (Row("p0", 0, -1, (), (None,)),))]
    found = judge.run_on(engine_name, drained(none, *logs)).table
    assert [(p.id, p.start_ms) for p in found] == [("5fa4cfa9b2876cd44015d94d83deda0e", -10)]
    two = config(key=("k", "j"), pipeline="flights")
    logs = [("p0", (Row("p0", 0, 12, ("a", 1), (None,)),))]
    found = judge.run_on(engine_name, drained(two, *logs)).table
    assert [p.id for p in found] == ["ee2969b16da17fe34023ce36d963053f"]


@pytest.mark.law("E5")
def test_required_identities_do_not_run_into_each_other(engine_name: str) -> None:
    """("ab", "") and ("a", "b"), a text and its bytes, a null and an empty text."""
    two = config(key=("k", "j"))
    keys = [("ab", ""), ("a", "b"), ("", "ab"), (None, "ab"), ("ab", None), (None, None)]
    rows = tuple(Row("p0", i, 1, key, (None,)) for i, key in enumerate(keys))
    found = judge.run_on(engine_name, drained(two, ("p0", rows))).table
    assert len({p.id for p in found}) == len(found) == len(keys)


@pytest.mark.law("E5")
def test_required_the_version_is_the_epoch(engine_name: str) -> None:
    outcome = story(UPDATE, engine_name)
    assert all(p.version == e.epoch for e in outcome.epochs for p in e.outbox)
    assert {p.start_ms: p.version for p in outcome.table} == {0: 2, 10: 3, 20: 3}
