"""The frames of TLC's messages: nested, unclosed, and lines between them."""

from __future__ import annotations

from thund_conformance.verify.messages import Message, read_messages

NESTED = """Parsing file A.tla
@!@!@STARTMSG 1000:1 @!@!@
TLC threw an exception
: @!@!@STARTMSG 5001:0 @!@!@
File not found.
@!@!@ENDMSG 5001 @!@!@
the end
@!@!@ENDMSG 1000 @!@!@
bare @!@!@STARTMSG 2262:0 @!@!@
TLC2 Version
"""


def test_required_frames_are_taken_apart() -> None:
    assert list(read_messages(NESTED.splitlines(keepends=True))) == [
        Message(None, 0, "Parsing file A.tla"),
        Message(5001, 0, "File not found."),
        Message(1000, 1, "TLC threw an exception\n: \nFile not found.\nthe end"),
        Message(None, 0, "bare "),
        Message(2262, 0, "TLC2 Version"),
    ]
