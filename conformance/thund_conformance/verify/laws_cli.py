"""The command `thund laws`: the table of laws and where each of them shows itself."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from thund_conformance.verify.laws import Law, LawTable

EXCUSED = "–"
"""Stands for a broken model that is excused; the reasons are listed below the table."""

TITLE_WIDTH = 26
TITLE_WIDTH_NARROW = 15
WIDTH_FOR_NAMES = 130
"""A terminal narrower than this gets counts in the cells; a wider one the first citation."""

LATER = "later"
"""Stands in the row of a law that nothing has to show yet."""


@click.command()
@click.option("--check", is_flag=True, help="Exit 1 where a cell is empty or a citation dangles.")
@click.option("--wide", is_flag=True, help="Every citation as file:line.")
def laws(*, check: bool, wide: bool) -> None:
    """Show the laws of thund and where each one lives.

    spec: the operators that TLC checks; broken: the models that must fail by it; reference and
    impl: the code that keeps it; test: the tests that try it; mutant: the seeded bugs it kills.
    """
    from thund_conformance.verify import laws as rules
    from thund_conformance.verify.display import output
    from thund_conformance.verify.environment import find_specs, read_environment

    specs = find_specs(read_environment())
    table = rules.law_table(
        specs.parent, specs, required=rules.REQUIRED, excused=rules.NO_BROKEN_MODEL
    )
    console = output()
    console.print(_every_citation(table) if wide else _overview(table, console.width))
    for law, reason in table.excused.items():
        click.echo(f"excused   {law} from a broken model: {reason}")
    for problem in table.problems:
        click.echo(f"dangling  {table.place(problem.path, problem.line)}: {problem.text}")
    for law, faces in groupby(table.missing, key=lambda cell: cell[0]):
        click.echo(f"empty     {law}: no {', no '.join(face for _, face in faces)}")
    click.echo(last_line(table))
    if check and not table.complete:
        sys.exit(1)


def last_line(table: LawTable) -> str:
    """The one line that says it all."""
    cited = sum(len(items) for faces in table.citations.values() for items in faces.values())
    return (
        f"laws: {'PASS' if table.complete else 'FAIL'} laws={len(table.laws)} "
        f"required={len(table.required)} citations={cited} empty={len(table.missing)} "
        f"dangling={len(table.problems)}"
    )


def _overview(table: LawTable, width: int) -> Table:
    """One row per law, one column per face."""
    from rich.table import Table
    from rich.text import Text

    from thund_conformance.verify.citations import FACES

    shown = Table()
    shown.add_column("law", no_wrap=True, min_width=3)
    title_width = TITLE_WIDTH if width >= WIDTH_FOR_NAMES else TITLE_WIDTH_NARROW
    shown.add_column("title", no_wrap=True, max_width=title_width)
    frame = 3 * (len(FACES) + 2) + 1
    cell_width = max((width - title_width - frame - 3) // len(FACES), 9)
    for face in FACES:
        shown.add_column(face, no_wrap=True, max_width=cell_width)
    section = table.laws[0].section
    for law in table.laws:
        if law.section != section:
            section = law.section
            shown.add_section()
        chars = cell_width if width >= WIDTH_FOR_NAMES else 0
        cells = (_cell(table, law, face, chars=chars) for face in FACES)
        shown.add_row(law.id, Text(law.title), *(Text(text, style) for text, style in cells))
    return shown


def _every_citation(table: LawTable) -> Table:
    """One row per citation, one section per law."""
    from rich.table import Table
    from rich.text import Text

    from thund_conformance.verify.citations import FACES

    shown = Table("law", "face")
    shown.add_column("where", overflow="fold")
    shown.add_column("by", overflow="fold")
    for law in table.laws:
        for face in FACES:
            for item in table.cell(law.id, face):
                place = table.place(item.path, item.line)
                shown.add_row(law.id, face, Text(place), Text(item.label))
        shown.add_section()
    return shown


def _cell(table: LawTable, law: Law, face: str, *, chars: int) -> tuple[str, str]:
    """The text of one cell, in `chars` characters or as a bare count, and its style."""
    found = table.cell(law.id, face)
    if found and chars:
        more = f" +{len(found) - 1}" if len(found) > 1 else ""
        name = found[0].label.rpartition("!")[2].removeprefix("test_").removeprefix("required_")
        room = chars - len(more)
        return (name if len(name) <= room else f"{name[: room - 1]}…") + more, ""
    if found:
        return str(len(found)), ""
    if table.needs(law.id, face):
        return "EMPTY", "bold red"
    return (EXCUSED if law.id in table.required else LATER), "dim"
