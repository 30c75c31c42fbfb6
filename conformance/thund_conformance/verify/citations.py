"""Find by machine where laws are cited: comments, docstrings, marks, mutants, models.

It refuses to judge which citations are needed: that is for `laws.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from thund_conformance.verify import tlc
from thund_conformance.verify.models import Model
from thund_conformance.verify.specfiles import Cfg, TlaModule, extended, read_cfg, read_modules

SPEC = "spec"
BROKEN = "broken"
REFERENCE = "reference"
IMPL = "impl"
TEST = "test"
MUTANT = "mutant"
MODEL = "model"
FACES = (SPEC, BROKEN, REFERENCE, IMPL, TEST, MUTANT)
"""Where a law must show itself: stated, shown to have teeth, written twice, tested, and guarded. A model that holds is cited too, but shows
nothing that `spec` does not."""

_DOCSTRING_LAW = re.compile(r"(?:^|[.?!] )\s*Law: ([A-Z]\d+(?:, [A-Z]\d+)*)(?:\.(?:\s.*)?)?$")
_DOCSTRING_LAW_LIKE = re.compile(r"(?:^|[.?!] )\s*Laws?\s*:")


@dataclass(frozen=True, slots=True)
class Citation:
    """One place that cites one law."""

    law: str
    face: str
    path: Path
    line: int
    label: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that looks like a citation and is none."""

    path: Path
    line: int
    text: str


Found = Citation | Problem


def spec_citations(specs: Path, models: Iterable[Model]) -> Iterator[Found]:
    r"""Comments `\* LAW W3 Name: sentence.` above an operator Name that TLC really checks.

    That is: listed in a cfg that a model with expect = ok runs, or part of an ASSUME of one.
    """
    modules = read_modules(specs)
    checked = _checked_operators(specs, models, modules)
    for module in modules.values():
        for number in module.law_comments_unread:
            yield Problem(module.path, number, r"not in the form `\* LAW W3 Name: sentence.`")
        for comment in module.law_comments:
            if comment.defined != comment.name:
                below = comment.defined or "no definition"
                text = f"LAW {comment.name} stands above {below}, not above {comment.name}"
                yield Problem(module.path, comment.line, text)
            elif (module.name, comment.name) not in checked:
                text = f"{comment.name} is in no cfg and no ASSUME of a model with expect = ok"
                yield Problem(module.path, comment.line, text)
            else:
                for law in comment.laws:
                    label = f"{module.name}!{comment.name}"
                    yield Citation(law, SPEC, module.path, comment.line, label)


def model_citations(models_path: Path, models: Iterable[Model]) -> Iterator[Found]:
    """The laws of the models: those broken on purpose have a face of their own."""
    lines = models_path.read_text(encoding="utf-8").splitlines()
    for model in models:
        line = _line_of(lines, re.compile(rf'^\s*name\s*=\s*"{re.escape(model.name)}"'))
        for law in model.laws:
            yield Citation(law, BROKEN if model.broken else MODEL, models_path, line, model.name)


def docstring_citations(folder: Path, face: str) -> Iterator[Found]:
    """Docstring sentences `Law: W3, W5.` of all modules, classes and functions below a folder.

    One starts its line, or follows the end of another sentence.
    """
    for path, tree in _parsed(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _docstring_of(node, path, face)


def mark_citations(folder: Path) -> Iterator[Found]:
    """Marks `pytest.mark.law("W3", ...)` on tests, their parameters, classes and modules."""
    for path, tree in _parsed(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in node.decorator_list:
                    yield from _marked(decorator, path, node.name, _is_collected(path, node.name))
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == "pytestmark"
                for target in statement.targets
            ):
                yield from _marked(statement.value, path, path.stem, _is_collected(path, "test"))


def mutant_citations(catalogue: Path) -> Iterator[Found]:
    """The calls `Mutant(name, law, ...)` of the catalogue, by keyword or by place."""
    if not catalogue.is_file():
        return
    for node in ast.walk(ast.parse(catalogue.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and _called(node) == "Mutant"):
            continue
        given: dict[str, ast.expr] = dict(zip(("name", "law"), node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        name, laws = _texts(given.get("name")), _texts(given.get("law"))
        if len(name) != 1 or not laws:
            yield Problem(catalogue, node.lineno, "a Mutant without a literal name and law")
        for law in laws:
            yield Citation(law, MUTANT, catalogue, node.lineno, "".join(name))


def _checked_operators(
    specs: Path, models: Iterable[Model], modules: Mapping[str, TlaModule]
) -> set[tuple[str, str]]:
    """(module, operator) of all that a model with expect = ok checks."""
    checked: set[tuple[str, str]] = set()
    cfgs: dict[str, Cfg] = {}
    for model in models:
        if model.expect != tlc.OK:
            continue
        cfg = cfgs.setdefault(model.cfg, read_cfg(specs / model.cfg))
        for module in extended(model.module, modules):
            names = {*cfg.checked, *module.assumed}
            checked |= {(module.name, name) for name in names if name in module.bodies}
    return checked


def _docstring_of(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    path: Path,
    face: str,
) -> Iterator[Found]:
    text = ast.get_docstring(node, clean=False)
    if text is None:
        return
    label = path.stem if isinstance(node, ast.Module) else node.name
    first = node.body[0].lineno
    for number, line in enumerate(text.splitlines(), start=first):
        if (found := _DOCSTRING_LAW.search(line)) is not None:
            for law in found[1].split(", "):
                yield Citation(law, face, path, number, label)
        elif _DOCSTRING_LAW_LIKE.search(line):
            yield Problem(path, number, f"not in the form `Law: W3, W5.`: {line.strip()}")


def _marked(below: ast.AST, path: Path, label: str, collected: bool) -> Iterator[Found]:
    for mark in ast.walk(below):
        if not (isinstance(mark, ast.Call) and _is_law_mark(mark)):
            continue
        laws = [law for argument in mark.args for law in _texts(argument)]
        if not collected:
            text = f"a law mark on {label}, which pytest does not collect"
            yield Problem(path, mark.lineno, text)
        elif not laws or len(laws) != len(mark.args) or mark.keywords:
            yield Problem(path, mark.lineno, f"a law mark on {label} without literal law ids")
        else:
            yield from (Citation(law, TEST, path, mark.lineno, label) for law in laws)


def _is_law_mark(call: ast.Call) -> bool:
    """Whether this is `pytest.mark.law(...)` or `mark.law(...)`."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "law"):
        return False
    mark = call.func.value
    return getattr(mark, "attr", getattr(mark, "id", None)) == "mark"


def _is_collected(path: Path, name: str) -> bool:
    return path.name.startswith("test_") and name.startswith(("test", "Test"))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _texts(node: ast.AST | None) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Tuple | ast.List):
        return [text for item in node.elts for text in _texts(item)]
    return []


def _line_of(lines: list[str], pattern: re.Pattern[str]) -> int:
    matches: Callable[[str], object] = pattern.match
    return next((number for number, line in enumerate(lines, start=1) if matches(line)), 1)


def _parsed(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
