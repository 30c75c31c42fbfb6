"""The list of models: what is wrong with it is seen before TLC runs, and a run is judged strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from thund_conformance.verify import tlc
from thund_conformance.verify.models import Model, judge, load_models
from thund_conformance.verify.report import choose
from thund_conformance.verify.specfiles import read_cfg, read_module, without_comments
from thund_contract.errors import CallerError

MODULE = r"""---- MODULE M ----
(* A comment with an "open string and a CONSTANT Hidden (* nested *) *)
EXTENDS Naturals, Base
CONSTANTS N,  \* how far
          Op(_)
VARIABLE x
\* LAW W3 Up: never down,
\* not once.
Up == [][x' >= x]_x
Next == x' = x + 1
Inv == x < N
Alias == Up
Ends == <>Inv
ASSUME Fine /\ N > 0
====
"""
BASE = "---- MODULE Base ----\nCONSTANT B\nFine == B = 1\n====\n"
CFG = """CONSTANTS N = 4 Op <- Succ \\* a comment
B = "INVARIANT Q = 1"
SPECIFICATION Spec INVARIANTS Inv, Fine
PROPERTIES Up Ends
"""
GOOD = {
    "name": "A",
    "module": "M",
    "cfg": "A.cfg",
    "expect": "ok",
    "laws": ["W3"],
    "distinct": 5,
    "seconds": 1.5,
    "why": "Because.",
}


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def write_specs(folder: Path, *entries: dict[str, object], cfg: str = CFG, more: str = "") -> Path:
    (folder / "M.tla").write_text(MODULE)
    (folder / "Base.tla").write_text(BASE)
    (folder / "A.cfg").write_text(cfg)
    lines = []
    for entry in entries:
        lines.append("[[model]]")
        lines += [f"{key} = {_toml(value)}" for key, value in entry.items() if value is not None]
    (folder / "models.toml").write_text("\n".join(lines) + "\n" + more)
    return folder


def test_required_a_good_list_is_read(tmp_path: Path) -> None:
    (model,) = load_models(write_specs(tmp_path, GOOD))
    assert model == Model(
        name="A",
        module="M",
        cfg="A.cfg",
        expect="ok",
        laws=("W3",),
        seconds=1.5,
        why="Because.",
        distinct=5,
    )
    job = model.job(tmp_path)
    assert (job.deadlock, job.workers, job.seconds_max) == (False, 1, 60.0)


def test_required_files_are_read_as_tlc_reads_them(tmp_path: Path) -> None:
    write_specs(tmp_path, GOOD)
    module, cfg = read_module(tmp_path / "M.tla"), read_cfg(tmp_path / "A.cfg")
    assert module.extends == ("Naturals", "Base")
    assert module.constants == {"N", "Op"}
    assert list(module.bodies) == ["Up", "Next", "Inv", "Alias", "Ends"]
    assert module.assumed == {"Fine", "N"}
    (comment,) = module.law_comments
    assert (comment.laws, comment.name, comment.defined, comment.line) == (("W3",), "Up", "Up", 7)
    assert cfg.names("CONSTANT") == ("N", "Op", "B")
    assert cfg.checked == ("Inv", "Fine", "Up", "Ends")


def test_required_comments_are_blanked_and_lines_kept() -> None:
    text = 'a (* "b\n(* c *) \\* d *) e \\* (* f\n"g (* h" i'
    assert without_comments(text).split() == ["a", "e", '""', "i"]
    assert without_comments(text).count("\n") == 2
    assert '"g (* h"' in without_comments(text, keep_strings=True)


BROKEN = {**GOOD, "distinct": None, "why": None, "reason": "It breaks."}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({**GOOD, "expects": "ok"}, "unknown key 'expects'"),
        ({**GOOD, "laws": "W3"}, "laws = 'W3' has the wrong type"),
        ({**GOOD, "laws": [3]}, "not a list of law ids"),
        ({**GOOD, "distinct": True}, "distinct = True has the wrong type"),
        ({**GOOD, "seconds": None}, "missing: seconds"),
        ({**GOOD, "seconds": 0}, "must be positive"),
        ({**GOOD, "expect": "fine"}, "expect = 'fine' is not one of"),
        ({**GOOD, "distinct": None}, "needs distinct"),
        ({**GOOD, "distinct": 0}, "needs distinct"),
        ({**GOOD, "why": None}, "neither why"),
        ({**GOOD, "witness": True}, "witness, violates and reason are for models that must fail"),
        ({**GOOD, "module": "Other"}, "Other.tla is missing"),
        ({**GOOD, "cfg": "Other.cfg"}, "Other.cfg is missing"),
        ({**GOOD, "workers": 2}, "workers = 1"),
        ({**BROKEN, "expect": "invariant"}, "needs violates"),
        ({**BROKEN, "expect": "invariant", "violates": "Up"}, "not listed under INVARIANT"),
        ({**BROKEN, "expect": "property", "violates": "Inv"}, "not listed under PROPERTY"),
        ({**BROKEN, "expect": "temporal", "violates": "Ends"}, "must list one property only"),
        ({**BROKEN, "expect": "temporal"}, "must list one property only"),
        ({**BROKEN, "expect": "property"}, "must list one property only"),
        ({**BROKEN, "expect": "deadlock"}, "deadlock = true"),
        ({**BROKEN, "expect": "assumption", "distinct": 5}, "distinct is for expect = 'ok'"),
    ],
)
def test_required_a_wrong_entry_is_an_error(
    tmp_path: Path, entry: dict[str, object], words: str
) -> None:
    with pytest.raises(CallerError) as caught:
        load_models(write_specs(tmp_path, entry))
    assert words in caught.value.found


@pytest.mark.parametrize(
    ("cfg", "words"),
    [
        (CFG + "CHECK_DEADLOCK FALSE", "CHECK_DEADLOCK, which TLC 2.15 does not know"),
        (CFG + "ALIAS Foo", "ALIAS, which"),
        (CFG + "SYMMETRY Perms", "SYMMETRY beside properties"),
        (CFG + "VIEW x", "VIEW beside properties"),
        (CFG + "CONSTRAINT Inv", "CONSTRAINT beside properties"),
        (CFG + "CONSTANT Hidden = 1", "sets Hidden, which M does not have"),
        (CFG + "CONSTANT n = 1", "sets n, which M does not have"),
        (CFG + "PROPERTY Inv", "lists Inv as a property, but it speaks of one state"),
    ],
)
def test_required_a_cfg_that_tlc_misreads_is_an_error(tmp_path: Path, cfg: str, words: str) -> None:
    with pytest.raises(CallerError) as caught:
        load_models(write_specs(tmp_path, GOOD, cfg=cfg))
    assert words in caught.value.found


def test_required_a_property_may_be_temporal_through_another_operator(tmp_path: Path) -> None:
    assert load_models(write_specs(tmp_path, GOOD, cfg=CFG + "PROPERTY Alias"))


def test_required_the_list_and_the_folder_agree(tmp_path: Path) -> None:
    write_specs(tmp_path, GOOD, {**GOOD, "name": "B"}, GOOD, more="[extra]\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/Forgotten.cfg").write_text("SPECIFICATION Spec")
    with pytest.raises(CallerError) as caught:
        load_models(tmp_path)
    for words in (
        "A: this name is used 2 times",
        "A.cfg: listed 3 times",
        "more/Forgotten.cfg: no model runs this cfg",
        "unknown key 'extra'",
    ):
        assert words in caught.value.found


@pytest.mark.parametrize("text", ["", "[[model]", "model = 3"])
def test_required_a_file_that_is_no_list_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(CallerError):
        load_models(tmp_path)


def test_required_models_are_chosen_by_name_and_kind() -> None:
    good = Model("good", "M", "A.cfg", "ok", (), 1.0, distinct=1)
    bad = Model("bad", "M", "A.cfg", "deadlock", (), 1.0)
    seen = Model("seen", "M", "A.cfg", "deadlock", (), 1.0, witness=True)
    models = (good, bad, seen)
    assert [model.kind for model in models] == ["ok", "broken", "witness"]
    assert choose(models) == models
    assert choose(models, only="ok") == (good, seen)
    assert choose(models, only="broken") == (bad,)
    assert choose(models, names=["seen", "good"]) == (good, seen)
    more = Model("more", "M", "A.cfg", "deadlock", (), 1.0, full=True)
    assert choose((*models, more)) == models
    assert choose((*models, more), full=True) == (*models, more)
    assert choose((*models, more), names=["more"]) == (more,)
    with pytest.raises(CallerError, match="no model named other"):
        choose(models, names=["good", "other"])
    with pytest.raises(CallerError, match="no model is left"):
        choose(models, names=["good"], only="broken")


def _run(verdict: str, violated: str | None = None, distinct: int = 5) -> tlc.Run:
    counts = tlc.Progress(distinct, distinct, 0)
    return tlc.Run(verdict, violated, "words", None, counts, 1, 0, 0.1)


UNNAMED = "line 9, col 7 to line 9, col 19 of module M"
ASSUMED = "line 14, col 8 to line 14, col 20 of module M"


@pytest.mark.parametrize(
    ("expect", "violates", "run", "passed"),
    [
        ("ok", None, _run("ok"), True),
        ("ok", None, _run("ok", distinct=6), False),
        ("ok", None, _run("invariant", "Inv"), False),
        ("ok", None, _run("error"), False),
        ("ok", None, _run("timeout"), False),
        ("invariant", "Inv", _run("invariant", "Inv"), True),
        ("invariant", "Inv", _run("invariant", "Fine"), False),
        ("invariant", "Inv", _run("ok"), False),
        ("invariant", "Inv", _run("error"), False),
        ("property", "Up", _run("property", "Up"), True),
        ("property", "Up", _run("property", "Ends"), False),
        ("property", "Up", _run("property", UNNAMED), False),
        ("property", "Up", _run("temporal"), False),
        ("temporal", "Ends", _run("property", "Ends"), False),
        ("deadlock", None, _run("deadlock"), True),
        ("deadlock", None, _run("ok"), False),
        ("assumption", "Fine", _run("assumption", ASSUMED), True),
        ("assumption", "Other", _run("assumption", ASSUMED), False),
        ("assumption", "Fine", _run("assumption", None), False),
    ],
)
def test_required_a_run_is_judged_by_kind_and_name_and_count(
    tmp_path: Path, expect: str, violates: str | None, run: tlc.Run, passed: bool
) -> None:
    write_specs(tmp_path, GOOD)
    distinct = 5 if expect == "ok" else None
    model = Model("A", "M", "A.cfg", expect, (), 1.0, violates=violates, distinct=distinct)
    finding = judge(model, run, tmp_path)
    assert finding.passed is passed
    assert finding.expected
    assert (finding.found == finding.expected) is passed


@pytest.mark.parametrize("expect", ["property", "temporal"])
def test_required_the_only_property_needs_no_name(tmp_path: Path, expect: str) -> None:
    entry = {**BROKEN, "expect": expect, "module": "M.tla"}
    (model,) = load_models(write_specs(tmp_path, entry, cfg="SPECIFICATION Spec PROPERTY Up"))
    assert (model.module, model.violates) == ("M", "Up")


def test_required_an_unnamed_property_is_known_where_it_is_the_only_one(tmp_path: Path) -> None:
    write_specs(tmp_path, GOOD, cfg="SPECIFICATION Spec PROPERTY Up")
    model = Model("A", "M", "A.cfg", "property", (), 1.0, violates="Up")
    assert judge(model, _run("property", UNNAMED), tmp_path).passed
    temporal = Model("A", "M", "A.cfg", "temporal", (), 1.0, violates="Up")
    assert judge(temporal, _run("temporal"), tmp_path).passed
