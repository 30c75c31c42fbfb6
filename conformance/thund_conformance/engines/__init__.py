"""Engines to judge, by name; each is made for one scenario, so that it can know its types."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from thund_contract.engine import Engine
from thund_contract.scenario import Scenario

Maker = Callable[[Scenario], Engine]
"""Gives an engine for one scenario."""

REFERENCE, THUND, THUND_ROWWISE = "reference", "thund", "thund-rowwise"
BUILT_IN = (REFERENCE, THUND, THUND_ROWWISE)


def make(name: str, scenario: Scenario) -> Engine:
    """A built-in engine by its name, or one of a third party as "module:attribute".

    The attribute is an engine, or a class or function that makes one without arguments.

    Raises: ValueError for a name that is neither.
    """
    if name == REFERENCE:
        from thund_conformance.engines.reference import Reference

        return Reference()
    if name in (THUND, THUND_ROWWISE):
        from thund_conformance.engines.thund import Thund

        return Thund(scenario, gather=name == THUND)
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r} is no engine; allowed: {', '.join(BUILT_IN)}, module:attribute")
    found = getattr(importlib.import_module(module), attribute)
    engine: Engine = found() if callable(found) else found
    return engine
