"""Documents that are too large for a ZooKeeper node as they are: packed with gzip, and only those.

A topology of 65,536 ranges has some megabytes, and packed some hundred kilobytes. What fits is stored as it
is written, for people and their programs.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Final

from config.document import MAX_BYTES

LARGEST_NODE: Final = 1_000_000
"""Bytes that servers take unless they are told otherwise (`jute.maxbuffer`, which names and all counts)."""

_GZIP: Final = b"\x1f\x8b"


def packed(content: bytes) -> bytes:
    """What a node is to hold."""
    return content if len(content) <= LARGEST_NODE else gzip.compress(content, 6, mtime=0)


def unpacked(content: bytes) -> bytes:
    """What a node means. Of more than the largest document there is, only so much as shows that it is too
    large; what is damaged stays as it is, and will be refused as no text.
    """
    if not content.startswith(_GZIP):
        return content
    try:
        return zlib.decompressobj(wbits=31).decompress(content, 2 * MAX_BYTES)
    except zlib.error:
        return content
