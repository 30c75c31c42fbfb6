"""What the verification tools read from the process environment, all of it, in one place.

THUND_JAVA names a Java, THUND_TLA2TOOLS a tla2tools.jar, THUND_SPECS a folder of specs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from thund_contract.errors import CallerError

MODELS_FILE = "models.toml"
"""The list of models; a folder that has it is a folder of specs."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables as they were read; None where one is unset or empty."""

    java: str | None = None
    jar: str | None = None
    specs: str | None = None
    path: str | None = None


def read_environment() -> Environment:
    """Read the variables of this process."""
    return Environment(
        java=os.environ.get("THUND_JAVA") or None,
        jar=os.environ.get("THUND_TLA2TOOLS") or None,
        specs=os.environ.get("THUND_SPECS") or None,
        path=os.environ.get("PATH") or None,
    )


def find_specs(environment: Environment) -> Path:
    """The folder of specs: THUND_SPECS, else `specs` of the repository this package lies in.

    Raises: CallerError where there is none, as in a package installed without its repository.
    """
    if environment.specs is not None:
        named = Path(environment.specs)
        if not (named / MODELS_FILE).is_file():
            raise CallerError(
                f"THUND_SPECS={environment.specs} has no {MODELS_FILE}",
                allowed=f"a folder with the specs and {MODELS_FILE}",
                where="environment variable THUND_SPECS",
                action="correct the path, or unset the variable",
            )
        return named.resolve()
    beside = Path(__file__).resolve().parents[3] / "specs"
    if not (beside / MODELS_FILE).is_file():
        raise CallerError(
            f"no specs beside this package: {beside / MODELS_FILE} is missing",
            allowed="an editable install of the repository, or THUND_SPECS=FOLDER",
            where=str(Path(__file__).parent),
            action="run `pip install -e .` in a clone, or set THUND_SPECS to its specs folder",
        )
    return beside
