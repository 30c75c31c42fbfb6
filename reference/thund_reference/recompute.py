"""The answer from the whole log at once: what the default mode means, and what the rest must equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from thund_contract.vocabulary import Config, Put, Row
from thund_reference import output, source
from thund_reference.process import Process
from thund_reference.sink import Sink


def recompute(
    config: Config,
    logs: Mapping[str, Sequence[Row]],
    *,
    chunk: int,
    now: Callable[[], int],
    drain: bool,
) -> Process:
    """Every row from offset 0 in the source's order, in one epoch, under one clock reading. Law: R2, S5, T2."""
    process = Process(config, now)
    for partition in sorted(logs):
        process.add(partition)
    rows = {(row.partition, row.offset): row for log in logs.values() for row in log}
    offsets = {name: [row.offset for row in log] for name, log in logs.items()}
    for partition, offset in source.delivery_order(offsets, chunk):
        prev = process.sequencers[partition].last
        for row in process.deliver(rows[partition, offset], prev):
            process.accept(row)
    process.end_epoch()
    if drain:
        process.drain()
    return process


def trigger(
    config: Config,
    sink: Sink,
    logs: Callable[[], Mapping[str, Sequence[Row]]],
    *,
    chunk: int,
    now: Callable[[], int],
    drain: bool,
) -> tuple[Put, ...]:
    """Read the sink's record first, then the rows; beaten to it, compute again. Law: R2."""
    while True:
        read = sink.record
        process = recompute(config, logs(), chunk=chunk, now=now, drain=drain)
        shown, *_ = output.outbox(process, (read.last if read else 0) + 1)
        rows = [row for row in shown if isinstance(row, Put)]  # nothing was shown before
        if sink.replace(config.pipeline, read, rows):
            return tuple(rows)
