"""All window operators of a pipeline as one: the same rows and the same W go to each of them.

A further operator's tables have the names of the first one's, with "-" and its own name behind:
`operator-windows-hourly` in the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thund.batch import Delivery
from thund.epoch import LANES, Shown, table_name
from thund.panes import FreshWindows, Panes
from thund.sessions import Sessions
from thund.windows import Windows
from thund_contract.errors import CallerError
from thund_contract.vocabulary import DISCARDING, SESSION, WINDOW_RULE, Config


def operator_configs(config: Config) -> dict[str, Config]:
    """A pipeline of one window for each operator, by name; the first one's name is "".

    Law: E5.
    Raises: CallerError where the names do not tell them apart, or the late rule is not for several.
    """
    names = [each.name for each in config.more]
    taken = (config.operator, "", *LANES)
    twice = [name for name in names if name in taken or names.count(name) > 1]
    if twice:
        raise _refusal(config, f"a further window named {twice[0]!r}", "names of their own")
    if config.more and config.late_rule == WINDOW_RULE:
        raise _refusal(config, f"late rule {WINDOW_RULE!r} over several windows", "another rule")
    configs = {"": replace(config, more=())}
    for each in config.more:
        configs[each.name] = replace(
            configs[""],
            operator=each.name,
            key=each.key,
            window=each.window,
            aggregates=each.aggregates,
            output=each.output,
            panes=each.panes,
        )
    return configs


@dataclass(frozen=True, slots=True)
class _Operator:
    """One window operator, and its panes where it has them."""

    windows: Windows | Sessions
    panes: Panes | None

    @staticmethod
    def of(config: Config, columns: pa.Schema) -> _Operator:
        """The operator of a configuration. Law: E6, G1, G2, G3, G5."""
        panes = Panes(config, columns) if config.panes else None
        if config.window.kind == SESSION:
            return _Operator(Sessions(config, columns), panes)
        kind = FreshWindows if config.panes == DISCARDING else Windows
        return _Operator(kind(config, columns), panes)

    def show(self, epoch: int, watermark: int) -> tuple[Shown, pa.Table]:
        """What an epoch shows, and its unfit values. Law: E1, E2, E3, E6."""
        rows, unfit = self.windows.emit(epoch)
        if self.panes is None:
            return Shown(rows), unfit
        fresh = self.windows.fresh if isinstance(self.windows, FreshWindows) else rows
        return Shown(rows, self.panes.show(rows, fresh, epoch=epoch, watermark=watermark)), unfit


class Operators:
    """In each epoch: fold and close as rows come, show, snapshot. columns: what they read.

    Law: E5, E6, G4.
    Raises: CallerError, see operator_configs, and for a column that is missing or cannot be used.
    """

    def __init__(self, config: Config, columns: pa.Schema) -> None:
        configs = operator_configs(config)
        self._all = {name: _Operator.of(each, columns) for name, each in configs.items()}

    @property
    def first(self) -> Windows | Sessions:
        """The window of the pipeline itself: the only one under the window rule."""
        return self._all[""].windows

    @property
    def open_groups(self) -> int:
        """How many groups the state holds."""
        return sum(each.windows.open_groups for each in self._all.values())

    def fold(
        self, delivery: Delivery, event_time: NDArray[np.int64], rows: NDArray[np.uint32] | None
    ) -> None:
        """Fold admitted rows into the windows; rows: which, or None for all. Law: G4."""
        for each in self._all.values():
            each.windows.fold(delivery, event_time, rows)

    def close(self, watermark: int) -> None:
        """Windows that W has passed leave the state; what they show waits. Law: F1."""
        for each in self._all.values():
            each.windows.close(watermark)

    def show(self, epoch: int, watermark: int) -> tuple[dict[str, Shown], pa.Table]:
        """What each operator shows of an epoch, by its name, and the unfit values of all.

        watermark: W at the end of the epoch.

        Law: E1, E2, E3, E6.
        """
        shown, unfit = {}, []
        for name, each in self._all.items():
            shown[name], values = each.show(epoch, watermark)
            unfit.append(values)
        return shown, pa.concat_tables(unfit)

    def snapshot(self) -> dict[str, pa.Table]:
        """The state after `show`, as windows.py, sessions.py and panes.py describe it. Law: F3."""
        return {
            table_name(name, operator): table
            for operator, each in self._all.items()
            for room in (each.windows, each.panes)
            if room
            for name, table in room.snapshot().items()
        }

    def restore(self, tables: Mapping[str, pa.Table], watermark: int) -> None:
        """Take over a snapshot, made when W stood there."""
        for operator, each in self._all.items():
            suffix = table_name("", operator)
            own = {
                name.removesuffix(suffix): table
                for name, table in tables.items()
                if name.endswith(suffix)
            }
            each.windows.restore(own, watermark)
            if each.panes:
                each.panes.restore(own)


def _refusal(config: Config, found: str, allowed: str) -> CallerError:
    return CallerError(
        found,
        allowed=f"for several windows of one pipeline: {allowed}",
        where=f"pipeline {config.pipeline!r}",
        action="change it, or make two pipelines of it",
    )
