"""What the tools need to know of .tla and .cfg files: names, and where they stand.

It refuses to understand TLA+: SANY parses, this only finds declarations that start a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_DEFINITION = re.compile(
    r"^(?:LOCAL[ \t]+)?([A-Za-z_]\w*)[ \t]*(?:\([^)\n]*\)|\[[^\]\n]*\])?[ \t]*==(?!=)", re.MULTILINE
)
_NAMES = r"[A-Za-z_]\w*(?:\([\s_,]*\))?"
_DECLARED = re.compile(rf"^[ \t]*CONSTANTS?\b\s+({_NAMES}(?:\s*,\s*{_NAMES})*)", re.MULTILINE)
_EXTENDS = re.compile(rf"^[ \t]*EXTENDS\b\s+({_NAMES}(?:\s*,\s*{_NAMES})*)", re.MULTILINE)
_ASSUME = re.compile(r"^ASSUM(?:E|PTION)\b(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_LAW = re.compile(r"^\s*\\\*\s*LAW\s+([A-Z]\d+(?:\s*,\s*[A-Z]\d+)*)\s+(\w+)\s*:\s*(\S.*)$")
_LAW_LIKE = re.compile(r"^\s*\\\*\s*LAW\b")
_COMMENT = re.compile(r"^\s*(?:\\\*|\(\*.*\*\)\s*$)")
_COMMENT_OR_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\\\*[^\n]*|\(\*')
_OPEN_OR_CLOSE = re.compile(r"\(\*|\*\)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TEMPORAL = re.compile(r"\[\]|<>|~>|\bWF_|\bSF_|!")

_SECTIONS = {
    "SPECIFICATION": "SPECIFICATION",
    "INIT": "INIT",
    "NEXT": "NEXT",
    "CONSTANT": "CONSTANT",
    "CONSTANTS": "CONSTANT",
    "INVARIANT": "INVARIANT",
    "INVARIANTS": "INVARIANT",
    "PROPERTY": "PROPERTY",
    "PROPERTIES": "PROPERTY",
    "CONSTRAINT": "CONSTRAINT",
    "CONSTRAINTS": "CONSTRAINT",
    "ACTION_CONSTRAINT": "ACTION_CONSTRAINT",
    "ACTION_CONSTRAINTS": "ACTION_CONSTRAINT",
    "SYMMETRY": "SYMMETRY",
    "VIEW": "VIEW",
    "ALIAS": "ALIAS",
    "POSTCONDITION": "POSTCONDITION",
    "CHECK_DEADLOCK": "CHECK_DEADLOCK",
    "PERIODIC": "PERIODIC",
}
_CONSTANT_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:=|<-)")


@dataclass(frozen=True, slots=True)
class LawComment:
    r"""A comment `\* LAW W3, W5 Name: sentence.` and the operator that follows it, if any."""

    laws: tuple[str, ...]
    name: str
    defined: str | None
    line: int


@dataclass(frozen=True, slots=True)
class TlaModule:
    """One .tla file. `bodies` maps an operator to its text without comments and strings."""

    path: Path
    extends: tuple[str, ...]
    constants: frozenset[str]
    bodies: Mapping[str, str]
    assumed: frozenset[str]
    law_comments: tuple[LawComment, ...]
    law_comments_unread: tuple[int, ...]

    @property
    def name(self) -> str:
        """The module's name, which is its file's."""
        return self.path.stem


@dataclass(frozen=True, slots=True)
class Cfg:
    """One .cfg file: the names in each of its sections, under the section's singular name."""

    path: Path
    sections: Mapping[str, tuple[str, ...]]

    def names(self, section: str) -> tuple[str, ...]:
        """The names listed in a section, or none."""
        return self.sections.get(section, ())

    @property
    def checked(self) -> tuple[str, ...]:
        """The operators that TLC checks: invariants and properties."""
        return self.names("INVARIANT") + self.names("PROPERTY")


def read_module(path: Path) -> TlaModule:
    """Read one .tla file."""
    source = path.read_text(encoding="utf-8")
    text = without_comments(source)
    definitions = list(_DEFINITION.finditer(text))
    ends = [match.start() for match in definitions[1:]] + [len(text)]
    assumed = {word for found in _ASSUME.finditer(text) for word in _WORD.findall(found[1])}
    declared = _EXTENDS.search(text)
    lines = source.splitlines()
    return TlaModule(
        path=path,
        extends=tuple(_WORD.findall(declared[1])) if declared else (),
        constants=frozenset(
            word
            for found in _DECLARED.finditer(text)
            for word in _WORD.findall(re.sub(r"\([\s_,]*\)", "", found[1]))
        ),
        bodies={
            match[1]: text[match.end() : end] for match, end in zip(definitions, ends, strict=True)
        },
        assumed=frozenset(assumed),
        law_comments=tuple(_law_comments(lines)),
        law_comments_unread=tuple(
            number
            for number, line in enumerate(lines, start=1)
            if _LAW_LIKE.match(line) and not _LAW.match(line)
        ),
    )


def read_modules(folder: Path) -> dict[str, TlaModule]:
    """All .tla files of a folder, by name."""
    return {path.stem: read_module(path) for path in sorted(folder.glob("*.tla"))}


def extended(name: str, modules: Mapping[str, TlaModule]) -> tuple[TlaModule, ...]:
    """The module and all that it extends, directly or not, as far as they are in the folder."""
    reached: dict[str, TlaModule] = {}
    waiting = [name]
    while waiting:
        at = waiting.pop()
        if at in modules and at not in reached:
            reached[at] = modules[at]
            waiting.extend(modules[at].extends)
    return tuple(reached.values())


def is_temporal(name: str, modules: tuple[TlaModule, ...]) -> bool:
    """Whether an operator speaks of more than one state, itself or through what it names."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        for module in modules:
            if (body := module.bodies.get(at)) is not None:
                if _TEMPORAL.search(body):
                    return True
                waiting.extend(_WORD.findall(body))
    return False


def read_cfg(path: Path) -> Cfg:
    """Read one .cfg file."""
    sections: dict[str, list[str]] = {}
    section, text = "", ""
    words = without_comments(path.read_text(encoding="utf-8"), keep_strings=True).split()
    constants: list[str] = []
    for word in words:
        if word in _SECTIONS:
            section = _SECTIONS[word]
            sections.setdefault(section, [])
        elif section == "CONSTANT":
            constants.append(word)
        else:
            sections.setdefault(section, []).append(word.rstrip(","))
    text = " ".join(constants)
    if text:
        sections["CONSTANT"] = _CONSTANT_NAME.findall(re.sub(r'"[^"]*"', '""', text))
    return Cfg(path=path, sections={key: tuple(names) for key, names in sections.items()})


def without_comments(source: str, *, keep_strings: bool = False) -> str:
    """The text with comments blanked, and strings too unless kept; lines keep their numbers."""
    depth, at, parts = 0, 0, list[str]()
    while True:
        match = (_OPEN_OR_CLOSE if depth else _COMMENT_OR_STRING).search(source, at)
        between = source[at : match.start() if match else None]
        parts.append(_blank(between) if depth else between)
        if match is None:
            return "".join(parts)
        token, at = match.group(), match.end()
        if token.startswith('"'):
            parts.append(token if keep_strings else '""')
        else:
            parts.append(_blank(token))
            depth += {"(*": 1, "*)": -1}.get(token, 0)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _law_comments(lines: list[str]) -> Iterator[LawComment]:
    for number, line in enumerate(lines, start=1):
        if (found := _LAW.match(line)) is None:
            continue
        below = number
        while below < len(lines) and _COMMENT.match(lines[below]):
            below += 1
        definition = _DEFINITION.match(lines[below]) if below < len(lines) else None
        yield LawComment(
            laws=tuple(re.split(r"\s*,\s*", found[1])),
            name=found[2],
            defined=definition[1] if definition else None,
            line=number,
        )
