"""`thund conform`: run the conformance suite on the implementation, or on an engine of your own."""

from __future__ import annotations

from pathlib import Path

import click

SUITE = Path(__file__).parent / "suite"


@click.command()
@click.option(
    "--engine",
    "names",
    multiple=True,
    metavar="NAME",
    help="Judge only this engine: reference, thund, thund-rowwise or module:attribute.",
)
@click.option("--examples", type=click.IntRange(1), help="Scenarios that each drawn test takes.")
@click.option("--seed", type=int, help="Draw the scenarios of an earlier run again.")
@click.option("--reach", is_flag=True, help="Show which situations were reached.")
@click.option("--rewrite", is_flag=True, help="Write outcomes into the golden files.")
@click.option("--mutants", is_flag=True, help="Run the seeded bugs instead of the tests.")
@click.option("--law", metavar="ID", help="Run only the tests, or the mutants, of one law.")
def conform(
    *,
    names: tuple[str, ...],
    examples: int | None,
    seed: int | None,
    reach: bool,
    rewrite: bool,
    mutants: bool,
    law: str | None,
) -> None:
    """Judge an engine by the laws: golden files, drawn scenarios and enumerated deaths."""
    if mutants:
        from thund_conformance.mutants.run import main

        raise SystemExit(main([law] if law else []))
    import pytest

    given = {"--thund-examples": examples, "--hypothesis-seed": seed, "--thund-law": law}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    options += [f"--thund-engine={name}" for name in names]
    options += ["--thund-reach"] * reach + ["--thund-rewrite"] * rewrite
    raise SystemExit(int(pytest.main([*COMMON, *options, str(SUITE)])))


COMMON = ("-p", "thund_conformance.plugin", "--import-mode=importlib", "--strict-markers", "-q")
"""What pyproject.toml gives pytest in a checkout; an installed package has none."""
