"""What a server's packets say, for the raw clients."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


@dataclass
class Reply:
    """The reply to a command. `kind`: "ok", "err", "rows" or, cut short by an error after rows, "err"."""

    kind: str
    code: int = 0
    sqlstate: str = ""
    message: str = ""
    affected: int = 0
    insert_id: int = 0
    status: int = 0
    warnings: int = 0
    info: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[bytes | None, ...]] = field(default_factory=list)
    sequence: list[int] = field(default_factory=list)

    @property
    def value(self) -> bytes | None:
        """The first value of the first row."""
        assert self.kind == "rows", self
        return self.rows[0][0]

    @property
    def in_order(self) -> bool:
        """Whether the packets' sequence numbers go up by one."""
        first = self.sequence[0]
        return self.sequence == [(first + n) % 256 for n in range(len(self.sequence))]


def lenenc(data: bytes, pos: int) -> tuple[int | None, int]:
    """The length-encoded integer at `pos`, and where it ends."""
    first = data[pos]
    if first < 0xFB:
        return first, pos + 1
    if first == 0xFB:
        return None, pos + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[pos + 1 : pos + 1 + size], "little"), pos + 1 + size


def text(data: bytes, pos: int) -> tuple[bytes | None, int]:
    """The length-encoded string at `pos`, and where it ends."""
    length, pos = lenenc(data, pos)
    if length is None:
        return None, pos
    return data[pos : pos + length], pos + length


def is_eof(payload: bytes) -> bool:
    return payload[:1] == b"\xfe" and len(payload) < 9


def ok_of(data: bytes, sequence: list[int]) -> Reply:
    affected, pos = lenenc(data, 1)
    insert_id, pos = lenenc(data, pos)
    status, warnings = struct.unpack_from("<HH", data, pos)
    info = data[pos + 4 :]
    words = (text(info, 0)[0] or b"").decode() if info else ""
    return Reply(
        "ok",
        affected=affected or 0,
        insert_id=insert_id or 0,
        status=status,
        warnings=warnings,
        info=words,
        sequence=sequence,
    )


def error_of(data: bytes, sequence: list[int]) -> Reply:
    code = struct.unpack_from("<H", data, 1)[0]
    if data[3:4] == b"#":
        state, message = data[4:9].decode(errors="replace"), data[9:].decode(errors="replace")
    else:
        state, message = "", data[3:].decode(errors="replace")
    return Reply("err", code=code, sqlstate=state, message=message, sequence=sequence)


def column_name(definition: bytes) -> str:
    pos = 0
    for _ in range(4):
        _, pos = text(definition, pos)
    return (text(definition, pos)[0] or b"").decode(errors="replace")


def row_of(data: bytes, count: int) -> tuple[bytes | None, ...]:
    values, pos = [], 0
    for _ in range(count):
        value, pos = text(data, pos)
        values.append(value)
    assert pos == len(data), "bytes behind the row"
    return tuple(values)
