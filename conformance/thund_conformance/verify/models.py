"""The entries of models.toml: read strictly, checked against the files, judged by a run of TLC."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from thund_conformance.verify import tlc
from thund_conformance.verify.environment import MODELS_FILE
from thund_conformance.verify.specfiles import (
    Cfg,
    TlaModule,
    extended,
    is_temporal,
    read_cfg,
    read_modules,
)
from thund_contract.errors import CallerError

LIMIT_FACTOR = 10
LIMIT_SECONDS_MIN = 60.0
"""A run is stopped at LIMIT_FACTOR times the seconds of its entry, never before the minimum."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "module": str,
    "cfg": str,
    "expect": str,
    "violates": str,
    "laws": list,
    "distinct": int,
    "seconds": (int, float),
    "why": str,
    "reason": str,
    "witness": bool,
    "full": bool,
    "deadlock": bool,
    "workers": int,
}
_REQUIRED = ("name", "module", "cfg", "expect", "laws", "seconds")
_BREAKS = {tlc.INVARIANT: "INVARIANT", tlc.PROPERTY: "PROPERTY", tlc.TEMPORAL: "PROPERTY"}
"""Where the operator is listed that breaks, per expected verdict."""

_NOT_IN_TLC_2_15 = ("ALIAS", "POSTCONDITION", "CHECK_DEADLOCK", "PERIODIC")
_PLACE = re.compile(r"line (\d+), col \d+ to line (\d+), col \d+ of module (\w+)")


@dataclass(frozen=True, slots=True)
class Model:
    """One call of TLC and what must come of it.

    expect: one of tlc.VERDICTS. violates: the operator that must be the broken one; it may be
    left out where the cfg has one property. distinct: the pinned number of states. seconds: about how long it takes. witness: a failure that shows
    that something can be reached. deadlock: whether a state without a step is an error. full: it
    runs only where every model is asked for, or this one by its name.
    """

    name: str
    module: str
    cfg: str
    expect: str
    laws: tuple[str, ...]
    seconds: float
    why: str = ""
    violates: str | None = None
    distinct: int | None = None
    reason: str | None = None
    witness: bool = False
    deadlock: bool = False
    workers: int = 1
    full: bool = False

    @property
    def broken(self) -> bool:
        """Whether it is wrong on purpose, so that its failure shows that a law has teeth."""
        return self.expect != tlc.OK and not self.witness

    @property
    def kind(self) -> str:
        """What it is for, in one word."""
        return "broken" if self.broken else "witness" if self.witness else "ok"

    def job(self, specs: Path) -> tlc.Job:
        """The call of TLC for this model."""
        return tlc.Job(
            folder=specs,
            module=self.module,
            cfg=self.cfg,
            deadlock=self.deadlock,
            workers=self.workers,
            seconds_max=max(LIMIT_SECONDS_MIN, LIMIT_FACTOR * self.seconds),
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a run came out as its model says, and both in words."""

    passed: bool
    found: str
    expected: str


def load_models(specs: Path) -> tuple[Model, ...]:
    """The models of a folder, in the order of its models.toml.

    Raises: CallerError that lists everything wrong with the list or with the files it names.
    """
    path = specs / MODELS_FILE
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _bad(path, [str(error)]) from error
    problems = [f"unknown key {key!r} at the top" for key in table if key != "model"]
    entries = table.get("model", [])
    if not isinstance(entries, list) or not entries:
        raise _bad(path, [*problems, "it has no [[model]] entry"])
    models: list[Model] = []
    for number, entry in enumerate(entries, start=1):
        wrong = list(_entry_problems(entry))
        name = entry.get("name") if isinstance(entry.get("name"), str) else f"entry {number}"
        problems += [f"{name}: {problem}" for problem in wrong]
        if not wrong:
            models.append(_model(entry))
    problems += _list_problems(specs, models, entries)
    modules = read_modules(specs)
    for model in models:
        problems += [f"{model.name}: {p}" for p in _file_problems(specs, model, modules)]
    if problems:
        raise _bad(path, problems)
    return tuple(_with_the_only_property(specs, model) for model in models)


def judge(model: Model, run: tlc.Run, specs: Path) -> Finding:
    """Compare what TLC said with what the entry says must come of it."""
    expected = model.expect + (f" of {model.violates}" if model.violates else "")
    if model.distinct is not None:
        expected += f", {model.distinct:,} distinct states"
    found = run.verdict + (f" of {run.violated}" if run.violated else "")
    if run.verdict in (tlc.ERROR, tlc.TIMEOUT):
        return Finding(passed=False, found=f"{run.verdict}: {run.detail}", expected=expected)
    if run.verdict == tlc.OK or model.distinct is not None:
        found += f", {run.distinct:,} distinct states"
    passed = (
        run.verdict == model.expect
        and (model.violates is None or _violates(model, run, specs))
        and (model.distinct is None or run.distinct == model.distinct)
    )
    return Finding(passed=passed, found=expected if passed else found, expected=expected)


def _violates(model: Model, run: tlc.Run, specs: Path) -> bool:
    """Whether the operator that broke is the one the model names.

    TLC names an invariant, and a property made of one action. For the parts of another
    property it gives a place, or the name of an inner operator, and for a temporal one nothing;
    the checks of the list see to it that such a cfg has that one property only.
    """
    if run.verdict == tlc.INVARIANT or run.violated == model.violates:
        return run.violated == model.violates
    if run.verdict == tlc.ASSUMPTION:
        return model.violates in _words_at(run.violated or "", specs)
    properties = read_cfg(specs / model.cfg).names("PROPERTY")
    return properties == (model.violates,)


def _words_at(place: str, specs: Path) -> list[str]:
    """The words on the lines that TLC points to, for it does not name an assumption."""
    if (found := _PLACE.search(place)) is None:
        return []
    lines = (specs / f"{found[3]}.tla").read_text(encoding="utf-8").splitlines()
    return re.findall(r"\w+", " ".join(lines[int(found[1]) - 1 : int(found[2])]))


def _entry_problems(entry: Mapping[str, Any]) -> Iterator[str]:
    for key, value in entry.items():
        if key not in _TYPES:
            yield f"unknown key {key!r} (known: {', '.join(_TYPES)})"
        elif not isinstance(value, _TYPES[key]) or (
            isinstance(value, bool) and _TYPES[key] is not bool
        ):
            yield f"{key} = {value!r} has the wrong type"
    missing = [key for key in _REQUIRED if key not in entry]
    if missing:
        yield f"missing: {', '.join(missing)}"
    if missing or any(key not in _TYPES for key in entry):
        return
    expect, witness = entry["expect"], entry.get("witness", False)
    if expect not in tlc.VERDICTS:
        yield f"expect = {expect!r} is not one of {', '.join(tlc.VERDICTS)}"
        return
    if not all(isinstance(law, str) for law in entry["laws"]):
        yield f"laws = {entry['laws']!r} is not a list of law ids"
    yield from _expect_problems(entry, expect, witness)


def _expect_problems(entry: Mapping[str, Any], expect: str, witness: bool) -> Iterator[str]:
    if not (entry.get("why") or entry.get("reason")):
        yield "it says neither why it is there nor the reason why it breaks"
    if entry["seconds"] <= 0 or entry.get("workers", 1) < 1:
        yield "seconds and workers must be positive"
    if expect == tlc.OK:
        if entry.get("distinct", 0) < 1:
            yield "expect = 'ok' needs distinct, the pinned number of states, at least 1"
        if witness or "violates" in entry or "reason" in entry:
            yield "witness, violates and reason are for models that must fail"
        return
    if "distinct" in entry:
        yield "distinct is for expect = 'ok'; where TLC stops early no count is pinned"
    if expect == tlc.INVARIANT and "violates" not in entry:
        yield "expect = 'invariant' needs violates, the operator that must break"
    if expect == tlc.DEADLOCK and entry.get("deadlock") is not True:
        yield "expect = 'deadlock' needs deadlock = true, which turns the check on"


def _list_problems(
    specs: Path, models: list[Model], entries: list[Mapping[str, Any]]
) -> Iterator[str]:
    names = Counter(model.name for model in models)
    yield from (f"{name}: this name is used {n} times" for name, n in names.items() if n > 1)
    calls = Counter((m.module, m.cfg, m.deadlock) for m in models)
    yield from (f"{cfg}: listed {n} times" for (_, cfg, _), n in calls.items() if n > 1)
    listed = {entry.get("cfg") for entry in entries}
    for path in sorted(specs.rglob("*.cfg")):
        if (name := path.relative_to(specs).as_posix()) not in listed:
            yield f"{name}: no model runs this cfg"


def _file_problems(specs: Path, model: Model, modules: Mapping[str, TlaModule]) -> Iterator[str]:
    if model.module not in modules:
        yield f"module {model.module}.tla is missing"
        return
    if not (specs / model.cfg).is_file():
        yield f"{model.cfg} is missing"
        return
    cfg, closure = read_cfg(specs / model.cfg), extended(model.module, modules)
    yield from _cfg_problems(model, cfg)
    declared = {name for module in closure for name in (*module.constants, *module.bodies)}
    for name in cfg.names("CONSTANT"):
        if name not in declared and name not in ("Nat", "Int", "Seq"):
            yield f"{model.cfg} sets {name}, which {model.module} does not have; TLC ignores it"
    for name in cfg.names("PROPERTY"):
        if any(name in module.bodies for module in closure) and not is_temporal(name, closure):
            yield (
                f"{model.cfg} lists {name} as a property, but it speaks of one state: TLC would "
                "check it in the initial states only; list it as an invariant"
            )


def _cfg_problems(model: Model, cfg: Cfg) -> Iterator[str]:
    properties = cfg.names("PROPERTY")
    for section in _NOT_IN_TLC_2_15:
        if section in cfg.sections:
            yield f"{model.cfg} has {section}, which TLC 2.15 does not know"
    if properties and model.workers > 1:
        yield "a cfg with properties runs with workers = 1: more can miss a violation"
    for section in ("SYMMETRY", "VIEW", "CONSTRAINT", "ACTION_CONSTRAINT"):
        if properties and cfg.names(section):
            yield f"{model.cfg} has {section} beside properties: TLC's verdict is unsound then"
    if model.expect not in _BREAKS:
        return
    where, violates = _BREAKS[model.expect], model.violates
    if violates is not None and violates not in cfg.names(where):
        yield f"violates = {violates!r} is not listed under {where} in {model.cfg}"
    named = model.expect != tlc.TEMPORAL and violates is not None
    if not named and len(properties) != 1:
        yield (
            f"{model.cfg} must list one property only, because TLC does not say which temporal "
            "property broke, and no other is named in violates"
        )


def _with_the_only_property(specs: Path, model: Model) -> Model:
    """Where `violates` is left out the one property of the cfg is meant."""
    if model.violates is None and model.expect in (tlc.PROPERTY, tlc.TEMPORAL):
        (only,) = read_cfg(specs / model.cfg).names("PROPERTY")
        return replace(model, violates=only)
    return model


def _model(entry: Mapping[str, Any]) -> Model:
    known = {field.name for field in fields(Model)}
    values = {key: value for key, value in entry.items() if key in known}
    values["module"] = entry["module"].removesuffix(".tla")
    values["laws"] = tuple(entry["laws"])
    values["seconds"] = float(entry["seconds"])
    return Model(**values)


def _bad(path: Path, problems: list[str]) -> CallerError:
    return CallerError(
        f"{MODELS_FILE} cannot be used:\n    " + "\n    ".join(problems),
        allowed="[[model]] entries whose files exist and whose claims TLC can decide",
        where=str(path),
        action="correct the lines above; `Model` in verify/models.py explains the keys",
    )
