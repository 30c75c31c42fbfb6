"""The one kind of error that a definition has: a key, what stands there, what may, what to do."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import NoReturn

from thund_contract.errors import CallerError


def fail(
    key: str, value: object, problem: str, *, allowed: str, action: str, where: str
) -> NoReturn:
    """Refuse a definition.

    Raises: CallerError, always.
    """
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise CallerError(f"{key}: {shown} {problem}", allowed=allowed, where=where, action=action)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """What a mistyped word may have meant.

    >>> nearest("Europ/Berlin", ["Europe/Berlin", "Asia/Tokyo"])
    'Europe/Berlin'
    """
    return next(iter(difflib.get_close_matches(word, list(words), 1)), None)
