"""The messages that TLC writes under -tool: framed, numbered, nested, and told as they come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Severities, as TLC has them.
ERROR, BUG, WARNING = 1, 2, 3

# Codes, the same in every TLC from 2.15 to 2.20.
ASSUMPTION_FALSE = 2104
INVARIANT_FALSE_AT_START = 2107
PROPERTY_FALSE_AT_START = 2108
INVARIANT_FALSE = 2110
ACTION_PROPERTY_FALSE = 2112
DEADLOCK = 2114
TEMPORAL_PROPERTY_FALSE = 2116
BEHAVIOUR_SO_FAR = 2121
BACK_TO_STATE = 2122
FINISHED = 2186
SUCCESS = 2193
SEARCH_DEPTH = 2194
TOTALS = 2199
PROGRESS = 2200
STATE = 2217
STUTTERING = 2218
COUNTEREXAMPLE = 2264
SYMMETRY_WITH_LIVENESS = 2279
CONSTRAINT_WITH_LIVENESS = 2284

_START = re.compile(r"@!@!@STARTMSG (-?\d+):(\d+) @!@!@")
_END = re.compile(r"@!@!@ENDMSG (-?\d+) @!@!@")


@dataclass(frozen=True, slots=True)
class Message:
    """One framed message; a line outside of any frame has code None."""

    code: int | None
    severity: int
    text: str


def read_messages(lines: Iterable[str]) -> Iterator[Message]:
    """Each message when its frame closes. The text of a message within another is in both."""
    frames: list[tuple[int, int, list[str]]] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        if (start := _START.search(line)) is not None:
            before = line[: start.start()]
            if frames and before.strip():
                frames[-1][2].append(before)
            elif before:
                yield Message(None, 0, before)
            frames.append((int(start[1]), int(start[2]), []))
        elif frames and _END.search(line) is not None:
            code, severity, body = frames.pop()
            if frames:
                frames[-1][2].extend(body)
            yield Message(code, severity, "\n".join(body))
        elif frames:
            frames[-1][2].append(line)
        else:
            yield Message(None, 0, line)
    for code, severity, body in reversed(frames):
        yield Message(code, severity, "\n".join(body))
