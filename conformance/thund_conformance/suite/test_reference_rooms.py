"""Faces of the reference that no scenario reaches, against the implementation or against the law."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from thund.connectors.stream import ONLY, with_stream_input
from thund_conformance import judge, link
from thund_conformance.engines.thund import ThundWorld
from thund_conformance.scripts import PLAIN, log, scenario
from thund_contract.scenario import Barrier, Deliver
from thund_contract.vocabulary import NONE_BEFORE
from thund_reference import checkpoint, source
from thund_reference.pipeline import World

EPOCHS = 6


def six_epochs(engine: str) -> object:
    """The world that six epochs of one row leave."""
    steps = [step for _ in range(EPOCHS) for step in (Deliver("a", 1), Barrier())]
    written = scenario(PLAIN, [log("a", *range(EPOCHS))], *steps)
    driven = link.Link(judge.maker(engine, written), written)
    driven.take_all(written.steps)
    return driven.world


@pytest.mark.law("K9")
@pytest.mark.parametrize("keep", [1, 2, EPOCHS])
@pytest.mark.parametrize("applied", [{}, {"s": EPOCHS}, {"fast": EPOCHS, "slow": 3}])
def test_required_both_collect_the_same_files(keep: int, applied: dict[str, int]) -> None:
    theirs = cast("ThundWorld", six_epochs("thund"))
    store = theirs.checkpoints(theirs.config, lambda name, epoch: None)
    store.recover()
    removed = {
        (checkpoint.epoch_of(name), "outbox" if "/outbox-" in name else "state")
        for name in store.collect(keep, applied)
    }
    ours = cast("World", six_epochs("reference"))
    mine = {
        (checkpoint.epoch_of(name), "outbox" if "/outbox-" in name else "state")
        for name in checkpoint.collectable(ours.disk, keep, applied)
    }
    assert removed == mine
    assert bool(mine) == (keep < EPOCHS)


@pytest.mark.law("K10")
def test_required_a_power_cut_takes_what_was_not_synced_and_nothing_that_is_committed() -> None:
    world = cast("World", six_epochs("reference"))
    before = world.epochs()
    world.disk.write("epoch=7/state-lost", "half an epoch")
    world.disk.power_cut()
    assert "epoch=7/state-lost" not in world.disk.files
    assert world.epochs() == before


@pytest.mark.law("S1", "S4")
@pytest.mark.parametrize("last", [NONE_BEFORE, 0, 3, 6])
def test_required_both_go_on_after_the_same_row(last: int) -> None:
    batch = pa.record_batch({"t": pa.array(np.arange(7))})
    read = with_stream_input([batch]).read({ONLY: last}, {ONLY: 7}, 7)
    offsets = () if read is None else tuple(read.offset.tolist())
    assert offsets == source.rows_after(range(7), last)


@pytest.mark.law("S4")
def test_required_lost_rows_are_said_and_not_skipped() -> None:
    """Rows 0 to 4 are gone: who knows row 4 goes on, who knows row 3 must not."""
    assert source.rows_after([5, 6], 4, oldest=4) == (5, 6)
    with pytest.raises(LookupError):
        source.rows_after([5, 6], 3, oldest=4)
