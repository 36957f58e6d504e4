"""A piece of some bytes. Compiled, a slice of bytes makes three objects besides the one that is wanted."""

from __future__ import annotations


def piece(data: bytes, begin: int, end: int) -> bytes:
    """`data[begin:end]`, which must lie within it."""
    if not 0 <= begin <= end <= len(data):
        raise IndexError("no such piece")
    text = data
    return text[begin:end]
