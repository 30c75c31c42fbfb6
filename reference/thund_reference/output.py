"""What an epoch shows of a process: the rows of its output mode, tombstones, and panes.

It changes nothing but the memory of the panes shown.
"""

from __future__ import annotations

from dataclasses import replace

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
from thund_reference.operators import Operator
from thund_reference.process import Process
from thund_reference.windows import Group, Partials


def outbox(process: Process, version: int) -> tuple[list[Put | Delete], list[Unfit], list[Pane]]:
    """Rows under their identity and version, values that do not fit, panes. Law: E1, E2, E3, E5, E6, G4."""
    out: list[Put | Delete] = []
    unfit, lane = list[Unfit](), list[Pane]()
    for operator in process.operators:
        config, groups = operator.config, emitted(operator)
        for (key, (start, end)), partials in groups.items():
            identity = windows.identity(config, (key, start))
            values, lost = shown(config, partials)
            out.append(Put(identity, version, key, start, end, values))
            unfit += [Unfit(identity, name, exact) for name, exact in lost]
        gone = () if config.output == APPEND else operator.taken
        out += [Delete(windows.identity(config, name), version) for name in gone]
        lane += panes(operator, groups, process.watermark)
    return (
        sorted(out, key=lambda row: row.id),
        sorted(unfit, key=lambda u: (u.id, u.aggregate)),
        sorted(lane, key=lambda pane: (pane.id, pane.number, not pane.retraction)),
    )


def emitted(operator: Operator) -> dict[Group, Partials]:
    """The groups whose rows this epoch shows, by output mode. Law: E1, E2, E3, E4, F4."""
    if operator.config.output == APPEND:
        return operator.closed
    if operator.config.output == UPDATE:
        groups = operator.open_groups() | operator.closed
        return {group: p for group, p in groups.items() if group in operator.touched}
    operator.results = {**operator.results, **operator.closed}
    return {**operator.results, **operator.open_groups()}


def shown(config: Config, partials: Partials) -> tuple[tuple[object, ...], list[tuple[str, str]]]:
    """One value per aggregate, and the exact text of those that do not fit. Law: G4."""
    values, lost = [], []
    for aggregate, partial in zip(config.aggregates, partials, strict=True):
        value, exact = accumulators.shown(aggregate.operation, partial)
        values.append(value)
        if exact is not None:
            lost.append((aggregate.name, exact))
    return tuple(values), lost


def panes(operator: Operator, groups: dict[Group, Partials], watermark: int) -> list[Pane]:
    """The epoch's rows for an append-only sink; what a pane replaces is taken back first. Law: E6."""
    config, out = operator.config, list[Pane]()
    if not config.panes:
        return out
    for name in operator.taken:
        out.append(taken_back(operator.panes.pop(name)))
    for (key, (start, end)), partials in groups.items():
        before = operator.panes.get((key, start))
        if before and config.panes == RETRACTING:
            out.append(taken_back(before))
        first = before is None or before.timing == EARLY
        timing = EARLY if watermark < end else ON_TIME if first else LATE
        own = operator.fresh[key, (start, end)] if config.panes == DISCARDING else partials
        identity = windows.identity(config, (key, start))
        number, values = before.number + 1 if before else 0, shown(config, own)[0]
        pane = Pane(identity, number, timing, False, key, start, end, values)
        operator.panes[key, start] = pane
        out.append(pane)
    still_open = {(key, span[0]) for key, span in operator.open_groups()}
    operator.panes = {name: pane for name, pane in operator.panes.items() if name in still_open}
    return out


def taken_back(pane: Pane) -> Pane:
    """The retraction of a pane. Law: E6."""
    return replace(pane, retraction=True)
