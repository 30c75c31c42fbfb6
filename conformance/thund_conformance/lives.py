"""Processes and the worlds they leave, for tests that move them by hand, two at once if need be."""

from __future__ import annotations

from typing import cast

from thund.checkpoint import Checkpoints
from thund.stores import Store
from thund_conformance import engines, judge, link
from thund_conformance.engines.thund import ThundWorld
from thund_conformance.scripts import config, log, scenario
from thund_contract.engine import Life
from thund_contract.scenario import Barrier, Deliver, Scenario, Step
from thund_contract.vocabulary import Config

LOG = log("p0", 1, 12, 23, 34, 45)
"""Each row closes the window of the one before it."""


def story(*steps: Step, config_: Config | None = None) -> Scenario:
    """Steps over LOG."""
    return scenario(config_ or config(), [LOG], *steps)


def after(s: Scenario, name: str = engines.THUND) -> link.Link:
    """The link at the end of a scenario, its world and its life still there."""
    at = link.Link(judge.maker(name, s), s)
    at.take_all(s.steps)
    return at


def world(at: link.Link) -> ThundWorld:
    """The store and the sink of the implementation, with their insides."""
    return cast("ThundWorld", at.world)


def live(at: link.Link, config_: Config | None = None) -> Life:
    """One more process over the same world, whether or not another one runs."""
    return at.engine.live(
        config_ or at.config, at.world, now=lambda: at.clock_ms, durable=lambda name, epoch: None
    )


def checkpoints(store: Store, config_: Config, nonce: str) -> Checkpoints:
    """The store as a process of its own opens it."""
    return Checkpoints(
        store, config=config_, definition={}, nonce=nonce, durable=lambda name, epoch: None
    )


def epochs_of(count: int) -> link.Link:
    """So many epochs of one row each."""
    times = range(1, 10 * count, 10)
    steps = [step for _ in times for step in (Deliver("p0", 1), Barrier())]
    return after(scenario(config(), [log("p0", *times)], *steps))
