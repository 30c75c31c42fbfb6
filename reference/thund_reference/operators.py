"""The memory of one window operator: open groups, what an epoch touched, what was shown.

It is handed rows that are admitted, and W; a pipeline may have several.
"""

from __future__ import annotations

from dataclasses import replace

from thund_contract.vocabulary import DISCARDING, SESSION, Config, Pane, WindowState
from thund_reference import accumulators, windows
from thund_reference.accumulators import Place
from thund_reference.windows import Group, Key, Name, Partials, Span


def configs_of(config: Config) -> tuple[Config, ...]:
    """One configuration per operator, the pipeline's own first. Law: E5."""
    own = (
        replace(
            config,
            operator=one.name,
            key=one.key,
            window=one.window,
            aggregates=one.aggregates,
            output=one.output,
            panes=one.panes,
            more=(),
        )
        for one in config.more
    )
    return (replace(config, more=()), *own)


class Operator:
    """The variables of a window operator, and the steps that change them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.open: dict[Span, dict[Key, Partials]] = {}
        self.results: dict[Group, Partials] = {}
        self.panes: dict[Name, Pane] = {}

    def begin_epoch(self) -> None:
        """Forget what the last epoch showed; every open group was shown. Law: E1, E2."""
        self.closed: dict[Group, Partials] = {}
        self.touched: set[Group] = set()
        self.fresh: dict[Group, Partials] = {}
        self.shown = {(key, span[0]) for span, groups in self.open.items() for key in groups}
        self.taken: set[Name] = set()

    def misses_all(self, key: Key, event_time: int, watermark: int) -> bool:
        """Every window of the row is closed; a session that is open may still take it. Law: A2."""
        config = self.config
        if config.window.kind == SESSION:
            inside = any(start <= event_time < end for start, end in self.sessions(key))
            return not inside and event_time + config.grace_ms < watermark
        spans = windows.spans(config.window, event_time)
        return all(windows.is_closed(end, config.grace_ms, watermark) for _, end in spans)

    def admit(self, key: Key, values: Partials, place: Place, watermark: int) -> int:
        """A row joins its key's open windows; how many it misses. Law: A2, G1, G2, G3, G5."""
        config, key = self.config, windows.canonical_key(key)
        lifted = windows.lift(config.aggregates, values, place)
        spans = windows.spans(config.window, place[0])
        if config.window.kind == SESSION:
            self.join(key, *windows.joined(self.sessions(key), spans[0]), lifted)
            return 0
        still_open = [s for s in spans if not windows.is_closed(s[1], config.grace_ms, watermark)]
        for span in still_open:
            self.add(key, span, lifted)
            if config.panes == DISCARDING:
                before = self.fresh.get((key, span))
                merged = windows.merge(config.aggregates, before, lifted) if before else lifted
                self.fresh[key, span] = merged
        return len(spans) - len(still_open)

    def add(self, key: Key, span: Span, partials: Partials) -> None:
        """Merge partials into an open group, which may be new. Law: G4."""
        groups = self.open.setdefault(span, {})
        before = groups.get(key)
        if before is not None:
            partials = windows.merge(self.config.aggregates, before, partials)
        groups[key] = partials
        self.touched.add((key, span))

    def join(self, key: Key, span: Span, parts: list[Span], partials: Partials) -> None:
        """A row makes one session of all that it overlaps; ids that were shown and go are taken back.

        Law: G3, E2, E3.
        """
        for part in parts:
            groups = self.open[part]
            partials = windows.merge(self.config.aggregates, groups.pop(key), partials)
            if not groups:
                del self.open[part]
            if part[0] != span[0] and (key, part[0]) in self.shown:
                self.taken.add((key, part[0]))
        self.add(key, span, partials)

    def sessions(self, key: Key) -> list[Span]:
        """The open sessions of a key, which never overlap. Law: G3."""
        same = windows.canonical_key(key)
        return [span for span, groups in self.open.items() if same in groups]

    def close(self, watermark: int) -> None:
        """Windows that W has passed leave the state, each once. Law: F1, F2, F3."""
        grace = self.config.grace_ms
        for span in [s for s in self.open if windows.is_closed(s[1], grace, watermark)]:
            groups = {(key, span): partials for key, partials in self.open.pop(span).items()}
            assert not groups.keys() & self.closed.keys()
            self.closed.update(groups)

    def open_groups(self) -> dict[Group, Partials]:
        """The state, one entry per key and window. Law: F3."""
        return {(k, span): p for span, groups in self.open.items() for k, p in groups.items()}

    def window_states(self, name: str) -> tuple[WindowState, ...]:
        """The open groups in normal form. Law: F3."""
        operations = [a.operation for a in self.config.aggregates]
        session = self.config.window.kind == SESSION
        states = []
        for (key, (start, end)), partials in self.open_groups().items():
            normal = tuple(map(accumulators.normal, operations, partials))
            pane = self.panes.get((key, start))
            shown = (pane.number + 1, pane.timing) if pane else (0, "")
            states.append(
                WindowState(key, start, normal, end if session else None, *shown, operator=name)
            )
        return tuple(states)
