"""What stands beside an epoch and below a window, in words."""

from __future__ import annotations

from thund_conformance.pictures.story import Band, Bar, Story
from thund_conformance.words import literal
from thund_contract.vocabulary import END, NEVER, EpochRecord, Pane, Put


def watermark(time_ms: int) -> str:
    """W as a reader knows it."""
    return {NEVER: "−∞", END: "+∞"}.get(time_ms, number(time_ms))


def number(value: int) -> str:
    """With the sign that printers use."""
    return str(value).replace("-", "−")


def of_band(story: Story, band: Band) -> list[str]:
    """An epoch, and what it shows: its panes where there are any, else its outbox."""
    record = band.record
    if record is None:
        return ["lost, and read again"]
    head = f"epoch {record.epoch}, W {watermark(record.watermark)}"
    if story.scenario.config.panes:
        return [head, *(_pane(story, pane) for pane in record.panes)]
    return [head, *_outbox(story, record)]


def results(story: Story, bar: Bar) -> list[str]:
    """The rows of the table for a window, one line per key."""
    rows = [p for p in story.outcome.table if (p.start_ms, p.end_ms) == (bar.start_ms, bar.end_ms)]
    rows = [p for p in rows if not bar.key or _key(p.key) == bar.key]
    ordered = sorted(rows, key=lambda p: _key(p.key))
    return [_result(story, p.key, p.values).removeprefix("= ") for p in ordered]


def _outbox(story: Story, record: EpochRecord) -> list[str]:
    puts = {p.id: p for e in story.outcome.epochs for p in e.outbox if isinstance(p, Put)}
    lines = []
    for entry in sorted(record.outbox, key=lambda entry: (puts[entry.id].start_ms, entry.id)):
        if isinstance(entry, Put):
            span = _span(entry.start_ms, entry.end_ms)
            lines.append(f"{span} {_result(story, entry.key, entry.values)}")
        else:
            lines.append(f"[{number(puts[entry.id].start_ms)}, …) taken back")
    return lines


def _pane(story: Story, pane: Pane) -> str:
    what = "back" if pane.retraction else "pane"
    timing = pane.timing.replace("_", " ")
    span = _span(pane.start_ms, pane.end_ms)
    return f"{span} {what} {pane.number} {timing} {_result(story, pane.key, pane.values)}"


def _result(story: Story, key: tuple[object, ...], values: tuple[object, ...]) -> str:
    several = len({row.key for _, log in story.scenario.logs for row in log}) > 1
    shown = ", ".join(map(literal, values))
    return f"{_key(key)} = {shown}" if several else f"= {shown}"


def _span(start_ms: int, end_ms: int) -> str:
    return f"[{number(start_ms)}, {number(end_ms)})"


def _key(key: tuple[object, ...]) -> str:
    return ", ".join(each if isinstance(each, str) else literal(each) for each in key)
