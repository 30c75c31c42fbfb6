"""The default mode: the whole answer again at each trigger, by the same laws, without a state.

It keeps nothing between triggers but what the sink knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from thund.pipeline import Core
from thund.sink import Sink, recompute_version
from thund.source import READ_ROWS, Source
from thund_contract.vocabulary import NONE_BEFORE, Config

UNBOUNDED = 2**62
"""Nothing is in flight towards a checkpoint, so credit is no limit here."""


def recompute(
    config: Config,
    source: Source,
    sink: Sink,
    *,
    now: Callable[[], int],
    drain: bool,
    progress: Callable[[Core], None] = lambda core: None,
) -> Core:
    """Read the sink's version, then every row from offset 0, then replace table and lanes.

    Beaten to it by another run, it computes again. One clock reading, no idleness.

    Law: R2, S5, T2.
    Raises: CallerError for the table of another pipeline or of incremental mode.
    """
    while True:
        version = recompute_version(sink, pipeline=config.pipeline)
        core = read_all(config, source, now=now, progress=progress)
        if drain:
            core.drain()
        if sink.replace(core.show(version), pipeline=config.pipeline, version=version):
            return core


def read_all(
    config: Config,
    source: Source,
    *,
    now: Callable[[], int],
    progress: Callable[[Core], None] = lambda core: None,
) -> Core:
    """Every row that is there now, in the source's order, through a fresh core. Law: R2, S5."""
    core = Core(
        dataclasses.replace(config, credits=UNBOUNDED, idle_timeout_ms=0), source.schema, now=now
    )
    sent: dict[str, int] = {}
    while True:
        for name in source.partitions():
            if name not in sent:  # a stream shows a partition with its first row
                core.add(name)
                sent[name] = NONE_BEFORE
        delivery = source.read(sent, dict.fromkeys(sent, UNBOUNDED), READ_ROWS)
        if delivery is None:
            core.end_epoch()
            return core
        for name, (rows, last) in delivery.by_partition().items():
            core.credits.send(name, rows)
            sent[name] = last
        core.deliver(delivery)
        core.advance()
        progress(core)
