"""The command `thund verify`: TLC on every model, one line each, and one last line."""

from __future__ import annotations

import sys
from pathlib import Path

import click

NOTHING_CHECKED = "verify: FAIL models=0 ok=0 broken=0 states=0 seconds=0.0"
"""The last line where an error, told beside it, kept every model from being checked."""


@click.command()
@click.option("--model", "names", multiple=True, metavar="NAME", help="Only this model; repeat.")
@click.option("--only", type=click.Choice(["ok", "broken"]), help="Only models of one kind.")
@click.option(
    "--full", is_flag=True, help="Every model, also those that stand beside one like them."
)
@click.option("--list", "list_only", is_flag=True, help="List the models and run none.")
@click.option("--jobs", default=3, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--json",
    "json_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write everything that was found to a file.",
)
def verify(
    *,
    names: tuple[str, ...],
    only: str | None,
    full: bool,
    list_only: bool,
    jobs: int,
    json_path: Path | None,
) -> None:
    """Check the specs with TLC: every model must come out as specs/models.toml says.

    Models that hold must hold with the pinned number of states; models that are broken on
    purpose must fail in the way their entry says. The last line says PASS or FAIL, and so does
    the exit code, 0 or 1.
    """
    from thund_contract.errors import ThundError

    try:
        passed = _verify(
            names=names, only=only, full=full, list_only=list_only, jobs=jobs, json_path=json_path
        )
    except ThundError:
        if not list_only:
            click.echo(NOTHING_CHECKED)
        raise
    if not passed:
        sys.exit(1)


def _verify(
    *,
    names: tuple[str, ...],
    only: str | None,
    full: bool,
    list_only: bool,
    jobs: int,
    json_path: Path | None,
) -> bool:
    import json

    from thund_conformance.verify.display import output, print_failures, show_progress
    from thund_conformance.verify.environment import find_specs, read_environment
    from thund_conformance.verify.models import load_models
    from thund_conformance.verify.report import choose, verify_models

    specs = find_specs(read_environment())
    if list_only:
        for model in choose(load_models(specs), names=names, only=only, full=full):
            laws, purpose = " ".join(model.laws), model.why or model.reason or ""
            click.echo(f"{model.kind:8}{model.name:32}{laws:20}{purpose}")
        return True
    models = choose(load_models(specs), names=names, only=only, full=full)
    console = output()
    with show_progress(console, sum(model.seconds for model in models)) as progress:
        report = verify_models(
            specs, names=names, only=only, full=full, jobs=jobs, progress=progress
        )
    print_failures(console, report)
    if json_path is not None:
        json_path.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    click.echo(report.last_line())
    return report.passed
