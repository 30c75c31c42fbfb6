"""The law table of a small repository: full as it stands, and failing on each thing that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from thund_conformance.verify import citations as c
from thund_conformance.verify.laws import LawTable, law_table, read_laws
from thund_conformance.verify.laws_cli import laws as laws_command
from thund_contract.errors import CallerError

LAWS = """# The laws
**fixed** means what it means, `**not a law**`.
## S, C: source and credits
- **S1 replayable.** A source is a set of partitions.
- **S2** It never skips silently; never, not once, whatever the source may be.
## E: output
- **E1 append**: one row. **E2 update**: at each epoch, **all of them**
  (see S1). **E10**
"""
SPEC = r"""---- MODULE M ----
EXTENDS Naturals
VARIABLE x
Next == x' = x + 1
\* LAW S1 Up: never down,
\* whatever comes.
\* LAW E1 Up: nor there.
Up == [][x' >= x]_x
\* LAW S1, E1 Zero: from zero on.
Zero == 0 <= 1
ASSUME Zero
====
"""
MODELS = """[[model]]
name = "M"
module = "M"
cfg = "M.cfg"
expect = "ok"
laws = ["S1", "E1"]
distinct = 1
seconds = 1
why = "Because."
[[model]]
name = "MBroken"
module = "M"
cfg = "MBroken.cfg"
expect = "property"
violates = "Up"
laws = ["S1"]
seconds = 1
reason = "It breaks."
"""
CODE = '''"""A module.

Law: S1.
"""
class Thing:
    """A thing, and no Law: E2 is cited here.

    Law: E1. Raises: nothing.
    """
    async def step(self):
        """One step. Law: S1, E1."""
'''
TESTS = """import pytest
from pytest import mark
pytestmark = [pytest.mark.law("S1"), pytest.mark.slow]

@pytest.mark.law("E1", "S1")
def test_it(): ...

class TestThing:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=mark.law("E1"))])
    def test_there(self): ...
"""
MUTANTS = """MUTANTS = (
    Mutant(name="no_up", law="S1", module="x"),
    Mutant("no_append", "E1", "x"),
    catalogue.Mutant("both", law=("S1", "E1")),
)
"""
FILES = {
    "specs/LAWS.md": LAWS,
    "specs/M.tla": SPEC,
    "specs/M.cfg": "SPECIFICATION Spec PROPERTY Up",
    "specs/MBroken.cfg": "SPECIFICATION Spec PROPERTY Up",
    "specs/models.toml": MODELS,
    "reference/thund_reference/room.py": CODE,
    "impl/thund/room.py": CODE,
    "conformance/thund_conformance/suite/test_room.py": TESTS,
    "conformance/thund_conformance/mutants/catalogue.py": MUTANTS,
    "tests/test_other.py": "",
}
REQUIRED = frozenset({"S1", "E1"})
EXCUSED = {"E1": "There is nothing to break."}


def write(root: Path, **changed: str) -> Path:
    for name, text in {
        **FILES,
        **{key.replace("__", "/"): t for key, t in changed.items()},
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def table_of(root: Path, *, excused: dict[str, str] | None = None) -> LawTable:
    return law_table(
        root, root / "specs", required=REQUIRED, excused=EXCUSED if excused is None else excused
    )


def change(root: Path, name: str, old: str, new: str) -> None:
    text = FILES[name]
    assert old in text
    (root / name).write_text(text.replace(old, new))


def test_required_laws_are_read_in_order(tmp_path: Path) -> None:
    found = read_laws(write(tmp_path) / "specs/LAWS.md")
    assert [(law.id, law.title, law.section) for law in found] == [
        ("S1", "replayable", "source and credits"),
        ("S2", "It never skips silently", "source and credits"),
        ("E1", "append", "output"),
        ("E2", "update", "output"),
        ("E10", "", "output"),
    ]


@pytest.mark.parametrize("text", [None, "nothing", "- **S1 a.** x\n- **S1 b.** y\n"])
def test_required_laws_that_cannot_be_read_are_an_error(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "LAWS.md"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CallerError, match=r"LAWS\.md"):
        read_laws(path)


def test_required_every_face_is_found(tmp_path: Path) -> None:
    table = table_of(write(tmp_path))
    assert table.problems == ()
    assert table.missing == ()
    cells = {face: [item.label for item in table.cell("S1", face)] for face in c.FACES}
    assert cells == {
        "spec": ["M!Up", "M!Zero"],
        "broken": ["MBroken"],
        "reference": ["room", "step"],
        "impl": ["room", "step"],
        "test": ["test_it", "test_room"],
        "mutant": ["no_up", "both"],
    }
    assert [item.label for item in table.cell("E1", c.IMPL)] == ["Thing", "step"]
    assert [item.label for item in table.cell("E1", c.TEST)] == ["test_it", "test_there"]
    assert table.cell("E2", c.IMPL) == ()
    (first, _) = table.cell("E1", c.REFERENCE)
    assert table.place(first.path, first.line) == "reference/thund_reference/room.py:8"


@pytest.mark.parametrize(
    ("name", "old", "new", "missing"),
    [
        ("specs/M.tla", "LAW E1 Up", "WAL E1 Up", ()),
        ("specs/M.tla", "ASSUME Zero", "", ()),
        ("specs/models.toml", '["S1"]', "[]", (("S1", "broken"),)),
        ("reference/thund_reference/room.py", "E1", "S1", (("E1", "reference"),)),
        ("impl/thund/room.py", "S1", "E1", (("S1", "impl"),)),
        ("conformance/thund_conformance/suite/test_room.py", "E1", "S1", (("E1", "test"),)),
        ("conformance/thund_conformance/mutants/catalogue.py", "S1", "E1", (("S1", "mutant"),)),
    ],
)
def test_required_an_empty_cell_is_seen(
    tmp_path: Path, name: str, old: str, new: str, missing: tuple[tuple[str, str], ...]
) -> None:
    change(write(tmp_path), name, old, new)
    assert table_of(tmp_path).missing == missing


def test_required_a_missing_catalogue_empties_its_cells(tmp_path: Path) -> None:
    (write(tmp_path) / "conformance/thund_conformance/mutants/catalogue.py").unlink()
    assert table_of(tmp_path).missing == (("S1", "mutant"), ("E1", "mutant"))


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("specs/M.tla", "LAW E1 Up", "LAW E3 Up", "cites E3"),
        ("specs/M.tla", "LAW S1 Up:", "LAW S1 Up -", "not in the form"),
        ("specs/M.tla", "LAW S1 Up", "LAW S1 Down", "stands above Up, not above Down"),
        ("specs/M.tla", "nor there.\n", "nor there.\n\n", "stands above no definition"),
        ("specs/M.tla", "ASSUME Zero", "", "Zero is in no cfg and no ASSUME"),
        ("specs/M.cfg", "PROPERTY Up", "", "Up is in no cfg"),
        ("specs/models.toml", '["S1", "E1"]', '["S9"]', "M cites S9"),
        ("specs/models.toml", '["S1"]', '["S1", "Q1"]', "MBroken cites Q1"),
        ("impl/thund/room.py", "Law: S1.", "Law: S1 E1.", "not in the form"),
        ("impl/thund/room.py", "Law: S1.", "Laws: S1.", "not in the form"),
        ("impl/thund/room.py", "Law: S1.", "Law: S1, S7.", "room cites S7"),
        ("reference/thund_reference/room.py", "Law: S1, E1", "Law: X1", "step cites X1"),
        ("conformance/thund_conformance/suite/test_room.py", '"E1", "S1"', '"E9"', "cites E9"),
        ("conformance/thund_conformance/suite/test_room.py", '"E1", "S1"', "NAME", "literal"),
        ("conformance/thund_conformance/suite/test_room.py", '"E1", "S1"', "", "literal"),
        ("conformance/thund_conformance/suite/test_room.py", "test_it", "it", "not collect"),
        ("conformance/thund_conformance/mutants/catalogue.py", '"S1", m', '"S8", m', "cites S8"),
        ("conformance/thund_conformance/mutants/catalogue.py", '"E1", "x"', "E1", "literal"),
    ],
)
def test_required_a_citation_that_dangles_is_seen(
    tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    change(write(tmp_path), name, old, new)
    table = table_of(tmp_path)
    assert any(words in problem.text for problem in table.problems), table.problems
    assert not table.complete


def test_required_a_mark_where_pytest_does_not_look_is_seen(tmp_path: Path) -> None:
    write(tmp_path, conformance__helper_py="")
    (tmp_path / "tests/helper.py").write_text(TESTS)
    texts = [problem.text for problem in table_of(tmp_path).problems]
    assert len(texts) == 3
    assert all("pytest does not collect" in text for text in texts)


def test_required_an_excuse_that_is_not_needed_is_seen(tmp_path: Path) -> None:
    table = table_of(write(tmp_path), excused={**EXCUSED, "S1": "No."})
    assert [problem.text for problem in table.problems] == [
        "S1 is excused from having a broken model, but it has one"
    ]
    assert table_of(tmp_path, excused={}).missing == (("E1", "broken"),)
    (problem,) = table_of(tmp_path, excused={**EXCUSED, "Z1": "No."}).problems
    assert "Z1 is required or excused, but" in problem.text


def test_required_the_command_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THUND_SPECS", str(write(tmp_path) / "specs"))
    shown = CliRunner().invoke(laws_command, [])
    assert shown.exit_code == 0
    assert "room +1" in shown.output
    assert "later" in shown.output
    assert shown.output.splitlines()[-1].startswith("laws: FAIL laws=5 required=")
    checked = CliRunner().invoke(laws_command, ["--check"])
    assert checked.exit_code == 1
    assert "E1: no broken" in checked.output


def test_required_a_full_table_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thund_conformance.verify.laws.REQUIRED", REQUIRED)
    monkeypatch.setattr("thund_conformance.verify.laws.NO_BROKEN_MODEL", EXCUSED)
    monkeypatch.setenv("THUND_SPECS", str(write(tmp_path) / "specs"))
    result = CliRunner().invoke(laws_command, ["--check", "--wide"])
    assert result.exit_code == 0, result.output
    assert "impl/thund/room.py:3" in result.output
    assert "conformance/thund_conformance/mutants/catalogue.py:2" in result.output
    assert "excused   E1 from a broken model: There is nothing to break." in result.output
    last = "laws: PASS laws=5 required=2 citations=21 empty=0 dangling=0"
    assert result.output.splitlines()[-1] == last
