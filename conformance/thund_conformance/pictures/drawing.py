"""Stories as SVG: event time from left to right, the order of processing from top to bottom."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from thund_conformance.pictures import notes, svg
from thund_conformance.pictures.story import (
    DEATH,
    DRAIN,
    INVALID,
    START,
    VERDICTS,
    Bar,
    Moment,
    Story,
)
from thund_conformance.words import literal
from thund_contract.vocabulary import END, HOPPING, NEVER

WIDTH, MARGIN, SLOT, GAP, LINE = 800, 16, 24, 8, 15
HEAD, TICKS, PANEL_GAP = 30, 34, 14


@dataclass(frozen=True, slots=True)
class Panel:
    """One story, and what stands above it."""

    title: str
    story: Story


@dataclass(frozen=True, slots=True)
class Plot:
    """Where a panel stands, and how its time becomes a place."""

    left: float
    right: float
    first_ms: float
    last_ms: float

    def x(self, time_ms: int) -> float:
        """The place of an event time, or of W; its bounds stand at the edges."""
        if time_ms in (NEVER, END):
            return self.left if time_ms == NEVER else self.right
        share = (time_ms - self.first_ms) / (self.last_ms - self.first_ms)
        return self.left + share * (self.right - self.left)


@dataclass(frozen=True, slots=True)
class Rows:
    """The top and the bottom of each moment and of each band, and of the whole plot."""

    tops: tuple[float, ...]
    bands: tuple[tuple[float, float], ...]
    bottom: float

    def end(self, index: int) -> float:
        """The bottom of a moment."""
        return self.tops[index] + SLOT


def draw(title: str, panels: Sequence[Panel], *, with_notes: bool = True) -> str:
    """One picture. Panels share their moments: the same rows under other rules.

    with_notes: what each epoch shows, beside it; for one panel only.
    """
    stories = [panel.story for panel in panels]
    first = stories[0]
    shown = [notes.of_band(first, band) for band in first.bands] if with_notes else []
    labels = _labels(stories)
    label_width = max(map(svg.room, labels)) + 12
    note_width = max([svg.room(line) for lines in shown for line in lines], default=-24) + 24
    hops = any(story.scenario.config.window.kind == HOPPING for story in stories)
    places = _places(first, shown, extra=1 if hops else 0)
    plots = _plots(stories, MARGIN + label_width, WIDTH - MARGIN - note_width)
    body = [_bands(first, places, plots), *_left(first, labels, places)]
    for panel, plot in zip(panels, plots, strict=True):
        assert len(panel.story.moments) == len(first.moments), "panels share their moments"
        own_values = labels != [moment.label for moment in panel.story.moments]
        body += _panel(panel, plot, places, with_values=own_values)
    for (top, _), lines in zip(places.bands, shown, strict=with_notes):
        body += _note(WIDTH - MARGIN - note_width + 14, top, lines)
    legend, height = _legend(stories, places.bottom + 26)
    return _document(title, _words(title, panels), [*body, *legend], height)


def _document(title: str, words: str, body: Iterable[str], height: float) -> str:
    head = [
        element_title(title),
        svg.element("desc", html.escape(words, quote=False), id="words"),
        svg.style(),
        svg.rect(0, 0, WIDTH, height, "f-page", rx=8),
        svg.text(MARGIN, 24, title, class_="f-ink bold"),
    ]
    inside = "\n".join([*head, *(part for part in body if part)])
    return (
        svg.element(
            "svg",
            f"\n{inside}\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {math.ceil(height)}",
            width=WIDTH,
            height=math.ceil(height),
            role="img",
            aria_labelledby="title words",
        )
        + "\n"
    )


def element_title(title: str) -> str:
    """What a screen reader says first."""
    return svg.element("title", html.escape(title, quote=False), id="title")


# ---- places ------------------------------------------------------------------------------------


def _places(story: Story, shown: Sequence[Sequence[str]], *, extra: int) -> Rows:
    """Moments below each other; an epoch is as high as its rows, or as its note if that is more."""
    tops = [0.0] * len(story.moments)
    bands = []
    y, at = float(HEAD + TICKS + LINE), 0
    heights = dict(zip([b.first for b in story.bands], map(len, shown), strict=False))
    ends = {band.first: band.end for band in story.bands}
    while at < len(story.moments):
        start, end = y, ends.get(at, at + 1)
        for index in range(at, end):
            tops[index], y = y, y + SLOT
        if at in ends:
            y = max(y, start + LINE * heights.get(at, 0) + 6)
            bands.append((start, y))
        y, at = y + GAP, end
    lines = len({row.key for _, log in story.scenario.logs for row in log})
    more = LINE * (lines + extra) if story.moments[-1].kind == DRAIN else 0
    return Rows(tuple(tops), tuple(bands), y + more)


def _plots(stories: Sequence[Story], left: float, right: float) -> list[Plot]:
    """Side by side, with one range of time for all."""
    width = (right - left - PANEL_GAP * (len(stories) - 1)) / len(stories)
    times = [time for story in stories for moment in story.moments for time in _times(moment)]
    pad = max((max(times) - min(times)) * 0.05, 1)
    starts = [left + index * (width + PANEL_GAP) for index in range(len(stories))]
    return [Plot(start, start + width, min(times) - pad, max(times) + pad) for start in starts]


def _times(moment: Moment) -> Iterator[int]:
    """What has to find its place along the axis."""
    for bar in moment.open:
        yield from (bar.start_ms, bar.end_ms)
    yield from (w for w in (moment.before, moment.after) if w not in (NEVER, END))
    if moment.row is not None and moment.verdict != INVALID:
        assert isinstance(moment.row.event_time, int)
        yield moment.row.event_time


# ---- parts -------------------------------------------------------------------------------------


def _bands(story: Story, places: Rows, plots: Sequence[Plot]) -> str:
    parts = []
    for band, (top, bottom) in zip(story.bands, places.bands, strict=True):
        class_ = "f-band" if band.record else "f-lostband"
        parts.append(svg.rect(MARGIN / 2, top, WIDTH - MARGIN, bottom - top, class_, rx=5))
    return "\n".join(parts)


def _labels(stories: Sequence[Story]) -> list[str]:
    """What stands beside each moment: its own words, where they are the same in all panels."""
    words = list(zip(*([m.label for m in story.moments] for story in stories), strict=True))
    return [each[0] if len(set(each)) == 1 else f"row {n}" for n, each in enumerate(words, start=1)]


def _left(story: Story, labels: Sequence[str], places: Rows) -> list[str]:
    parts = []
    for moment, label, top in zip(story.moments, labels, places.tops, strict=True):
        class_ = {DEATH: "f-death", START: "f-death"}.get(moment.kind, "f-ink")
        class_ = "f-soft" if moment.lost else class_
        parts.append(svg.text(MARGIN, top + SLOT / 2 + 4, label, class_=class_))
    return parts


def _note(x: float, top: float, lines: Sequence[str]) -> list[str]:
    first = [svg.text(x, top + LINE, lines[0], class_="f-ink bold")]
    rest = enumerate(lines[1:], start=2)
    return first + [svg.text(x, top + LINE * n, line, class_="f-soft") for n, line in rest]


def _panel(panel: Panel, plot: Plot, places: Rows, *, with_values: bool) -> list[str]:
    story = panel.story
    parts = _axis(panel.title, plot, places)
    parts += _windows(story, plot, places)
    parts += _deaths(story, plot, places)
    parts += _watermark(story, plot, places)
    for moment, top in zip(story.moments, places.tops, strict=True):
        if moment.row is not None:
            time = moment.row.event_time
            x = plot.left + 8
            if moment.verdict != INVALID and isinstance(time, int):
                x = plot.x(time)
            parts.append(svg.mark(moment.verdict, x, top + SLOT / 2, lost=moment.lost))
            if with_values:
                value = literal(moment.row.values[0]).replace("-", "−")
                parts.append(svg.text(x + 9, top + SLOT / 2 + 4, value))
    return parts


def _axis(title: str, plot: Plot, places: Rows) -> list[str]:
    top = HEAD + TICKS
    parts = [svg.text((plot.left + plot.right) / 2, HEAD + 14, title, anchor="middle")]
    for time in _ticks(plot):
        x = plot.x(time)
        parts.append(svg.line(x, top + 4, x, places.bottom, "s-line"))
        parts.append(svg.text(x, top, notes.number(time), class_="f-soft", anchor="middle"))
    return parts


def _ticks(plot: Plot) -> list[int]:
    room = (plot.right - plot.left) / 38
    span = plot.last_ms - plot.first_ms
    steps = [base * 10**power for power in range(12) for base in (1, 2, 5)]
    step = next(step for step in steps if span / step <= room)
    return list(range(math.ceil(plot.first_ms / step) * step, math.floor(plot.last_ms) + 1, step))


CLOSED, JOINED, LOST, OPEN = "closed", "joined", "lost", "open"


def _windows(story: Story, plot: Plot, places: Rows) -> list[str]:
    """A window's life as a bar, from the row that opens it to its closing, and its result below."""
    parts: list[str] = []
    taken: list[tuple[float, float]] = []
    for bar, begin, end, how in _lives(story):
        top = places.tops[begin]
        bottom = places.bottom if how == OPEN else places.tops[end]
        bottom = places.end(end) if how == CLOSED else bottom
        left, right = plot.x(bar.start_ms) + 1, plot.x(bar.end_ms) - 1
        parts.append(svg.rect(left, top, right - left, bottom - top, "f-window", opacity=0.13))
        edge = {"stroke_width": 1, "opacity": 0.7}
        parts += [svg.line(x, top, x, bottom, "s-window", **edge) for x in (left, right)]
        if how == CLOSED:
            y = bottom + 2
            parts.append(svg.line(left, y, right, y, "s-window", stroke_width=3))
            for words in notes.results(story, bar):
                parts.append(_result(words, (left + right) / 2, y + 13, taken))
        if how == LOST:
            parts.append(svg.line(left, bottom, right, bottom, "s-death", stroke_dasharray="3 3"))
    return parts


def _result(words: str, x: float, y: float, taken: list[tuple[float, float]]) -> str:
    """A result below its window, and below those that stand there."""
    width = svg.room(words) + 8
    while any(abs(x - other_x) < width and abs(y - other_y) < 13 for other_x, other_y in taken):
        y += 13
    taken.append((x, y))
    return svg.text(x, y, words, anchor="middle")


def _lives(story: Story) -> list[tuple[Bar, int, int, str]]:
    """Each bar with the moments at which it appears and goes, and how it goes."""
    lives: list[tuple[Bar, int, int, str]] = []
    begun: dict[Bar, int] = {}
    grace = story.scenario.config.grace_ms
    for index, moment in enumerate(story.moments):
        for bar in sorted(set(begun) - moment.open):
            how = CLOSED if moment.after >= bar.end_ms + grace else JOINED
            how = LOST if moment.kind == DEATH else how
            lives.append((bar, begun.pop(bar), index, how))
        begun |= dict.fromkeys(sorted(moment.open - set(begun)), index)
    last = len(story.moments) - 1
    return lives + [(bar, index, last, OPEN) for bar, index in begun.items()]


def _watermark(story: Story, plot: Plot, places: Rows) -> list[str]:
    """W before each row at the height of the row; its move below that, in a line for each life."""
    lines: list[list[tuple[float, float]]] = [[]]
    for index, moment in enumerate(story.moments):
        top = places.tops[index]
        if moment.kind == DEATH:
            lines[-1].append(
                (plot.x(moment.before), top) if not lines[-1] else (lines[-1][-1][0], top)
            )
            lines.append([])
            continue
        bottom = places.end(index)
        if moment.kind == START:
            lines[-1] = [(plot.x(moment.after), top)]
        lines[-1] += (
            [(plot.x(moment.before), y) for y in (top, bottom)] if moment.kind != START else []
        )
        lines[-1].append((plot.x(moment.after), bottom))
    if lines[-1]:
        lines[-1].append((lines[-1][-1][0], places.bottom))
    return [svg.path(points, "s-water", stroke_width=2) for points in lines if points]


def _deaths(story: Story, plot: Plot, places: Rows) -> list[str]:
    parts = []
    for moment, top in zip(story.moments, places.tops, strict=True):
        if moment.kind == DEATH:
            y = top + SLOT / 2
            more = {"stroke_width": 2, "stroke_dasharray": "7 4"}
            parts.append(svg.line(plot.left, y, plot.right, y, "s-death", **more))
    return parts


# ---- words -------------------------------------------------------------------------------------


def _legend(stories: Sequence[Story], y: float) -> tuple[list[str], float]:
    """The signs that the picture has, in one line or more."""
    moments = [moment for story in stories for moment in story.moments]
    verdicts = [v for v in VERDICTS if any(m.verdict == v for m in moments)]
    signs: list[tuple[str, str]] = [(v, v) for v in verdicts]
    signs += [("water", "watermark W"), ("window", "open window, its result below")]
    signs += [("death", "the process dies")] if any(m.kind == DEATH for m in moments) else []
    parts, x = [], float(MARGIN)
    for sign, words in signs:
        if x + 40 + svg.room(words) > WIDTH - MARGIN:
            x, y = float(MARGIN), y + 20
        parts.append(_sign(sign, x + 10, y - 4))
        parts.append(svg.text(x + 24, y, words, class_="f-soft"))
        x += 40 + svg.room(words)
    return parts, y + 14


def _sign(sign: str, x: float, y: float) -> str:
    if sign in VERDICTS:
        return svg.mark(sign, x, y)
    if sign == "water":
        return svg.line(x, y - 7, x, y + 7, "s-water", stroke_width=2)
    if sign == "death":
        return svg.line(x - 10, y, x + 10, y, "s-death", stroke_width=2, stroke_dasharray="7 4")
    box = svg.rect(x - 9, y - 7, 18, 13, "f-window", opacity=0.13)
    return box + svg.line(x - 9, y + 7, x + 9, y + 7, "s-window", stroke_width=3)


def _words(title: str, panels: Sequence[Panel]) -> str:
    """The whole picture for those who hear it."""
    sentences = ["Event time runs from left to right, the order of processing from top to bottom."]
    for panel in panels:
        if len(panels) > 1:
            sentences.append(f"{panel.title}:")
        sentences += [_sentence(moment) for moment in panel.story.moments]
        closed = [bar for bar, _, _, how in _lives(panel.story) if how == CLOSED]
        for bar in sorted(closed):
            span = f"[{bar.start_ms}, {bar.end_ms})"
            results: Mapping[str, None] = dict.fromkeys(notes.results(panel.story, bar))
            sentences.append(f"Window {span} closes with {', '.join(results)}.")
    return " ".join(sentences)


def _sentence(moment: Moment) -> str:
    verdict = f", {moment.verdict}" if moment.verdict else ""
    lost = ", lost" if moment.lost else ""
    return f"{moment.label}{verdict}{lost}; W {notes.watermark(moment.after)}."
