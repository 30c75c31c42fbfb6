"""Golden files: scenarios with the outcome that every engine must show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from thund_conformance import engines, golden, judge


def cited(path: Path) -> tuple[str, ...]:
    """The laws in the brackets of a file's first lines."""
    why = golden.parse_scenario(path.read_text(encoding="utf-8")).why
    brackets: list[str] = re.findall(r"\(laws? ([A-Z0-9, ]+)\)", why)
    return tuple(law for text in brackets for law in text.split(", "))


def files() -> list[Any]:
    found = golden.paths()
    return [pytest.param(path, id=path.stem, marks=pytest.mark.law(*cited(path))) for path in found]


@pytest.mark.parametrize("path", files())
def test_required_golden_outcome(engine_name: str, path: Path, pytestconfig: pytest.Config) -> None:
    """With --thund-rewrite the reference's outcome is written; look at the change before it lands."""
    scenario = golden.parse_scenario(path.read_text(encoding="utf-8"))
    outcome = judge.run_on(engine_name, scenario)
    found = golden.render(golden.Golden(scenario, golden.expected_of(outcome)))
    if pytestconfig.getoption("--thund-rewrite") and engine_name == engines.REFERENCE:
        path.write_text(found, encoding="utf-8")
        return
    assert found == path.read_text(encoding="utf-8")


def test_required_each_golden_file_says_why_and_names_its_laws() -> None:
    for path in golden.paths():
        assert cited(path), path.name
