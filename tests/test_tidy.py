"""House rules that a machine can keep."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("specs", "reference", "impl", "conformance", "tests")
PACKAGE_OF = {
    "specs": "thund_contract",
    "reference": "thund_reference",
    "impl": "thund",
    "conformance": "thund_conformance",
}
MAX_LINES = {"tests": 900}
MAX_LINES_ELSEWHERE = 600
REFERENCE_LINES = 1850
REGISTRIES = (
    "py" + "pi.org",
    "python" + "hosted",
    "npm" + "js.",
    "deb." + "debian",
    "crates" + ".io",
)


def tracked() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("not a git checkout: there is no list of files to hold to the rules")
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_required_each_file_says_first_what_it_is_for() -> None:
    """One sentence, ending in a full stop."""
    for path in sources():
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        first = (text or "").split("\n")[0].strip()
        assert first.endswith((".", ":", "?")) or "\n" in (text or ""), f"{path}: {first!r}"
        assert first, f"{path} does not say what it is for"


def test_required_files_stay_readable() -> None:
    too_long = {}
    for path in sources():
        place = path.relative_to(ROOT)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MAX_LINES.get(place.parts[0], MAX_LINES_ELSEWHERE):
            too_long[str(place)] = lines
    assert too_long == {}


def test_required_the_reference_can_be_read_in_one_sitting() -> None:
    files = (ROOT / "reference").rglob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) <= REFERENCE_LINES


def test_required_no_stray_modules() -> None:
    """The four folders are on the path: a file beside a package would be importable from anywhere."""
    for folder, package in PACKAGE_OF.items():
        strays = [p.name for p in (ROOT / folder).glob("*.py")]
        others = [p.parent.name for p in (ROOT / folder).glob("*/__init__.py")]
        assert strays == []
        assert others == [package]


def test_required_nothing_names_a_registry_or_a_machine() -> None:
    home = str(Path.home()) + "/"
    here = str(ROOT.parent) + "/"
    for path in tracked():
        if path.suffix in {".parquet", ".zip", ".png"}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for word in (*REGISTRIES, *(w for w in (home, here) if len(w) > 5)):
            assert word not in text, f"{path.relative_to(ROOT)} names {word}"


def test_required_no_lock_file_with_addresses() -> None:
    names = {path.name for path in tracked()}
    assert not names & {"uv.lock", "pylock.toml", "package-lock.json", "poetry.lock"}


def test_required_the_lock_pins_everything_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "--index-url" not in text
    assert "http" not in text
    blocks = re.split(r"\n(?=\S)", text.strip())
    for block in blocks:
        if block.lstrip().startswith("#"):
            continue
        assert "==" in block.split("\n")[0], block[:60]
        assert "--hash=sha256:" in block, block[:60]


def test_required_no_unfinished_work_is_marked_in_the_code() -> None:
    marks = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
    for path in sources():
        found = marks.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: {found}"


def test_required_skips_and_ignores_give_their_reason() -> None:
    """A bare `noqa` or `type: ignore` hides more than it says."""
    bare = re.compile(r"#\s*(noqa(?!:)|type:\s*ignore(?!\[))")
    for path in sources():
        found = bare.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: {found.group()}"
