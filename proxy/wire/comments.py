"""A comment in front of statements, which says to whoever looks at a server whose they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from .constants import MAX_PAYLOAD

_QUERY: Final = 3
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_.@:-]")
_LONGEST: Final = 64
_BEGINNING: Final = 2048


@lru_cache(4096)
def comment_of(user: str, address: str, id: int) -> bytes:
    """`/* shop, 10.0.0.7:51234, 16777220 */ `. Whatever the names are, it is one comment, in ASCII: what
    could end it, or would mean something to a server, is a `?`.
    """
    words = (_OTHERS.sub("?", one[:_LONGEST]) for one in (user, address))
    return f"/* {', '.join(words)}, {id} */ ".encode()


def commented(packets: bytes, comment: bytes, left_alone: int) -> bytes:
    """The packets of commands with the comment in front of every COM_QUERY, but for the first `left_alone`
    commands, and for such that fill a packet.
    """
    return prefixed(packets, lambda _: comment, left_alone)


def prefixed(packets: bytes, comment_for: Callable[[bytes], bytes], left_alone: int) -> bytes:
    """The same, with the comment that `comment_for` gives for each text; it may look at the text's first two
    KB.
    """
    found = []
    pos = 0
    whole = True  # the packet at hand begins a command
    while pos < len(packets):
        size = int.from_bytes(packets[pos : pos + 3], "little")
        end = pos + 4 + size
        comment = b""
        if whole and left_alone <= 0 and packets[pos + 4] == _QUERY:
            comment = comment_for(packets[pos + 5 : min(end, pos + 5 + _BEGINNING)])
        if comment and size + len(comment) < MAX_PAYLOAD:
            length = (size + len(comment)).to_bytes(3, "little")
            found += [length, packets[pos + 3 : pos + 5], comment, packets[pos + 5 : end]]
        else:
            found.append(packets[pos:end])
        left_alone -= whole
        whole = size < MAX_PAYLOAD
        pos = end
    return b"".join(found)
