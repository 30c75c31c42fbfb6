"""Event-time windows that keep their laws.

Importing this is quick: what needs Arrow or numba loads it when it is used. The words to write a
pipeline with are in `thund.builder`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thund.connectors.stream import with_stream_input
    from thund.definition import Pipeline
    from thund.launch import run, status
    from thund.monoids import Monoid, register_monoid

__all__ = ["Monoid", "Pipeline", "register_monoid", "run", "status", "with_stream_input"]

_HOMES = {
    "Monoid": "thund.monoids",
    "Pipeline": "thund.definition",
    "register_monoid": "thund.monoids",
    "run": "thund.launch",
    "status": "thund.launch",
    "with_stream_input": "thund.connectors.stream",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'thund' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
