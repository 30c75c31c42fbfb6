"""Every seeded bug of the catalogue is killed by the tests of its own law."""

from __future__ import annotations

import subprocess
import sys

from thund_conformance.mutants.catalogue import COVERED, MUTANTS, without_a_mutant


def test_required_each_law_has_a_mutant() -> None:
    assert without_a_mutant() == []
    assert {mutant.law for mutant in MUTANTS} <= set(COVERED)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_required_every_mutant_is_killed() -> None:
    """In a process of its own, because children are forked from it."""
    run = subprocess.run(
        [sys.executable, "-m", "thund_conformance.mutants.run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, "\n".join(
        run.stdout.splitlines()[-80:] + run.stderr.splitlines()[-20:]
    )
