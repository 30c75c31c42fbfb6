"""`python -m thund_conformance.pictures`: draw the pictures of docs/ anew."""

from __future__ import annotations

from pathlib import Path

import click

from thund_conformance.pictures import catalogue


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=catalogue.FOLDER)
def main(folder: Path) -> None:
    """Write each picture of the documentation into FOLDER, docs/pictures unless another is named."""
    for path in catalogue.write(folder):
        click.echo(path)


main()
