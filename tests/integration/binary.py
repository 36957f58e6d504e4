"""`Binary`: prepared statements over a `Raw` connection, every packet of a reply kept as it came.

It shares no code with the proxy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.integration import raw as wire
from tests.integration.raw import Raw, command, packet
from tests.integration.replies import column_name, is_eof, lenenc, ok_of

PREPARE, EXECUTE, LONG_DATA, CLOSE, RESET, FETCH = 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1C

TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = range(1, 14)
BIT, JSON, NEWDECIMAL = 16, 245, 246
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING = range(249, 255)
UNSIGNED = 0x8000


@dataclass
class Param:
    """A parameter: its type (with UNSIGNED), and its bytes on the wire; None is NULL."""

    type: int
    data: bytes | None


def integer(value: int, type_: int = LONGLONG, *, unsigned: bool = False) -> Param:
    size = {TINY: 1, SHORT: 2, YEAR: 2, LONG: 4, INT24: 4, LONGLONG: 8}[type_]
    flag = UNSIGNED if unsigned else 0
    return Param(type_ | flag, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))


def double(value: float) -> Param:
    return Param(DOUBLE, struct.pack("<d", value))


def single(value: float) -> Param:
    return Param(FLOAT, struct.pack("<f", value))


def text(value: str | bytes, type_: int = VAR_STRING) -> Param:
    data = value.encode() if isinstance(value, str) else value
    size = len(data)
    head = bytes([size]) if size < 251 else b"\xfe" + size.to_bytes(8, "little")
    return Param(type_, head + data)


def moment(type_: int, *fields: int) -> Param:
    """DATE, DATETIME or TIMESTAMP of year, month, day, hour, minute, second, microsecond: as many as
    given."""
    if not fields:
        return Param(type_, b"\0")
    data = struct.pack("<HBB", *fields[:3])
    if len(fields) > 3:
        data += bytes(fields[3:6])
    if len(fields) > 6:
        data += struct.pack("<I", fields[6])
    return Param(type_, bytes([len(data)]) + data)


def duration(negative: bool, days: int, hour: int, minute: int, second: int, micros: int = 0) -> Param:
    data = struct.pack("<BIBBB", negative, days, hour, minute, second)
    data += struct.pack("<I", micros) if micros else b""
    return Param(TIME, bytes([len(data)]) + data)


NOTHING = Param(NULL, None)


@dataclass
class Prepared:
    """The reply to COM_STMT_PREPARE."""

    id: int
    parameters: int
    columns: int
    warnings: int
    parameter_definitions: list[bytes] = field(default_factory=list)
    column_definitions: list[bytes] = field(default_factory=list)


@dataclass
class Answer:
    """A reply. `rows` are the payloads of rows, `definitions` those of columns."""

    kind: str
    payload: bytes = b""
    definitions: list[bytes] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    status: int = 0
    warnings: int = 0
    sequence: list[int] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The error's number, 0 for none."""
        return int(struct.unpack_from("<H", self.payload, 1)[0]) if self.kind == "err" else 0

    @property
    def message(self) -> str:
        return self.payload[9:].decode()

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column_name(one) for one in self.definitions]

    @property
    def ok(self) -> wire.Reply:
        """An OK packet, read."""
        assert self.kind == "ok", self
        return ok_of(self.payload, self.sequence)


class Binary:
    """Prepared statements on a connection."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def prepare(self, sql: str | bytes) -> Prepared | Answer:
        """The statement, or the error."""
        self.raw.write(command(PREPARE, sql.encode() if isinstance(sql, str) else sql))
        return self.read_prepared()

    def read_prepared(self) -> Prepared | Answer:
        sequence: list[int] = []
        first = self.raw.packet(sequence)
        if first[:1] == b"\xff":
            return Answer("err", first, sequence=sequence)
        id_, columns, parameters, warnings = struct.unpack("<xIHHxH", first)
        found = Prepared(id_, parameters, columns, warnings)
        for count, into in (
            (parameters, found.parameter_definitions),
            (columns, found.column_definitions),
        ):
            for _ in range(count):
                into.append(self.raw.packet(sequence))
            if count:
                assert is_eof(self.raw.packet(sequence))
        assert sequence == [(sequence[0] + n) % 256 for n in range(len(sequence))]
        return found

    def statement(self, sql: str | bytes) -> Prepared:
        """The statement; it must be one."""
        found = self.prepare(sql)
        assert isinstance(found, Prepared), (sql, found)
        return found

    def execute_packet(
        self,
        id_: int,
        parameters: Iterable[Param] = (),
        *,
        bound: bool = True,
        flags: int = 0,
        sent: Iterable[int] = (),
    ) -> bytes:
        """`sent`: the numbers of parameters that went by LONG_DATA."""
        given = list(parameters)
        body = struct.pack("<IBI", id_, flags, 1)
        if given:
            nulls = bytearray((len(given) + 7) // 8)
            values = b""
            for number, one in enumerate(given):
                if number in sent:
                    continue
                if one.data is None:
                    nulls[number >> 3] |= 1 << (number & 7)
                else:
                    values += one.data
            body += bytes(nulls) + bytes([bound])
            if bound:
                body += b"".join(struct.pack("<H", one.type) for one in given)
            body += values
        return packet(bytes([EXECUTE]) + body)

    def execute(
        self,
        id_: int,
        parameters: Iterable[Param] = (),
        *,
        bound: bool = True,
        flags: int = 0,
        sent: Iterable[int] = (),
    ) -> Answer:
        self.raw.write(self.execute_packet(id_, parameters, bound=bound, flags=flags, sent=sent))
        return self.answer()

    def run(self, sql: str | bytes, *parameters: Param) -> Answer:
        """Prepare, execute and close."""
        found = self.prepare(sql)
        if isinstance(found, Answer):
            return found
        answer = self.execute(found.id, parameters)
        self.close(found.id)
        return answer

    def long_data(self, id_: int, parameter: int, data: bytes) -> None:
        self.raw.write(command(LONG_DATA, struct.pack("<IH", id_, parameter) + data))

    def close(self, id_: int) -> None:
        self.raw.write(command(CLOSE, struct.pack("<I", id_)))

    def reset(self, id_: int) -> Answer:
        self.raw.write(command(RESET, struct.pack("<I", id_)))
        return self.answer()

    def fetch(self, id_: int, rows: int) -> Answer:
        self.raw.write(command(FETCH, struct.pack("<II", id_, rows)))
        return self.answer(fetched=True)

    def answer(self, *, fetched: bool = False) -> Answer:
        """Read the reply to EXECUTE, or with `fetched` to FETCH. A cursor's has no rows."""
        sequence: list[int] = []
        first = self.raw.packet(sequence)
        if first[:1] == b"\xff":
            return Answer("err", first, sequence=sequence)
        if first[:1] == b"\x00" and not fetched:
            reply = ok_of(first, sequence)
            return Answer("ok", first, status=reply.status, warnings=reply.warnings, sequence=sequence)
        answer = Answer("rows", sequence=sequence)
        if not fetched:
            count, _ = lenenc(first, 0)
            assert count is not None
            answer.definitions = [self.raw.packet(sequence) for _ in range(count)]
            end = self.raw.packet(sequence)
            assert is_eof(end), end
            answer.warnings, answer.status = struct.unpack_from("<HH", end, 1)
            if answer.status & 0x48 == 0x40:  # with more results to come it is no cursor for us
                return answer
            first = self.raw.packet(sequence)
        while not is_eof(first):
            if first[:1] == b"\xff":
                return Answer("err", first, answer.definitions, answer.rows, sequence=sequence)
            answer.rows.append(first)
            first = self.raw.packet(sequence)
        answer.warnings, answer.status = struct.unpack_from("<HH", first, 1)
        assert sequence == [(sequence[0] + n) % 256 for n in range(len(sequence))]
        return answer
