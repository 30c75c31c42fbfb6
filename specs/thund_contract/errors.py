"""The error families: who has to act, and four plain facts for them."""

from __future__ import annotations


class ThundError(Exception):
    """Any error that thund raises on purpose.

    found: what was there. allowed: what may be there. where: file, partition, offset, option.
    action: what to do. code is stable; texts are not.
    """

    code = "thund"

    def __init__(
        self, found: str, *, allowed: str, where: str, action: str, code: str | None = None
    ) -> None:
        self.found, self.allowed, self.where, self.action = found, allowed, where, action
        if code is not None:
            self.code = code
        super().__init__(f"{found}\n  allowed: {allowed}\n  where:   {where}\n  do:      {action}")


class CallerError(ThundError):
    """You: a definition, an option or a call that cannot be right."""

    code = "caller"


class InputError(ThundError):
    """The data: it is not what it was said to be. Single rows go to a lane instead."""

    code = "input"


class StoreError(ThundError):
    """The world: a store, a sink or a disk refused. What was committed stands."""

    code = "store"


class Fenced(StoreError):
    """Another engine created this manifest; this one stops (law K6)."""

    code = "fenced"


class LawBroken(ThundError):
    """Us: a law of thund does not hold. Stop, and report it."""

    code = "law"
