"""Which pictures the documentation has, and the golden scenarios that they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thund_conformance import golden
from thund_conformance.pictures.drawing import Panel, draw
from thund_conformance.pictures.story import tell

FOLDER = Path("docs/pictures")
TIME = "event time (ms)"


@dataclass(frozen=True, slots=True)
class Picture:
    """A title, and golden files with what stands above each: one panel per file."""

    title: str
    panels: tuple[tuple[str, str], ...]

    def render(self) -> str:
        """The SVG text; the same on every machine."""
        panels = [
            Panel(above, tell(golden.read(golden.FOLDER / f"{file}.txt").scenario))
            for file, above in self.panels
        ]
        return draw(self.title, panels, with_notes=len(panels) == 1)


PICTURES = {
    "event-time-and-watermark": Picture(
        "W follows the slower partition, 5 ms behind it", (("picture-watermark", TIME),)
    ),
    "late-rows": Picture(
        "The same rows under the three late rules (delay 2, grace 5)",
        (
            ("picture-late-row", "row"),
            ("picture-late-window", "window"),
            ("picture-late-partition", "partition"),
        ),
    ),
    "windows": Picture(
        "The same rows in three kinds of windows",
        (
            ("picture-windows-tumbling", "tumbling, size 10"),
            ("picture-windows-hopping", "hopping, size 10, slide 5"),
            ("picture-windows-session", "session, gap 8"),
        ),
    ),
    "idle-partitions": Picture(
        "South falls silent, goes idle after 10 ms of waiting, and comes back",
        (("picture-idle", TIME),),
    ),
    "aggregates": Picture(
        "1e16 + 1 − 1e16 is 1, whatever comes first",
        (("picture-order-1", "in the order of time"), ("picture-order-2", "in another order")),
    ),
    "output": Picture(
        "Panes of an update table whose sink can only append (grace 10, retracting)",
        (("picture-panes", TIME),),
    ),
    "before-the-window": Picture(
        "Five verdicts: invalid, filtered, late, repeated, admitted",
        (("picture-before-the-window", TIME),),
    ),
    "epochs-and-recovery": Picture("Two deaths, and no row lost", (("picture-deaths", TIME),)),
}
"""By the name of the file, which is that of its page."""


def write(folder: Path = FOLDER) -> list[Path]:
    """Draw all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, picture in PICTURES.items():
        path = folder / f"{name}.svg"
        path.write_text(picture.render(), encoding="utf-8", newline="\n")
        paths.append(path)
    return paths
