"""Reference and implementation are mirror trees: the rooms have one name on both sides."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("source", "credits", "watermark", "windows", "accumulators", "checkpoint", "sink")


@pytest.mark.parametrize("room", [*ROOMS, "pipeline", "recompute"])
def test_required_each_room_has_a_reference_and_an_implementation(room: str) -> None:
    assert (ROOT / f"reference/thund_reference/{room}.py").is_file()
    assert (ROOT / f"impl/thund/{room}.py").is_file()


def test_required_each_spec_has_a_model_that_holds() -> None:
    models = tomllib.loads((ROOT / "specs/models.toml").read_text())["model"]
    text = {p.name: p.read_text() for p in (ROOT / "specs").glob("*.tla")}
    run = {m["module"] for m in models if m["expect"] == "ok"}
    reached = set()
    queue = [name if name.endswith(".tla") else f"{name}.tla" for name in run]
    while queue:
        name = queue.pop()
        if name in reached or name not in text:
            continue
        reached.add(name)
        words = set(re.findall(r"\w+", text[name]))
        queue += [other for other in text if other.removesuffix(".tla") in words]
    assert set(text) - reached == set()


def test_required_the_table_of_models_is_that_of_the_models() -> None:
    """specs/README.md shows laws and state counts; models.toml is where they are pinned."""
    models = {
        m["name"]: m for m in tomllib.loads((ROOT / "specs/models.toml").read_text())["model"]
    }
    readme = (ROOT / "specs/README.md").read_text()
    shown = {}
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].startswith("`"):
            shown[cells[2].strip("`")] = cells
    hold = {name: m for name, m in models.items() if m["expect"] == "ok"}
    assert set(shown) == set(hold)
    for name, model in hold.items():
        assert shown[name][3].split(", ") == model["laws"], name
        assert int(shown[name][5].replace(",", "")) == model["distinct"], name
    witnesses = sum(m.get("witness", False) for m in models.values())
    broken = len(models) - len(hold) - witnesses
    words = f"{len(hold)} models must pass. {broken} broken ones must fail"
    assert words in " ".join(readme.split())
    assert f"{witnesses} witnesses" in readme


def test_required_the_quick_run_shows_the_teeth_of_every_law() -> None:
    """What is left out of it stands beside one like it: no law loses its last broken model."""
    models = tomllib.loads((ROOT / "specs/models.toml").read_text())["model"]
    broken = [m for m in models if m["expect"] != "ok" and not m.get("witness")]
    every = {law for m in broken for law in m["laws"]}
    quick = {law for m in broken if not m.get("full") for law in m["laws"]}
    assert every == quick
