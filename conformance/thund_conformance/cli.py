"""`thund conform` and `thund soak`: judge the implementation, or an engine of your own."""

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


@click.command()
@click.option("--scenarios", default=200_000, show_default=True, type=click.IntRange(1))
@click.option("--seed", type=click.IntRange(0), help="Draw the scenarios of an earlier run again.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1))
def soak(*, scenarios: int, seed: int | None, jobs: int) -> None:
    """Draw scenarios by the hundred thousand, and compare the implementation with the reference.

    The table says what they reached; a situation that none reached fails the run, as a difference
    does. The exit code is 0 or 1, and the last line says PASS or FAIL.
    """
    import random
    import sys

    from thund_conformance import reach
    from thund_conformance import soak as soaking
    from thund_conformance.plugin import FAILURES
    from thund_conformance.verify.display import output, show_count

    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    click.echo(f"soak: --seed={seed} --scenarios={scenarios}")
    with show_count(output(), scenarios, "scenarios") as tell:
        found = soaking.soak(scenarios, seed=seed, jobs=jobs, tell=tell)
    missing = [s for s in reach.unreached(found.reached) if s not in reach.WRITTEN_ONLY]
    click.echo(reach.table(found.reached))
    for index, (scenario, difference) in enumerate(found.failures):
        FAILURES.mkdir(exist_ok=True)
        path = FAILURES / f"soak-{seed}-{index}.txt"
        path.write_text(scenario, encoding="utf-8")
        click.echo(f"\n{difference}\n\n{scenario}\nwritten to {path}")
    if missing:
        click.echo("no scenario reached: " + "; ".join(missing))
    passed = not found.failures and not missing
    click.echo(
        f"soak: {'PASS' if passed else 'FAIL'} scenarios={found.scenarios} "
        f"differences={len(found.failures)} unreached={len(missing)} "
        f"seconds={found.seconds:.0f} seed={seed}"
    )
    sys.exit(0 if passed else 1)


COMMON = ("-p", "thund_conformance.plugin", "--import-mode=importlib", "--strict-markers", "-q")
"""What pyproject.toml gives pytest in a checkout; an installed package has none."""
