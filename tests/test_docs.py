"""What the README and docs/ tell a newcomer to type works, and what they show is what comes."""

import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

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
        re.findall(r"`((?:specs|reference|impl|conformance|tests|examples|docs)/[^` ]*)`", README)
    ):
        assert (ROOT / path).exists(), path


# ---- the concepts: docs/ -----------------------------------------------------------------------

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```(\w+)( run)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of a page: its language, whether it is marked to be run, and its text."""

WITH_BLOCKS = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]

LAW_ID = re.compile(r"(?<![-\w])[SCWAGFEKRMT]\d{1,2}(?![-\w])")


def page_name(path: Path) -> str:
    return path.stem


def with_examples(folder: Path) -> Path:
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


def shown(lines: list[str]) -> list[str]:
    """Lines in order of their text: the rows of a table come in any order."""
    return sorted(line.rstrip() for line in lines if line.strip())


def assert_alike(found: list[str], expected: list[str]) -> None:
    """The same lines, where "…" stands for whatever differs from run to run."""
    assert len(found) == len(expected), (found, expected)
    for line, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), line), (line, pattern)


def run_commands(definition: str, block: str, folder: Path) -> None:
    """Each `$ thund …` of a console block over the definition above it, and what follows it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = part.splitlines()
        program, *words = command.split()
        assert program == "thund", command
        (folder / words[1]).write_text(definition, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "thund", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        assert_alike(shown(done.stdout.splitlines()), shown(expected))


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=page_name)
def test_required_each_pages_definitions_are_valid(page: Path) -> None:
    for language, _, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "toml":
            pipeline = Pipeline.from_toml(text)
            assert Pipeline.from_toml(pipeline.to_toml()) == pipeline


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=page_name)
def test_required_each_pages_examples_show_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """Python blocks, and TOML blocks that are marked: what they print stands in the block below."""
    folder = with_examples(tmp_path)
    definition = printed = ""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    below = [*(language for language, _, _ in found[1:]), ""]
    for (language, marked, text), after in zip(found, below, strict=True):
        if language == "toml" and marked:
            assert after == "console", text
            definition = text
        elif language == "python":
            assert after == "text", text
            done = subprocess.run(
                [sys.executable, "-c", text],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        elif language == "text":
            assert printed == text
        elif language == "console":
            run_commands(definition, text, folder)


def test_required_the_pictures_are_those_that_the_code_draws() -> None:
    """If this fails after a change that is meant: python -m thund_conformance.pictures."""
    from thund_conformance.pictures.catalogue import PICTURES

    committed = {p.stem: p.read_text(encoding="utf-8") for p in (DOCS / "pictures").iterdir()}
    assert committed == {name: picture.render() for name, picture in PICTURES.items()}
    for name in PICTURES:
        assert f"(pictures/{name}.svg)" in (DOCS / f"{name}.md").read_text(encoding="utf-8"), name


def test_required_a_picture_shows_what_happened() -> None:
    """A story takes its steps apart, row by row: what comes of it is what comes of the scenario."""
    from thund_conformance import engines, golden, judge
    from thund_conformance.pictures.catalogue import PICTURES
    from thund_conformance.pictures.story import tell

    files = {file for picture in PICTURES.values() for file, _ in picture.panels}
    assert files == {path.stem for path in golden.paths() if path.stem.startswith("picture-")}
    for file in files:
        scenario = golden.read(golden.FOLDER / f"{file}.txt").scenario
        story, outcome = tell(scenario), judge.run_on(engines.REFERENCE, scenario)
        assert (story.outcome.epochs, story.outcome.table) == (outcome.epochs, outcome.table)
        rows = [m.verdict for m in story.moments if m.row is not None and not m.lost]
        for verdict in set(rows):
            counted = sum(getattr(p, verdict) for p in outcome.epochs[-1].partitions)
            assert rows.count(verdict) == counted, (file, verdict)


def test_required_no_text_of_a_picture_is_cut_or_covered_by_another() -> None:
    letter, height = 6.2, 11
    for path in (DOCS / "pictures").iterdir():
        root = ET.fromstring(path.read_text(encoding="utf-8"))
        boxes = []
        for each in root.iter("{http://www.w3.org/2000/svg}text"):
            width = letter * len(each.text or "")
            x, y = float(each.attrib["x"]), float(each.attrib["y"])
            left = x - width / 2 if each.get("text-anchor") == "middle" else x
            assert left >= 0, (path.name, each.text)
            assert left + width <= float(root.attrib["width"]), (path.name, each.text)
            assert height <= y <= float(root.attrib["height"]), (path.name, each.text)
            boxes.append((left, left + width, y, each.text))
        for (a, b, y, one), (c, d, z, other) in combinations(boxes, 2):
            assert b <= c or d <= a or abs(y - z) >= height, (path.name, one, other)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_required_what_a_page_leads_to_exists(page: Path) -> None:
    """Links to files, paths in backticks, and the sources at the end of a page."""
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)\)", text):
        assert link.startswith("https://") or (DOCS / link).exists(), link
    for path in re.findall(r"`((?:specs|reference|impl|conformance|tests|examples)/[^` ]*)`", text):
        assert list(ROOT.glob(path)), path
    defined = re.findall(r"^\[([\w-]+)\]: https://\S+$", text, re.MULTILINE)
    assert set(re.findall(r"\]\[([\w-]+)\]", text)) == set(defined)
    assert len(defined) == len(set(defined))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_required_the_laws_of_a_page_exist(page: Path) -> None:
    from thund_conformance.verify.laws import read_laws

    cited = set(LAW_ID.findall(page.read_text(encoding="utf-8")))
    assert cited
    assert cited <= {law.id for law in read_laws(ROOT / "specs/LAWS.md")}


def test_required_the_index_has_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {p.name for p in PAGES} - {"README.md"}
