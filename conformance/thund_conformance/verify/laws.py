"""The law table: which laws there are, where each shows itself, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from thund_conformance.verify import citations as c
from thund_conformance.verify.citations import Citation, Problem
from thund_conformance.verify.environment import MODELS_FILE
from thund_conformance.verify.models import load_models
from thund_contract.errors import CallerError

LAWS_FILE = "LAWS.md"

REQUIRED = frozenset(
    {
        *("S1", "S2", "S3", "S4", "S5", "C1", "C2", "C3", "C4"),
        *("W1", "W2", "W3", "W4", "W5", "W6", "W7"),
        *("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8"),
        *("G1", "G2", "G3", "G4", "G5", "F1", "F2", "F3", "F4"),
        *("E1", "E2", "E3", "E4", "E5", "E6"),
        *("K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10"),
        *("R1", "R2", "M1", "M2", "M3", "T8"),
    }
)
"""Every law but the theorems. Of these only T8 is a promise of its own (of rule A3); the rest are
checked through the laws that they follow from."""

NO_BROKEN_MODEL: Mapping[str, str] = {}
"""Required laws that no broken model shows to have teeth, each with the reason. A law that has
one may not be listed here."""

_BOLD = re.compile(r"\*\*([A-Z]\d+)(?![\w])\s*([^*]*?)\.?\*\*([^*\n]*)")
_SECTION = re.compile(r"^## (.+?)\s*$")
_TITLE_CHARS_MAX = 40


@dataclass(frozen=True, slots=True)
class Law:
    """One law: its id, its short title, and the section of LAWS.md it stands in."""

    id: str
    title: str
    section: str


@dataclass(frozen=True, slots=True)
class LawTable:
    """Every law, every citation of it, and everything that is wrong with them.

    required: the laws that must show every face. excused: those of them that need no broken
    model, each with its reason. missing: (law, face) of the empty cells among the required.
    """

    root: Path
    laws: tuple[Law, ...]
    citations: Mapping[str, Mapping[str, tuple[Citation, ...]]]
    problems: tuple[Problem, ...]
    required: frozenset[str]
    excused: Mapping[str, str]

    def cell(self, law: str, face: str) -> tuple[Citation, ...]:
        """The citations of a law on one face, in the order of the files."""
        return self.citations.get(law, {}).get(face, ())

    def needs(self, law: str, face: str) -> bool:
        """Whether this cell may not be empty."""
        return law in self.required and not (face == c.BROKEN and law in self.excused)

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """The cells that may not be empty and are."""
        return tuple(
            (law.id, face)
            for law in self.laws
            for face in c.FACES
            if self.needs(law.id, face) and not self.cell(law.id, face)
        )

    @property
    def complete(self) -> bool:
        """Whether no required cell is empty and no citation dangles."""
        return not self.problems and not self.missing

    def place(self, path: Path, line: int) -> str:
        """`file:line`, as seen from the root of the repository."""
        return f"{path.relative_to(self.root).as_posix()}:{line}"


def read_laws(path: Path) -> tuple[Law, ...]:
    """The laws of LAWS.md, in its order: each `**W3 monotone.**`, also several in one line.

    A law without a title in bold gets the beginning of its sentence.
    Raises: CallerError where the file is missing, has no law, or has one twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise _unreadable(path, str(error)) from error
    laws: list[Law] = []
    section = ""
    for line in lines:
        if (heading := _SECTION.match(line)) is not None:
            section = heading[1].partition(":")[2].strip() or heading[1]
        laws += [Law(b[1], _title(b[2], b[3]), section) for b in _BOLD.finditer(line)]
    ids = [law.id for law in laws]
    twice = sorted({law for law in ids if ids.count(law) > 1})
    if not laws or twice:
        raise _unreadable(path, f"{', '.join(twice)} stated twice" if twice else "no law in it")
    return tuple(laws)


def law_table(
    root: Path,
    specs: Path,
    *,
    required: frozenset[str],
    excused: Mapping[str, str],
) -> LawTable:
    """Read a repository and put every citation in its cell.

    Raises: CallerError where LAWS.md or models.toml cannot be used.
    """
    laws = read_laws(specs / LAWS_FILE)
    known = {law.id for law in laws}
    found = _all_found(root, specs)
    cells: dict[str, dict[str, tuple[Citation, ...]]] = {law: {} for law in known}
    problems = [item for item in found if isinstance(item, Problem)]
    for item in found:
        if isinstance(item, Problem):
            continue
        if item.law not in known:
            text = f"{item.label} cites {item.law}, which {LAWS_FILE} does not have"
            problems.append(Problem(item.path, item.line, text))
        elif item.face in c.FACES:
            faces = cells[item.law]
            faces[item.face] = (*faces.get(item.face, ()), item)
    for law in sorted(required | set(excused)):
        if law not in known:
            text = f"{law} is required or excused, but {LAWS_FILE} does not have it"
            problems.append(Problem(specs / LAWS_FILE, 1, text))
        elif law in excused and cells[law].get(c.BROKEN):
            text = f"{law} is excused from having a broken model, but it has one"
            problems.append(Problem(specs / MODELS_FILE, 1, text))
    return LawTable(root, laws, cells, tuple(problems), required, excused)


def _all_found(root: Path, specs: Path) -> list[Citation | Problem]:
    models = load_models(specs)
    return [
        *c.spec_citations(specs, models),
        *c.model_citations(specs / MODELS_FILE, models),
        *c.docstring_citations(root / "reference" / "thund_reference", c.REFERENCE),
        *c.docstring_citations(root / "impl" / "thund", c.IMPL),
        *c.mark_citations(root / "conformance"),
        *c.mark_citations(root / "tests"),
        *c.mutant_citations(root / "conformance/thund_conformance/mutants/catalogue.py"),
    ]


def _title(bold: str, rest: str) -> str:
    if bold:
        return bold
    words = rest.replace("`", "").strip()
    first = re.split(r"[.;:]", words)[0].strip()
    if len(first) <= _TITLE_CHARS_MAX:
        return first
    return first[:_TITLE_CHARS_MAX].rsplit(" ", 1)[0] + " …"


def _unreadable(path: Path, found: str) -> CallerError:
    return CallerError(
        f"{LAWS_FILE} cannot be used: {found}",
        allowed="each law once, as **W3 title.** followed by its sentence",
        where=str(path),
        action="correct the file, or point THUND_SPECS at the folder that has it",
    )
