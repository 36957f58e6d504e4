"""The context of a trace, as it comes with a statement and goes on with it.

Source: W3C Trace Context; sqlcommenter's specification (key='value' in a comment before or behind the
statement, values URL-encoded).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

KEY: Final = b"traceparent"
STATE: Final = b"tracestate"
SIZE: Final = 55
"""Bytes of a traceparent of version 00, the only one that is written."""
SAMPLED: Final = 1

_LOOK: Final = 4096
"""Bytes at a statement's end, and at its beginning, in which a comment is looked for."""

_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_WRITTEN: Final = re.compile(rb"(?<!\w)traceparent\s*=\s*(?:'([^'\\]{55,200})'|([0-9a-f-]{55})(?=[\s,*]))")
_STATE_WRITTEN: Final = re.compile(rb"tracestate\s*=\s*'([^'\\]{1,1500})'")
_STATE: Final = re.compile(rb"[ -~]{1,512}")


class Parent(NamedTuple):
    """Who has caused a statement. IDs are lower-case hexadecimal digits: 32 of the trace, 16 of the span;
    `state` is what else the tracing systems on the way have noted, "" for nothing.
    """

    trace: str
    span: str
    flags: int
    state: str = ""

    @property
    def sampled(self) -> bool:
        """Whether somebody keeps the trace."""
        return bool(self.flags & SAMPLED)


def parse(value: bytes, state: bytes = b"") -> Parent | None:
    """A traceparent, and the tracestate beside it; None when it is not to be used. A later version than 00
    may say more behind what is known.
    """
    found = _PARENT.fullmatch(value)
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == b"ff" or (version == b"00" and more) or not trace.strip(b"0") or not span.strip(b"0"):
        return None
    kept = state.decode() if _STATE.fullmatch(state) else ""
    return Parent(trace.decode(), span.decode(), int(flags, 16), kept)


def in_comment(sql: bytes) -> Parent | None:
    """The context in a comment at the statement's end, or at its beginning. What is written anywhere else
    may be within a text.
    """
    found, end = None, sql[-_LOOK:]
    if KEY in end:
        end = end.rstrip(b" \t\r\n;\0")
        if end.endswith(b"*/"):
            found = _of_comment(end[end.rfind(b"/*") :])
    if found is None and KEY in (begin := sql[:_LOOK]):
        begin = begin.lstrip()
        if begin.startswith(b"/*"):
            found = _of_comment(begin[: begin.find(b"*/") + 1])
    return found


def _of_comment(comment: bytes) -> Parent | None:
    written = _WRITTEN.search(comment)
    if written is None:
        return None
    state = _STATE_WRITTEN.search(comment)
    return parse(written[1] or written[2], unquote_to_bytes(state[1]) if state is not None else b"")


def traceparent(trace: str, span: str, flags: int) -> str:
    """The context as it is handed on: the `span` has caused what it goes with."""
    return f"00-{trace}-{span}-{flags:02x}"


def comment(trace: str, span: str, flags: int, state: str) -> bytes:
    """The same as a comment, with the blank between it and the statement."""
    more = f",tracestate='{quote(state, safe='')}'" if state else ""
    return f"/*traceparent='{traceparent(trace, span, flags)}'{more}*/ ".encode()
