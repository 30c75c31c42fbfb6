"""`thund verify` from its command line: lines, the last line, the exit code, the file."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from thund_conformance.verify import report, tlc
from thund_conformance.verify.cli import verify
from thund_conformance.verify.display import Work, show_progress
from thund_conformance.verify.models import Finding, Model
from thund_contract.errors import CallerError

MODULE = r"""---- MODULE M ----
EXTENDS Naturals
CONSTANT N
VARIABLE x
Init == x = 0
Next == x < N /\ x' = x + 1
TypeInv == x \in 0..N
Small == x < 3
Far == x # 2
====
"""
ENTRY = """[[model]]
name = "{name}"
module = "M"
cfg = "{name}.cfg"
expect = "{expect}"
laws = ["W3"]
seconds = 1
{more}
"""


def write_specs(folder: Path, *, distinct: int = 5, n: int = 4) -> Path:
    (folder / "M.tla").write_text(MODULE)
    for name, listed in (("Good", "TypeInv"), ("Wrong", "TypeInv Small"), ("Reached", "Far")):
        cfg = f"CONSTANT N = {n} INIT Init NEXT Next INVARIANT {listed}"
        (folder / f"{name}.cfg").write_text(cfg)
    good = ENTRY.format(name="Good", expect="ok", more=f'distinct = {distinct}\nwhy = "Small."')
    wrong = 'violates = "Small"\nreason = "N is too big."'
    far = 'violates = "Far"\nwhy = "Two is reached."\nwitness = true'
    text = good + ENTRY.format(name="Wrong", expect="invariant", more=wrong)
    text += ENTRY.format(name="Reached", expect="invariant", more=far)
    (folder / "models.toml").write_text(text)
    return folder


def call(monkeypatch: pytest.MonkeyPatch, specs: Path, *arguments: str) -> Result:
    monkeypatch.setenv("THUND_SPECS", str(specs))
    return CliRunner().invoke(verify, arguments)


def test_required_a_pass_is_one_line_per_model_and_a_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "verify.json"
    specs = write_specs(tmp_path)
    result = call(monkeypatch, specs, "--json", str(file))
    lines = result.output.splitlines()
    assert result.exit_code == 0, result.output
    assert len(lines) == 4
    assert all(line.startswith("pass  ") for line in lines[:3])
    assert lines[3].startswith("verify: PASS models=3 ok=2 broken=1 states=12 seconds=")
    told = json.loads(file.read_text())
    assert told["passed"] is True
    assert [entry["name"] for entry in told["results"]] == ["Good", "Wrong", "Reached"]
    assert told["results"][0]["distinct_pinned"] == told["results"][0]["distinct"] == 5
    assert told["results"][1]["trace"][-1]["changes"] == {"x": "3"}


def test_required_a_wrong_count_and_a_broken_model_that_holds_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = write_specs(tmp_path, distinct=5, n=2)
    result = call(monkeypatch, specs)
    assert result.exit_code == 1
    for words in (
        "FAIL  ok      Good",
        "found:    ok, 3 distinct states",
        "expected: ok, 5 distinct states",
        "FAIL  broken  Wrong",
        "expected: invariant of Small",
        "thund verify --model Wrong",
        "-config Wrong.cfg",
        "pass  witness Reached",
    ):
        assert words in result.output
    last = result.output.splitlines()[-1]
    assert last.startswith("verify: FAIL models=3 ok=1 broken=0 states=9 seconds=")
    assert last.endswith(" failed=Good,Wrong")


def test_required_a_failure_shows_the_trace_as_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = write_specs(tmp_path)
    text = (specs / "models.toml").read_text()
    (specs / "Good.cfg").write_text("CONSTANT N = 4 INIT Init NEXT Next INVARIANT Small")
    (specs / "models.toml").write_text(text)
    result = call(monkeypatch, specs, "--model", "Good")
    assert result.exit_code == 1
    assert "found:    invariant of Small" in result.output
    assert "│ 4     │ Next              │ x = 3        │" in result.output


def test_required_models_are_listed_without_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THUND_JAVA", "nothing")
    result = call(monkeypatch, write_specs(tmp_path), "--list", "--only", "broken")
    assert result.exit_code == 0
    assert [line.split()[:3] for line in result.output.splitlines()] == [["broken", "Wrong", "W3"]]


def test_required_an_error_is_not_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = write_specs(tmp_path)
    monkeypatch.setenv("THUND_TLA2TOOLS", str(tmp_path / "no.jar"))
    result = call(monkeypatch, specs)
    assert isinstance(result.exception, CallerError)
    assert result.exit_code == 1
    assert result.output == "verify: FAIL models=0 ok=0 broken=0 states=0 seconds=0.0\n"


def test_required_no_model_is_not_a_pass() -> None:
    assert not report.Report((), 0.0, "", "").passed


def test_required_an_interrupt_ends_the_runs(tmp_path: Path) -> None:
    """As Ctrl-C would: raised while one model runs and another waits."""
    specs = write_specs(tmp_path)
    started = []

    def progress(step: report.Step) -> None:
        started.append(step.model.name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.verify_models(specs, jobs=1, progress=progress)
    assert len(started) == 1


def test_required_the_bar_moves_with_the_work() -> None:
    slow = Model("Slow", "M", "S.cfg", "ok", (), 8.0, distinct=5)
    work = Work(10.0)
    work.hear(report.Step(slow), now=100.0)
    assert work.seconds_done(now=104.0) == 4.0
    work.hear(report.Step(slow, distinct=3), now=103.0)
    assert work.words() == "3 states  Slow"
    assert work.seconds_done(now=200.0) == pytest.approx(7.6)


def test_required_a_terminal_gets_a_bar_and_the_lines() -> None:
    model = Model("Good", "M", "Good.cfg", "ok", (), 1.0, distinct=5)
    run = tlc.Run("ok", None, "", None, tlc.Progress(5, 5, 0), 1, 0, 0.1)
    finding = Finding(passed=True, found="ok", expected="ok")
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    with show_progress(console, 1.0) as progress:
        progress(report.Step(model))
        progress(report.Step(model, 5, report.Result(model, run, finding, "")))
    assert "pass  ok      Good" in written.getvalue()
    assert "5 states" in written.getvalue()
    assert "━" in written.getvalue()


def test_required_the_commands_import_nothing_heavy() -> None:
    script = (
        "import sys, thund_conformance.verify.cli, thund_conformance.verify.laws_cli\n"
        "heavy = {'rich', 'pyarrow', 'numba', 'hypothesis', 'asyncio', 'concurrent.futures'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
