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
    from thund.launch import run

__all__ = ["Pipeline", "run", "with_stream_input"]

_HOMES = {
    "Pipeline": "thund.definition",
    "run": "thund.launch",
    "with_stream_input": "thund.connectors.stream",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'thund' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
