"""What an epoch shows of a process: the rows of its output mode, tombstones, and panes.

It changes nothing but the memory of the panes shown.
"""

from __future__ import annotations

from thund_contract.vocabulary import (
    APPEND,
    DISCARDING,
    EARLY,
    LATE,
    ON_TIME,
    RETRACTING,
    UPDATE,
    Config,
    Delete,
    Pane,
    Put,
    Unfit,
)
from thund_reference import accumulators, windows
from thund_reference.process import Process
from thund_reference.windows import Group, Partials


def outbox(process: Process, version: int) -> tuple[list[Put | Delete], list[Unfit], list[Pane]]:
    """Rows under their identity and version, values that do not fit, panes. Law: E1, E2, E3, E5, E6, G4."""
    config = process.config
    out: list[Put | Delete] = []
    unfit = []
    for group, partials in emitted(process).items():
        key, (start, end) = group
        identity = windows.identity(config, (key, start))
        values, lost = shown(config, partials)
        out.append(Put(identity, version, key, start, end, values))
        unfit += [Unfit(identity, name, exact) for name, exact in lost]
    gone = [] if config.output == APPEND else sorted(process.taken, key=repr)
    out += [Delete(windows.identity(config, name), version) for name in gone]
    return (
        sorted(out, key=lambda row: row.id),
        sorted(unfit, key=lambda u: (u.id, u.aggregate)),
        panes(process),
    )


def emitted(process: Process) -> dict[Group, Partials]:
    """The groups whose rows this epoch shows, by output mode. Law: E1, E2, E3, E4, F4."""
    if process.config.output == APPEND:
        return process.closed
    if process.config.output == UPDATE:
        groups = process.open_groups() | process.closed
        return {group: p for group, p in groups.items() if group in process.touched}
    process.results = {**process.results, **process.closed}
    return {**process.results, **process.open_groups()}


def shown(config: Config, partials: Partials) -> tuple[tuple[object, ...], list[tuple[str, str]]]:
    """One value per aggregate, and the exact text of those that do not fit. Law: G4."""
    values, lost = [], []
    for aggregate, partial in zip(config.aggregates, partials, strict=True):
        value, exact = accumulators.shown(aggregate.operation, partial)
        values.append(value)
        if exact is not None:
            lost.append((aggregate.name, exact))
    return tuple(values), lost


def panes(process: Process) -> list[Pane]:
    """The epoch's rows for an append-only sink; what a pane replaces is taken back first. Law: E6."""
    config, out = process.config, list[Pane]()
    if not config.panes:
        return out
    for name in process.taken:
        out.append(taken_back(process.panes.pop(name)))
    for (key, (start, end)), partials in emitted(process).items():
        before = process.panes.get((key, start))
        if before and config.panes == RETRACTING:
            out.append(taken_back(before))
        first = before is None or before.timing == EARLY
        timing = EARLY if process.watermark < end else ON_TIME if first else LATE
        own = process.fresh[key, (start, end)] if config.panes == DISCARDING else partials
        identity, number = (
            windows.identity(config, (key, start)),
            before.number + 1 if before else 0,
        )
        pane = Pane(identity, number, timing, False, key, start, end, shown(config, own)[0])
        process.panes[key, start] = pane
        out.append(pane)
    still_open = {(key, span[0]) for key, span in process.open_groups()}
    process.panes = {name: pane for name, pane in process.panes.items() if name in still_open}
    return sorted(out, key=lambda pane: (pane.id, pane.number, not pane.retraction))


def taken_back(pane: Pane) -> Pane:
    """The retraction of a pane. Law: E6."""
    return Pane(
        pane.id,
        pane.number,
        pane.timing,
        True,
        *(pane.key, pane.start_ms, pane.end_ms),
        pane.values,
    )
