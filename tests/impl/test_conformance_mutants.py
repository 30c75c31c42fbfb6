"""The runner of mutants: a bug that changes nothing survives, and one that cannot go in is an error."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import thund.windows
from thund_conformance.mutants.patches import Patches


def test_required_an_attribute_that_is_gone_is_an_error():
    with pytest.raises(LookupError, match="no_such_name"):
        Patches().replace(thund.windows, "no_such_name", None)
    with pytest.raises(LookupError, match="emit"):
        Patches().wrap(type("Child", (thund.windows.Windows,), {}), "emit", None)


def test_required_a_text_that_is_gone_or_there_twice_is_an_error():
    for text in ("no such text", "self"):
        with pytest.raises(LookupError, match="mend the catalogue"):
            Patches().edit(thund.windows.Windows, "close", text, "")


def test_required_an_edited_function_has_the_new_text():
    owner = type("Grid", (), dict(vars(thund.windows.Windows)))
    Patches().edit(owner, "_table", "_FEW_CELLS", "no_such_name")
    with pytest.raises(NameError, match="no_such_name"):
        owner._table(SimpleNamespace(_tables={}, _expected=0), 5)


SCRIPT = """
import thund.windows
from thund_conformance.mutants import run
from thund_conformance.mutants.patches import Mutant

bugs = [
    Mutant("harmless", "W5", lambda p: None, "Nothing is changed."),
    Mutant("gone", "W5", lambda p: p.replace(thund.windows, "no_such_name", None), "No place."),
    Mutant("unknown", "Z9", lambda p: None, "No test has this law."),
]
for verdict in run.run_mutants(bugs):
    print(verdict.mutant.name, verdict.result, "no_such_name" in verdict.output, sep=":")
"""


def test_required_survivors_and_broken_mutants_are_not_killed():
    """In a process of its own: children are forked from it, so it may not have threads."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    said = sorted(line for line in ran.stdout.splitlines() if line.count(":") == 2)
    assert said == ["gone:ERROR 70:True", "harmless:SURVIVED:False", "unknown:NO TEST:False"]
