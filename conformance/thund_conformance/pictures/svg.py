"""A few words of SVG as text, and the colours of the pictures in light and dark."""

from __future__ import annotations

import html

FONT_PX = 12
CHARACTER_PX = 6.7
"""The width of a letter, a little more than it is in most fonts."""

LIGHT = {
    "page": "#ffffff", "ink": "#24292f", "soft": "#59636e", "line": "#d1d9e0",
    "band": "#f3f5f7", "lostband": "#fbe9e2",
    "window": "#0072b2", "admitted": "#0072b2", "late": "#c94f00", "invalid": "#a3347a",
    "filtered": "#59636e", "repeated": "#00795a", "water": "#24292f", "death": "#c94f00",
}  # fmt: skip
DARK = {
    "page": "#0d1117", "ink": "#e6edf3", "soft": "#9da7b1", "line": "#3d444d",
    "band": "#171d26", "lostband": "#33190f",
    "window": "#56b4e9", "admitted": "#56b4e9", "late": "#ff8f4a", "invalid": "#e58cc6",
    "filtered": "#9da7b1", "repeated": "#3ecf9f", "water": "#e6edf3", "death": "#ff8f4a",
}  # fmt: skip


def style() -> str:
    """Every colour by its name as a fill (f-name) and as a stroke (s-name), for both schemes."""
    base = f"text{{font:{FONT_PX}px system-ui,'DejaVu Sans',sans-serif}}.bold{{font-weight:600}}"
    light, dark = (
        "".join(f".f-{n}{{fill:{c}}}.s-{n}{{stroke:{c};fill:none}}" for n, c in colours.items())
        for colours in (LIGHT, DARK)
    )
    return f"<style>{base}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """One element; `stroke_width=2` becomes stroke-width="2", and `class_` class."""
    parts = [f'{k.rstrip("_").replace("_", "-")}="{_value(v)}"' for k, v in attributes.items()]
    head = " ".join([name, *parts])
    return f"<{head}>{content}</{name}>" if content else f"<{head}/>"


def text(x: float, y: float, words: str, *, class_: str = "f-ink", anchor: str = "start") -> str:
    """A line of text on its baseline."""
    more = {} if anchor == "start" else {"text_anchor": anchor}
    return element("text", html.escape(words, quote=False), x=x, y=y, class_=class_, **more)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, **more: object) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_, **more)


def rect(x: float, y: float, width: float, height: float, class_: str, **more: object) -> str:
    """A rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, class_=class_, **more)


def path(points: list[tuple[float, float]], class_: str, **more: object) -> str:
    """A line through points."""
    d = "M" + "L".join(f"{_value(x)} {_value(y)}" for x, y in points)
    return element("path", d=d, class_=class_, **more)


def mark(verdict: str, x: float, y: float, *, lost: bool = False) -> str:
    """The sign of one row: its verdict by shape and colour; a lost one is pale."""
    more: dict[str, object] = {"opacity": 0.4} if lost else {}
    stroke, fill = f"s-{verdict}", f"f-{verdict}"
    if verdict == "admitted":
        return element("circle", cx=x, cy=y, r=5, class_=fill, **more)
    if verdict == "late":
        top = [(x, y - 6), (x + 6, y + 5), (x - 6, y + 5), (x, y - 6)]
        return path(top, fill, **more)
    if verdict == "filtered":
        return element("circle", cx=x, cy=y, r=4.5, class_=stroke, stroke_width=2, **more)
    if verdict == "repeated":
        corners = [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y), (x, y - 6)]
        return path(corners, stroke, stroke_width=2, **more)
    cross = [path([(x - 5, y - 5), (x + 5, y + 5)], stroke, stroke_width=2.5, **more)]
    cross += [path([(x - 5, y + 5), (x + 5, y - 5)], stroke, stroke_width=2.5, **more)]
    return "".join(cross)


def room(words: str) -> float:
    """How much space a line of text needs, at most."""
    return CHARACTER_PX * len(words)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return html.escape(str(value))
