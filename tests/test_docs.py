"""What the README tells a newcomer to type works, and what it shows is what comes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from thund.definition import Pipeline

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [
        line.removeprefix("$ ").split("#")[0].strip() for line in lines if line.startswith("$ ")
    ]


def test_required_every_make_target_exists() -> None:
    named = {c.split()[1] for c in commands() if c.startswith("make ")}
    assert {"demo", "test", "verify"} <= named
    for target in named:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_required_every_thund_command_exists() -> None:
    from thund.cli import cli

    named = {c.split()[1] for c in commands() if c.startswith("thund ")}
    named |= set(re.findall(r"`thund ([a-z]+)", README))
    assert {"run", "status", "audit", "laws", "verify"} <= named
    for name in named:
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0, (name, result.output)


def test_required_the_two_ways_to_write_a_pipeline_give_one_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (toml,), (python,) = blocks("toml"), blocks("python")
    scope: dict[str, object] = {}
    exec(python, scope)
    built = scope["ferries"]
    assert isinstance(built, Pipeline)
    assert Pipeline.from_toml(toml) == built
    assert Pipeline.from_toml(toml).fingerprint() == built.fingerprint()


def test_required_the_example_runs_and_can_be_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three commands of the README, in a folder of their own."""
    from thund.cli import cli

    (toml,) = blocks("toml")
    (tmp_path / "ferries.toml").write_text(toml)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for command, expected in (
        ("run", "run: rows="),
        ("status", "drained"),
        ("audit", "audit: PASS"),
    ):
        result = CliRunner().invoke(cli, [command, "ferries.toml"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert expected in result.output, (command, result.output)


def test_required_every_example_runs(tmp_path: Path) -> None:
    """Each TOML by `thund run`, each Python file by Python, in a copy of the folder."""
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    definitions, scripts = sorted(folder.glob("*.toml")), sorted(folder.glob("*.py"))
    assert definitions
    assert scripts
    for path in (*definitions, *scripts):
        command = ["-m", "thund", "run", str(path)] if path in definitions else [str(path)]
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (path.name, done.stderr)
        assert done.stdout, path.name


def test_required_the_first_screen_says_what_for_whom_and_shows_the_demo() -> None:
    screen = "\n".join(README.splitlines()[:45])
    assert "For whom" in screen
    assert "$ make demo" in screen
    assert re.search(r"demo: PASS rows=\d+ admitted=\d+ late=\d+ .* kills=3 identical=yes", screen)


def test_required_ci_ends_with_the_readmes_test_command() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8").strip().splitlines()
    assert script[-1] == "make test"
    assert "rm -rf .venv" in " ".join(script)


def test_required_links_lead_somewhere() -> None:
    """Each path in backticks that looks like one of this repository exists."""
    for path in set(
        re.findall(r"`((?:specs|reference|impl|conformance|tests|examples)/[^` ]*)`", README)
    ):
        assert (ROOT / path).exists(), path
