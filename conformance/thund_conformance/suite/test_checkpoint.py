"""The laws of checkpoints: the order of an epoch, its manifest, recovery, fencing and damage."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import cast

import pytest

from thund.history import POINTER_NAME, History, manifest_name
from thund.stores import Data, Store, open_store, probe
from thund_conformance import judge
from thund_conformance.lives import LOG, after, checkpoints, epochs_of, live, story, world
from thund_conformance.scripts import config, counts, log, scenario
from thund_contract.errors import CallerError, Fenced, StoreError
from thund_contract.scenario import (
    AddPartition,
    Barrier,
    Crash,
    Deliver,
    DrainAll,
    RemovePartition,
    Restart,
    Tick,
)
from thund_contract.vocabulary import (
    STEPS,
    Add,
    Clock,
    Drain,
    Remove,
    Rows,
)


@pytest.mark.law("K1")
def test_required_steps_of_an_epoch_have_one_order(engine_name: str) -> None:
    s = story(Deliver("p0", 2), Barrier(), Deliver("p0", 2), Barrier())
    steps = judge.run_on(engine_name, s).steps
    assert steps == tuple(f"{name}:{epoch}" for epoch in (1, 2) for name in STEPS)


@pytest.mark.law("K1")
@pytest.mark.parametrize("step", range(1, len(STEPS) + 1))
def test_required_nothing_leaves_the_engine_before_it_is_committed(
    engine_name: str, step: int
) -> None:
    """Died after each step of the first epoch: committed from the manifest on, shown at the end."""
    s = story(Crash(step), Deliver("p0", 2), Barrier())
    outcome = judge.run_on(engine_name, s)
    committed = STEPS[step - 1] not in ("state", "outbox")
    assert len(outcome.epochs) == committed
    assert len(outcome.table) == (STEPS[step - 1] == "sink")


@pytest.mark.law("K1")
def test_required_credits_and_offsets_come_back_after_the_manifest() -> None:
    """What the source is told, and when: only what is committed."""
    s = story(Crash(4), Deliver("p0", 2), Barrier(), Restart(), Deliver("p0", 1), Barrier())
    at = after(s)
    source = at.engine.source  # type: ignore[attr-defined]
    assert source.committed == {"p0": 2}


@pytest.mark.law("K1")
def test_required_names_of_files_carry_the_writer() -> None:
    """A process that died before the manifest leaves files; the next one writes beside them."""
    at = after(story(Crash(2), Deliver("p0", 2), Barrier(), Restart(), Deliver("p0", 2), Barrier()))
    store = world(at).store
    files = {entry.name for entry in History(store).manifest(1).files}
    assert all("life-2" in name for name in files)
    assert files < set(store.list("epoch=1"))
    assert any("life-1" in name for name in store.list("epoch=1"))


@pytest.mark.law("K2")
@pytest.mark.parametrize("step", [1, 2])
def test_required_a_folder_without_a_manifest_is_no_epoch(engine_name: str, step: int) -> None:
    """Its rows come again, and epoch 1 is made anew."""
    s = story(Crash(step), Deliver("p0", 2), Barrier(), Restart(), Deliver("p0", 1), Barrier())
    outcome = judge.run_on(engine_name, s)
    assert [e.epoch for e in outcome.epochs] == [1]
    assert outcome.epochs[0].items == (Add("p0"), Rows("p0", 0, 0, 1))


class LostAnswer:
    """A store whose put-if-absent happens, but whose answer is lost: the retry finds the file."""

    def __init__(self, store: Store) -> None:
        self._store, self.lose = store, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def put_if_absent(self, name: str, data: Data) -> bool:
        done = self._store.put_if_absent(name, data)
        return done and not (self.lose and name.startswith("epoch="))


@pytest.mark.law("K2")
def test_required_ones_own_manifest_is_recognised_after_a_lost_answer() -> None:
    at = after(story(Deliver("p0", 2)))
    own = world(at)
    store = LostAnswer(own.store)
    store.lose = True
    at.alive.position("p0")
    at.alive._engine.checkpoints.store = store  # type: ignore[attr-defined]
    at.alive.commit()
    assert [e.epoch for e in own.epochs()] == [1]
    assert counts(own.table()) == {("a", 0): 1}


@pytest.mark.law("K3")
def test_required_the_manifest_has_every_item_in_order(engine_name: str) -> None:
    """Clock first, ticks between rows, one range per unbroken run, changes, the drain."""
    logs = [log("p0", 1, 2, 3), log("p1", 1, 2)]
    s = scenario(
        config(max_future_ms=100), logs, Deliver("p0", 1), Deliver("p0", 1), Deliver("p1", 1),
        Tick(5), Deliver("p1", 1), RemovePartition("p1"), Deliver("p0", 1), Barrier(), Tick(2),
        AddPartition("p1"), DrainAll(), assigned=["p0", "p1"],
    )  # fmt: skip
    items = [e.items for e in judge.run_on(engine_name, s).epochs]
    assert items == [
        (
            Clock(0), Add("p0"), Add("p1"), Rows("p0", 0, 1, 2), Rows("p1", 0, 0, 1), Clock(5),
            Rows("p1", 1, 1, 1), Remove("p1"), Rows("p0", 2, 2, 1),
        ),
        (Clock(7), Add("p1"), Drain()),
    ]  # fmt: skip


@pytest.mark.law("K3")
def test_required_ranges_name_offsets_and_count_rows(engine_name: str) -> None:
    from thund_conformance.scripts import row

    part = ("p0", (row("p0", 3, 1), row("p0", 8, 2), row("p0", 9, 3)))
    s = scenario(config(), [part], Deliver("p0", 3), Barrier())
    assert judge.run_on(engine_name, s).epochs[0].items == (Add("p0"), Rows("p0", 3, 9, 3))


@pytest.mark.law("K3")
def test_required_the_manifest_describes_each_file() -> None:
    """Size, rows and checksum of every file, W, partitions, and the configuration."""
    at = after(story(Deliver("p0", 3), Barrier()))
    manifest = History(world(at).store).manifest(1)
    tables = {entry.table: entry for entry in manifest.files}
    assert {"operator-windows", "outbox-rows"} <= set(tables)
    assert tables["outbox-rows"].rows == 2
    assert all(len(world(at).store.get(e.name)) == e.size for e in manifest.files)
    assert (manifest.watermark, manifest.positions) == (23, {"p0": 2})
    window = {"size_ms": 10, "offset_ms": 0, "kind": "tumbling"}
    assert window.items() <= manifest.config["window"].items()


@pytest.mark.law("K4")
def test_required_recovery_does_not_trust_the_pointer() -> None:
    """The pointer names epoch 1, or nothing that can be read; the highest manifest is 2."""
    at = after(story(Deliver("p0", 2), Barrier(), Deliver("p0", 1), Barrier()))
    for text in (b'{"epoch":1,"nonce":"life-1"}', b"no pointer at all", None):
        if text is None:
            world(at).store.delete(POINTER_NAME)
        else:
            world(at).store.put(POINTER_NAME, text)
        assert live(at).position("p0") == 2


@pytest.mark.law("K4")
def test_required_epochs_are_compared_as_numbers(engine_name: str) -> None:
    """Ten epochs and more: 10 is above 9."""
    times = range(1, 120, 10)
    steps = [step for _ in times for step in (Deliver("p0", 1), Barrier())]
    s = scenario(config(), [log("p0", *times)], *steps, Restart(), DrainAll())
    outcome = judge.run_on(engine_name, s)
    assert [e.epoch for e in outcome.epochs] == list(range(1, 14))
    assert outcome.epochs[-1].partitions[0].accepted == 12


@pytest.mark.law("K4")
def test_required_a_folder_with_a_high_number_but_no_manifest_is_passed_over() -> None:
    at = after(story(Deliver("p0", 2), Barrier()))
    world(at).store.put("epoch=7/outbox-rows-x.parquet", b"left behind")
    assert live(at).position("p0") == 1


@pytest.mark.law("K6")
@pytest.mark.law("T4")
def test_required_a_zombie_stops_and_leaves_nothing(engine_name: str) -> None:
    """Both stand before epoch 2. The second one commits it; the first one must not."""
    at = after(story(Deliver("p0", 2), Barrier()), engine_name)
    zombie, other = at.alive, live(at)
    other.send("p0", 1)
    other.deliver(LOG[1][2], 1)
    other.commit()
    before = at.world.epochs(), at.world.table()
    zombie.send("p0", 3)
    for index in (2, 3, 4):
        zombie.deliver(LOG[1][index], index - 1)
    with pytest.raises(Fenced):
        zombie.commit()
    assert (at.world.epochs(), at.world.table()) == before
    assert other.position("p0") == 2


@pytest.mark.law("K6")
@pytest.mark.law("T4")
def test_required_a_loser_does_not_touch_the_files_of_the_winner(engine_name: str) -> None:
    """Both have the same number and the same rows; recovery reads the winner's epoch whole."""
    at = after(story(Deliver("p0", 1), Barrier()), engine_name)
    loser, winner = at.alive, live(at)
    for life in (winner, loser):
        life.send("p0", 1)
        life.deliver(LOG[1][1], 0)
    winner.commit()
    with pytest.raises(Fenced):
        loser.commit()
    assert live(at).position("p0") == 1
    assert counts(at.world.table()) == {("a", 0): 1}


@pytest.mark.law("K6")
def test_required_a_store_that_creates_twice_is_refused() -> None:
    class Twice(LostAnswer):
        def put_if_absent(self, name: str, data: Data) -> bool:
            self._store.put(name, data)
            return True

    with pytest.raises(StoreError) as error:
        probe(cast("Store", Twice(open_store("memory://"))), "x")
    assert error.value.code == "no_put_if_absent"


def damage(store: Store, name: str, how: str) -> None:
    data = bytes(store.get(name))
    if how == "missing":
        store.delete(name)
    elif how == "short":
        store.put(name, data[:-1])
    else:
        store.put(
            name,
            data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
        )


@pytest.mark.law("K7")
@pytest.mark.parametrize(
    ("table", "how"),
    [
        *product(["operator-windows", "outbox-rows"], ["missing", "short", "flipped"]),
        ("manifest", "short"),
        ("manifest", "flipped"),
    ],
)
def test_required_damage_is_found_and_named_and_never_stepped_over(table: str, how: str) -> None:
    """Epoch 1 is whole, epoch 2 is damaged: recovery stops, it does not go back to 1."""
    at = after(story(Deliver("p0", 2), Barrier(), Deliver("p0", 1), Barrier()))
    store = world(at).store
    files = {entry.table: entry.name for entry in History(store).manifest(2).files}
    name = files.get(table, manifest_name(2))
    damage(store, name, how)
    with pytest.raises(StoreError) as error:
        live(at)
    assert name.rpartition("/")[2] in str(error.value)
    assert error.value.action


@pytest.mark.law("K8")
@pytest.mark.parametrize(
    "changes",
    [
        {"size": 20},
        {"offset": 1},
        {"delay_ms": 1},
        {"grace_ms": 1},
        {"late_rule": "window"},
        {"watermark_update": "epoch"},
        {"output": "update"},
        {"max_future_ms": 5},
        {"late_lane": False},
        {"key": ()},
        {"event_time": "other"},
        {"operator": "other"},
        {"pipeline": "other"},
        {"aggregates": ()},
    ],
)
def test_required_another_configuration_is_refused(
    engine_name: str, changes: dict[str, object]
) -> None:
    at = after(story(Deliver("p0", 2), Barrier()), engine_name)
    with pytest.raises(CallerError) as error:
        live(at, config(**dict(changes)))
    named = {"size": "size", "offset": "offset"}.get(next(iter(changes)), next(iter(changes)))
    assert named in str(error.value) or "window" in str(error.value)


@pytest.mark.law("K8")
def test_required_the_credit_window_may_change(engine_name: str) -> None:
    at = after(story(Deliver("p0", 2), Barrier()), engine_name)
    assert live(at, replace(at.config, credits=3)).credit("p0") == 3


@pytest.mark.law("K9")
def test_required_collection_never_takes_a_manifest_or_what_is_needed() -> None:
    """Of 6 epochs the newest 2 stay whole, and every outbox that the slower sink lacks."""
    at = epochs_of(6)
    store = world(at).store
    store.put("epoch=2/outbox-rows-dead.parquet", b"of a process that died")
    store.put("epoch=7/outbox-rows-running.parquet", b"of a process that runs")
    own = checkpoints(store, at.config, "collector")
    own.recover()
    gone = own.collect(2, {"fast": 6, "slow": 3})
    kept = {entry.name for n in (5, 6) for entry in History(store).manifest(n).files}
    outbox4 = [e.name for e in History(store).manifest(4).files if e.table.startswith("outbox")]
    assert [n for n in range(1, 7) if store.exists(manifest_name(n))] == [1, 2, 3, 4, 5, 6]
    assert all(store.exists(name) for name in (*kept, *outbox4))
    assert store.exists("epoch=7/outbox-rows-running.parquet")
    assert "epoch=2/outbox-rows-dead.parquet" in gone
    assert [n for n in range(1, 7) if own.has_outbox(n)] == [4, 5, 6]
    assert all("operator-" in name for name in gone if name.startswith("epoch=4/"))
    assert live(at).position("p0") == 5
