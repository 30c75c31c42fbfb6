"""The installed thund is this checkout: a stale editable install would test another one."""

import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("package", "folder"),
    [
        ("thund_contract", "specs"),
        ("thund_reference", "reference"),
        ("thund", "impl"),
        ("thund_conformance", "conformance"),
    ],
)
def test_required_packages_come_from_this_checkout(package: str, folder: str) -> None:
    module = importlib.import_module(package)
    assert Path(str(module.__file__)).resolve().parent == ROOT / folder / package


def test_required_every_command_loads() -> None:
    points = importlib.metadata.entry_points(group="thund.commands")
    names = {point.name for point in points}
    assert {"verify", "laws", "audit", "demo", "conform"} <= names
    for point in points:
        assert callable(point.load())


def test_required_help_imports_nothing_heavy() -> None:
    """`thund --help` must answer at once; what is slow to import stays inside the commands."""
    code = (
        "import sys\nfrom thund.cli import cli\n"
        "from click.testing import CliRunner\n"
        "result = CliRunner().invoke(cli, ['--help'])\n"
        "assert result.exit_code == 0, result.output\n"
        "for name in ('verify', 'laws', 'audit', 'demo', 'run', 'status'):\n"
        "    assert name in result.output, name\n"
        "print(sorted({'numba', 'pyarrow', 'duckdb', 'numpy', 'hypothesis'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
