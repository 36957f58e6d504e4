"""A codec that others wrote, mysql-mimic's, as the peer: what it builds we read, what we build it reads.

It is a server's, so it reads what clients send and builds what servers send. Of the latter what we build must
be the same bytes. Kept to is what it does right. Where it is wrong, as of 3.0.5:

  rows            of 16 MB and more are not cut into packets by `write_text_rows`; negative TIMEs have a wrong
                  number of days; integers are signed, a TINY is 0 or 1
  COM_STMT_EXECUTE   strings are put into the statement unescaped, and the next `?` is looked for in what
                  came; types must be sent each time; there are no dates, no times, no DECIMAL
  greeting        the nonce's length is that of what it is given: the NUL behind it must be given, too
  log-in          the collation is one byte's, the attributes are decoded in it
"""

from __future__ import annotations

import asyncio
import datetime as dt
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mysql_mimic import packets as peer
from mysql_mimic.charset import CharacterSet, Collation
from mysql_mimic.errors import ErrorCode, get_sqlstate
from mysql_mimic.prepared import PreparedStatement
from mysql_mimic.results import ResultColumn
from mysql_mimic.stream import MysqlStream
from mysql_mimic.types import Capabilities, ColumnDefinition, ColumnType, ServerStatus

from proxy.wire import attributes, handshake
from proxy.wire.binary import Attributes, Execute, RowEncoder, parse_execute
from proxy.wire.constants import Capability, Command, Status
from proxy.wire.packets import (
    PacketReader,
    eof_packet,
    err_packet,
    frame,
    lenenc,
    ok_packet,
    parse_err,
    parse_ok,
    query_packet,
)
from proxy.wire.replies import PREPARED, ReplyScanner
from proxy.wire.resultset import Column, decode_column, decode_row, encode_row
from proxy.wire.rows import ResultReader, split_rows

UTF8 = CharacterSet.utf8mb4
ALL = Capabilities((1 << 32) - 1)
PLAIN = ALL & ~Capabilities.CLIENT_QUERY_ATTRIBUTES & ~Capabilities.CLIENT_OPTIONAL_RESULTSET_METADATA

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
numbers = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
shorts = st.integers(0, 0xFFFF)
statuses = st.sets(st.sampled_from(list(ServerStatus))).map(lambda some: ServerStatus(sum(some)))


# ── connection phase ────────────────────────────────────────────────────────────────────────────────────


@given(texts, st.integers(0, (1 << 32) - 1), st.binary(min_size=20, max_size=20), statuses, texts)
def test_the_greeting(version: str, number: int, nonce: bytes, status: ServerStatus, plugin: str) -> None:
    nonce = nonce.replace(b"\0", b"x")
    built = peer.make_handshake_v10(PLAIN, CharacterSet.utf8, version, number, nonce + b"\0", status, plugin)
    greeting = handshake.Greeting(version, number, nonce, Capability(PLAIN), 33, int(status), plugin)
    assert handshake.parse_greeting(built) == greeting
    assert handshake.build_greeting(greeting) == built


@given(
    texts,
    st.binary(max_size=200),
    texts,
    st.sampled_from(["mysql_native_password", "caching_sha2_password"]),
    st.dictionaries(texts, texts, max_size=5),
    st.integers(0, 255),
    st.sets(
        st.sampled_from([
            Capability.CONNECT_WITH_DB, Capability.PLUGIN_AUTH, Capability.CONNECT_ATTRS,
            Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA, Capability.ZSTD_COMPRESSION_ALGORITHM,
        ])
    ),
)  # fmt: skip
def test_the_log_in(
    user: str, auth: bytes, database: str, plugin: str, given_with: dict[str, str], level: int,
    some: set[Capability],
) -> None:  # fmt: skip
    wanted = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.LONG_PASSWORD
    for one in some:
        wanted |= one
    ours = handshake.HandshakeResponse(
        wanted, user, auth, database, plugin, Collation.utf8mb4_general_ci, 1 << 24, given_with, level
    )
    read = peer.parse_handshake_response_41(ALL, handshake.build_response(ours))
    assert int(read.capabilities) == int(wanted)
    assert (read.max_packet_size, read.client_charset) == (1 << 24, UTF8)
    assert (read.username, read.auth_response) == (user, auth)
    assert read.database == (database if Capability.CONNECT_WITH_DB in wanted else None)
    assert read.client_plugin == (plugin if Capability.PLUGIN_AUTH in wanted else None)
    assert read.connect_attrs == (given_with if Capability.CONNECT_ATTRS in wanted else {})
    zstd = Capability.ZSTD_COMPRESSION_ALGORITHM in wanted
    assert read.zstd_compression_level == (level if zstd else 0)


def test_the_request_for_tls() -> None:
    wanted = Capability.PROTOCOL_41 | Capability.SSL | Capability.LONG_PASSWORD
    built = handshake.build_ssl_request(handshake.SslRequest(wanted, 1 << 24, 45))
    read = peer.parse_handshake_response(ALL, built)
    assert isinstance(read, peer.SSLRequest)
    assert (int(read.capabilities), read.max_packet_size) == (int(wanted), 1 << 24)


# ── OK, ERR, EOF ────────────────────────────────────────────────────────────────────────────────────────


@given(numbers, numbers, shorts, statuses)
def test_ok(affected: int, insert_id: int, warnings: int, status: ServerStatus) -> None:
    built = peer.make_ok(PLAIN, status, affected_rows=affected, last_insert_id=insert_id, warnings=warnings)
    ours = ok_packet(1, int(status), affected=affected, insert_id=insert_id, warnings=warnings)
    assert ours == frame(built, 1)
    read = parse_ok(built)
    assert (read.affected, read.insert_id) == (affected, insert_id)
    assert (read.status, read.warnings, read.info) == (int(status), warnings, b"")
    scanner = ReplyScanner()
    more = ServerStatus.SERVER_MORE_RESULTS_EXISTS in status
    assert scanner.feed(frame(built, 1)) == (-1 if more else len(ours))


@given(st.sampled_from(list(ErrorCode)), texts)
def test_err(code: ErrorCode, message: str) -> None:
    built = peer.make_error(PLAIN, UTF8, message, code)
    state = get_sqlstate(code).decode()
    assert err_packet(3, int(code), state, message) == frame(built, 3)
    read = parse_err(built)
    assert (read.code, read.sqlstate, read.text()) == (int(code), state, message)


@given(shorts, statuses)
def test_eof(warnings: int, status: ServerStatus) -> None:
    assert eof_packet(9, int(status), warnings) == frame(peer.make_eof(PLAIN, status, warnings), 9)


# ── result sets ─────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(texts, min_size=5, max_size=5),
    st.integers(0, (1 << 32) - 1),
    st.sampled_from([one for one in ColumnType if one is not ColumnType.INVALID]),
    st.integers(0, 0xFFFF),
    st.integers(0, 255),
)
def test_column_definitions(
    names: list[str], length: int, type_: ColumnType, flags: int, decimals: int
) -> None:
    # what it is not given it takes from another: the table from the alias, the column from its name
    schema, table, org_table, name, org_name = (text or "x" for text in names)
    built = peer.make_column_definition_41(
        UTF8, schema, table, org_table, name, org_name, UTF8, length, type_, ColumnDefinition(flags), decimals
    )
    raw = [text.encode() for text in (name, schema, table, org_table, org_name)]
    column = Column(raw[0], int(type_), int(UTF8), length, flags, decimals, *raw[1:])
    assert column.encode() == built
    assert decode_column(built) == column


cells = st.one_of(st.none(), texts, st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=300))


@given(
    st.integers(1, 12).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), max_size=5)),
    statuses,
)
def test_text_result_sets(rows: list[list[Any]], status: ServerStatus) -> None:
    width = len(rows[0]) if rows else 1
    status &= ~ServerStatus.SERVER_MORE_RESULTS_EXISTS
    columns = [ResultColumn(f"c{number}", ColumnType.VARCHAR) for number in range(width)]
    payloads = [peer.make_column_count(PLAIN, width)]
    assert payloads[0] == lenenc(width)
    payloads += [peer.make_column_definition_41(UTF8, name=column.name) for column in columns]
    payloads.append(peer.make_eof(PLAIN, ServerStatus.SERVER_STATUS_AUTOCOMMIT))
    made = [peer.make_text_resultset_row(row, columns) for row in rows]
    assert made == [encode_row(row) for row in rows]
    payloads += [*made, peer.make_eof(PLAIN, status, 3)]
    reply = b"".join(frame(payload, number) for number, payload in enumerate(payloads, 1))
    scanner = ReplyScanner(1)
    assert scanner.feed(reply) == len(reply)
    assert (scanner.rows, scanner.warnings, scanner.status) == (len(rows), 3, int(status))
    reader = ResultReader()
    found = [decode_row(payload, width) for payload in split_rows(reader.feed(reply))]
    assert [decode_column(one).name for one in reader.columns] == [b"c%d" % one for one in range(width)]
    assert found == [
        [one if one is None or isinstance(one, bytes) else str(one).encode() for one in row] for row in rows
    ]


BINARY: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.TINY: st.integers(0, 1),
    ColumnType.SHORT: st.integers(-(1 << 15), (1 << 15) - 1),
    ColumnType.YEAR: st.integers(1901, 2155),
    ColumnType.INT24: st.integers(-(1 << 23), (1 << 23) - 1),
    ColumnType.LONG: st.integers(-(1 << 31), (1 << 31) - 1),
    ColumnType.LONGLONG: st.integers(-(1 << 63), (1 << 63) - 1),
    ColumnType.FLOAT: st.floats(width=32, allow_nan=False, allow_infinity=False),
    ColumnType.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    ColumnType.DATE: st.dates(),
    ColumnType.DATETIME: st.datetimes(),
    ColumnType.TIMESTAMP: st.datetimes(),
    ColumnType.TIME: st.timedeltas(dt.timedelta(0), dt.timedelta(days=34)),
    ColumnType.NEWDECIMAL: st.decimals(allow_nan=False, allow_infinity=False, places=4),
    ColumnType.VAR_STRING: texts,
    ColumnType.BLOB: st.binary(max_size=300),
    ColumnType.JSON: texts,
}


def text_of(value: Any) -> object:
    """A value as a server writes it in a text row."""
    if isinstance(value, dt.datetime):
        return value.strftime(f"{value.year:04d}-%m-%d %H:%M:%S.%f")
    if isinstance(value, dt.date):
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    if isinstance(value, dt.timedelta):
        minutes, seconds = divmod(value.days * 86400 + value.seconds, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{value.microseconds:06d}"
    return value


@given(st.data(), st.lists(st.sampled_from(list(BINARY)), min_size=1, max_size=20))
def test_binary_rows(data: st.DataObject, types: list[ColumnType]) -> None:
    values = [data.draw(st.one_of(st.none(), BINARY[type_])) for type_ in types]
    built = peer.make_binary_resultrow(values, [ResultColumn("c", type_) for type_ in types])
    ours = RowEncoder([int(type_) for type_ in types]).row(encode_row(map(text_of, values)))
    assert ours == built


# ── prepared statements ─────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, (1 << 32) - 1), st.integers(0, 300))
def test_prepare_ok(number: int, parameters: int) -> None:
    payloads = [peer.make_com_stmt_prepare_ok(PreparedStatement(number, "…", parameters))]
    if parameters:
        payloads += [peer.make_column_definition_41(UTF8, name="?")] * parameters
        payloads.append(peer.make_eof(PLAIN, ServerStatus.SERVER_STATUS_AUTOCOMMIT))
    reply = b"".join(frame(payload, seq) for seq, payload in enumerate(payloads, 1))
    scanner = ReplyScanner(1)
    scanner.start(PREPARED)
    assert scanner.feed(reply) == len(reply)
    assert scanner.err is None
    assert scanner.status == (int(Status.AUTOCOMMIT) if parameters else 0)


#: Type of a parameter, with 0x8000 for unsigned ones; its bytes; and what the peer makes of it.
Parameter = tuple[int, bytes | None, str]
simple = st.text("abcdefghij klmnop_äöü日本", max_size=300)


def integers(type_: ColumnType, code: str) -> st.SearchStrategy[Parameter]:
    size = 8 * struct.calcsize("<" + code)
    signed = st.integers(-(1 << size - 1), (1 << size - 1) - 1)
    unsigned = st.integers(0, (1 << size) - 1)
    return st.one_of(
        signed.map(lambda n: (int(type_), struct.pack("<" + code, n), str(n))),
        unsigned.map(lambda n: (int(type_) | 0x8000, struct.pack("<" + code.upper(), n), str(n))),
    )


parameters_of = st.one_of(
    st.sampled_from([(int(ColumnType.VAR_STRING), None, "NULL"), (int(ColumnType.NULL), None, "NULL")]),
    simple.map(lambda t: (int(ColumnType.VAR_STRING), lenenc(len(t.encode())) + t.encode(), f"'{t}'")),
    simple.map(lambda t: (int(ColumnType.BLOB), lenenc(len(t.encode())) + t.encode(), f"'{t}'")),
    integers(ColumnType.TINY, "b"),
    integers(ColumnType.SHORT, "h"),
    integers(ColumnType.LONG, "i"),
    integers(ColumnType.LONGLONG, "q"),
    st.floats(allow_nan=False, allow_infinity=False).map(
        lambda n: (int(ColumnType.DOUBLE), struct.pack("<d", n), str(n))
    ),
)


def bitmap(some: list[Parameter]) -> int:
    return sum(1 << place for place, (_, value, _) in enumerate(some) if value is None)


def types_of(some: list[Parameter]) -> bytes:
    return b"".join(struct.pack("<H", type_) for type_, _, _ in some)


def values_of(some: list[Parameter]) -> bytes:
    return b"".join(value or b"" for _, value, _ in some)


def read_by_peer(packet: bytes, capabilities: Capabilities, count: int) -> peer.ComStmtExecute:
    statement = PreparedStatement(7, "SELECT " + ", ".join("?" * count), count)
    assert packet[0] == Command.STMT_EXECUTE
    read = peer.parse_com_stmt_execute(capabilities, UTF8, packet[1:], {7: statement}.__getitem__)
    assert isinstance(read, peer.ComStmtExecute)
    return read


@given(st.lists(parameters_of, max_size=20), st.booleans())
def test_execute(some: list[Parameter], cursor: bool) -> None:
    count, types = len(some), types_of(some)
    nulls = bitmap(some).to_bytes((count + 7) // 8, "little")
    ours = Execute(99, int(cursor), nulls, types, values_of(some))
    packet = ours.packet(7, types, count)
    read = read_by_peer(packet, PLAIN, count)
    assert read.sql == "SELECT " + ", ".join(text for _, _, text in some)
    assert (read.use_cursor, read.query_attrs) == (cursor, {})
    assert parse_execute(packet, count, b"", False) == ours._replace(statement=7)


@given(st.lists(parameters_of, max_size=9), st.dictionaries(simple, parameters_of, max_size=9))
def test_execute_with_query_attributes(some: list[Parameter], named: dict[str, Parameter]) -> None:
    count, types = len(some), types_of(some)
    others = list(named.values())
    names = [lenenc(len(name.encode())) + name.encode() for name in named]
    declared = b"".join(struct.pack("<H", one[0]) + name for name, one in zip(names, others, strict=True))
    extra = Attributes(len(others), bitmap(others), declared, values_of(others))
    nulls = bitmap(some).to_bytes((count + 7) // 8, "little")
    ours = Execute(7, 0, nulls, types, values_of(some), extra if others else Attributes())
    packet = ours.attributed(7, types, count)
    read = read_by_peer(packet, ALL, count)
    assert read.sql == "SELECT " + ", ".join(text for _, _, text in some)
    assert {name: "NULL" if value is None else str(value) for name, value in read.query_attrs.items()} == {
        name: text.strip("'") for name, (_, _, text) in named.items()
    }
    back = parse_execute(packet, count, b"", True)
    assert (back.types, back.values, back.extra) == (ours.types, ours.values, ours.extra)
    assert back.attributed(7, types, count) == packet


@given(simple, st.dictionaries(simple, parameters_of, max_size=9))
def test_queries(sql: str, named: dict[str, Parameter]) -> None:
    assert peer.parse_com_query(PLAIN, UTF8, query_packet(sql.encode())[5:]).sql == sql
    others = list(named.values())
    head = lenenc(len(others)) + b"\1"
    if others:
        names = b"".join(
            struct.pack("<H", one[0]) + lenenc(len(name.encode())) + name.encode()
            for name, one in named.items()
        )
        head += bitmap(others).to_bytes((len(others) + 7) // 8, "little") + b"\1" + names + values_of(others)
    packet = attributes.attributed(query_packet(sql.encode()), head)
    read = peer.parse_com_query(ALL, UTF8, packet[5:])
    assert (read.sql, set(read.query_attrs)) == (sql, set(named))
    assert packet[attributes.read(packet, 5)[1] :].decode() == sql


# ── framing ─────────────────────────────────────────────────────────────────────────────────────────────


class Sink:
    """The little of a StreamWriter that is used."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        pass


@pytest.mark.parametrize("length", [1, 250, 70_000, 0xFFFFFE, 0xFFFFFF, 0x1000000])
async def test_packets_are_cut_alike(length: int) -> None:
    payload = b"\3" + b"x" * (length - 1)
    reader, sink = asyncio.StreamReader(limit=1 << 26), Sink()
    stream = MysqlStream(reader, sink)
    await stream.write(payload)
    assert sink.data == frame(payload)
    assert PacketReader(1 << 26).feed(sink.data) == [(length // 0xFFFFFF, payload)]
    stream.reset_seq()
    reader.feed_data(frame(payload))
    assert await stream.read() == payload
