"""Names in the character set that a statement is written in: read as Unicode, and written back in it.

Schema, topology and session name databases, tables and variables in Unicode. A statement has them as bytes of
its client's character set, and so must every name that is put into its text. Rules do not know the set: while
one statement is planned, `writing` says it to `encoded`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from .characters import MASKED

if TYPE_CHECKING:
    from rewriter.env import Env

_UTF8: Final = "utf-8"
ESCAPE: Final = b"\xff"
"""Stands in masked texts before a byte whose highest bit was set: see masks.py."""
_MASKED: Final = re.compile(rb"\xff(.)", re.DOTALL)
_written: Final[ContextVar[tuple[str, bool]]] = ContextVar("written", default=(_UTF8, False))


def unmask(text: bytes) -> bytes:
    """The text that `mask` was given."""
    return _MASKED.sub(lambda found: ESCAPE if found[1] == ESCAPE else bytes((found[1][0] & 0x7F,)), text)


def decoded(raw: bytes, env: Env) -> str:
    """A name in a statement as Unicode; bytes that are no characters become surrogates."""
    if env.codec == _UTF8 or raw.isascii():
        return raw.decode(_UTF8, "surrogateescape")
    return (unmask(raw) if env.charset in MASKED else raw).decode(env.codec, "surrogateescape")


@contextmanager
def writing(env: Env) -> Iterator[None]:
    """What `encoded` writes within is for a statement of this environment."""
    token = _written.set((env.codec, env.charset in MASKED))
    try:
        yield
    finally:
        _written.reset(token)


def encoded(name: str) -> bytes:
    """A name as the statement that is being planned has it: the reverse of `decoded`. A name that its
    character set lacks is written in UTF-8, and a server does not find it.
    """
    codec, masked = _written.get()
    if codec == _UTF8 or name.isascii():
        return name.encode(_UTF8, "surrogateescape")
    try:
        if not masked:
            return name.encode(codec, "surrogateescape")
        return b"".join(_mask(one.encode(codec, "surrogateescape")) for one in name)
    except UnicodeEncodeError:
        return name.encode(_UTF8, "surrogateescape")


def as_written(name: str) -> str:
    """`encoded`, its bytes as UTF-8 with surrogates: for what is made text later, without the statement."""
    return encoded(name).decode(_UTF8, "surrogateescape")


def _mask(character: bytes) -> bytes:
    """One character as `mask` writes it."""
    if len(character) == 1:
        return character
    return b"".join(bytes((byte,)) if byte >= 0x80 else ESCAPE + bytes((byte | 0x80,)) for byte in character)
