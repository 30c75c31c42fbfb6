"""How a seeded bug gets into a running implementation, and what a mutant is."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thund.words import part


class Patches:
    """Replaces attributes of the implementation for the rest of the process, which is a child.

    Raises: LookupError from each method where the attribute is not there any more: a mutant that
    changes nothing would survive for the wrong reason.
    """

    def replace(self, owner: Any, name: str, new: object) -> None:
        """Put `new` in place of a module's or a class's own attribute."""
        self.original(owner, name)
        setattr(owner, name, new)

    def wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Put `around` in place of a function; it gets the original one first, then all arguments."""
        original = self.original(owner, name)
        setattr(owner, name, lambda *args, **kwargs: around(original, *args, **kwargs))

    def edit(self, owner: Any, name: str, old: str, new: str) -> None:
        """Put another text in place of one that a function has once; a kernel is compiled again."""
        original = self.original(owner, name)
        function = getattr(original, "py_func", original)
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(old) != 1:
            raise LookupError(f"{name} has {old!r} {source.count(old)} times: mend the catalogue")
        _, _, body = source.replace(old, new).partition("def ")
        names = dict(vars(sys.modules[function.__module__]))
        code = compile(f"from __future__ import annotations\ndef {body}", name, "exec")
        exec(code, names)  # noqa: S102 - the text is the project's own
        edited = names[name]
        setattr(owner, name, edited if function is original else part(edited))

    def original(self, owner: Any, name: str) -> Any:
        """The attribute as it stands in the code."""
        if name not in vars(owner):
            raise LookupError(f"{owner.__name__} has no {name} of its own: mend the catalogue")
        return vars(owner)[name]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One seeded bug. patch puts it in; why says what goes wrong with it."""

    name: str
    law: str
    patch: Callable[[Patches], None]
    why: str
