"""Query attributes: what clients with CLIENT_QUERY_ATTRIBUTES put in front of the text of COM_QUERY.

A count (length-encoded), the number of sets (always 1) and, if the count is not 0, as in COM_STMT_EXECUTE a
NULL bitmap, the byte 1, type and name of each, and their values. Clients without attributes to send, as
nearly all, begin with `NOTHING`.

Source: the "COM_QUERY" chapter of MySQL's client/server protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .binary import Attributes, attributes_of, read_named, value_end
from .constants import MAX_PAYLOAD, ColumnType
from .packets import ProtocolError, frame, lenenc, read_lenenc, read_lenenc_bytes

NOTHING: Final = b"\0\1"

_TEXTS: Final = frozenset(
    {
        *(ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING),
        *(ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB),
    }
)


def read(payload: bytes, pos: int) -> tuple[bytes, int]:
    """The attributes at `pos`, as a server gets them, and where the text of the statement begins. Raises
    ProtocolError.
    """
    count, pos = read_lenenc(payload, pos)
    sets, pos = read_lenenc(payload, pos)
    if count is None or sets != 1:
        raise ProtocolError("not one set of query attributes")
    if not count:
        return NOTHING, pos
    size = (count + 7) // 8
    nulls, pos = int.from_bytes(payload[pos : pos + size], "little"), pos + size
    if payload[pos : pos + 1] != b"\1":
        raise ProtocolError("the types of the query attributes are missing")
    named, pos = read_named(payload, pos + 1, count)
    found, end = attributes_of(nulls, named, payload, pos)
    head = lenenc(count) + b"\1" + found.nulls.to_bytes(size, "little") + b"\1"
    return head + found.named + found.values, end


def attributed(packets: bytes, attributes: bytes) -> bytes:
    """Whole commands, as packets, for a server that looks for attributes in each COM_QUERY: in the last there
    are these, in others none.
    """
    found: list[bytes] = []  # payloads
    pos, size = 0, 0
    payload = b""
    while pos < len(packets):
        size = int.from_bytes(packets[pos : pos + 3], "little")
        payload += packets[pos + 4 : pos + 4 + size]
        pos += 4 + size
        if size < MAX_PAYLOAD:
            found.append(payload)
            payload = b""
    return b"".join(
        frame(one if one[:1] != b"\x03" else b"\x03" + (NOTHING if place else attributes) + one[1:])
        for place, one in zip(range(len(found) - 1, -1, -1), found, strict=True)
    )


def named_values(attributes: bytes) -> dict[bytes, tuple[int, int]]:
    """Where the values stand in what `read` has found to be the attributes of a COM_QUERY, by name. Those
    that are NULL have none, nor have numbers and times. Raises ProtocolError.
    """
    count, pos = read_lenenc(attributes, 0)
    _, pos = read_lenenc(attributes, pos)
    if not count:
        return {}
    size = (count + 7) // 8
    nulls, begin = int.from_bytes(attributes[pos : pos + size], "little"), pos + size + 1
    _, end = read_named(attributes, begin, count)
    named, values = attributes[begin:end], attributes[end:]
    found = values_of(Attributes(count, nulls, named, values))
    return {name: (end + start, end + stop) for name, (start, stop) in found.items()}


def values_of(extra: Attributes) -> Mapping[bytes, tuple[int, int]]:
    """Where texts stand in `extra.values`, by the name of the attribute. Raises ProtocolError."""
    found: dict[bytes, tuple[int, int]] = {}
    pos = begin = 0
    for number in range(extra.number):
        if pos >= len(extra.named):
            raise ProtocolError("the names of the query attributes are missing")
        type_ = extra.named[pos]
        name, pos = read_lenenc_bytes(extra.named, pos + 2)
        if extra.nulls >> number & 1 or type_ == ColumnType.NULL:
            continue
        end = value_end(extra.values, begin, type_)
        if type_ in _TEXTS and name is not None:
            found[name] = read_lenenc(extra.values, begin)[1], end
        begin = end
    return found
