"""`Raw`: a MySQL client on a plain blocking socket, for what drivers do not do: bytes cut anywhere, several
commands in one write, wrong packets, looking at status flags.

It shares no code with the proxy; the password's scrambles are PyMySQL's.
"""

from __future__ import annotations

import socket
import struct
from typing import Self

from pymysql._auth import scramble_caching_sha2, scramble_native_password, sha2_rsa_encrypt

from tests.integration.replies import Reply as Reply
from tests.integration.replies import column_name, error_of, is_eof, lenenc, ok_of, row_of

AUTOCOMMIT = 0x0002
IN_TRANS = 0x0001
MORE_RESULTS = 0x0008

CONNECT_WITH_DB = 0x0008
FOUND_ROWS = 0x0002
DEPRECATE_EOF = 0x01000000
SSL = 0x0800
LOCAL_FILES = 0x0080
MULTI_STATEMENTS = 0x10000
CONNECT_ATTRS = 0x00100000
#: LONG_PASSWORD, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_RESULTS, PLUGIN_AUTH
CAPABILITIES = 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 0x20000 | 0x80000

FULL = 0xFFFFFF

QUIT, INIT_DB, QUERY, FIELD_LIST, STATISTICS, PROCESS_KILL, PING = 1, 2, 3, 4, 9, 12, 14
CHANGE_USER, STMT_PREPARE, SET_OPTION, RESET_CONNECTION = 17, 22, 27, 31

NATIVE, SHA2 = "mysql_native_password", "caching_sha2_password"


class Closed(Exception):
    """The other side has closed the connection."""


def packet(payload: bytes, seq: int = 0) -> bytes:
    """`payload` in as many packets as it needs."""
    out = b""
    while True:
        part, payload = payload[:FULL], payload[FULL:]
        out += struct.pack("<I", len(part) | (seq % 256) << 24) + part
        seq += 1
        if len(part) < FULL:
            return out


def query(sql: str | bytes) -> bytes:
    """A COM_QUERY packet."""
    return packet(b"\x03" + (sql.encode() if isinstance(sql, str) else sql))


def command(code: int, argument: bytes = b"") -> bytes:
    return packet(bytes([code]) + argument)


class Raw:
    """A connection. Nothing is read or written that is not asked for. Without a port `host` is the path of a
    Unix socket. `heard` are the packets read, with their sequence numbers.
    """

    def __init__(
        self, host: str, port: int, *, timeout: float = 120.0, receive_buffer: int = 0, source: str = ""
    ) -> None:
        """`source`: the address to come from, instead of the usual one."""
        self.sock = socket.socket(socket.AF_INET if port else socket.AF_UNIX)
        if source:
            self.sock.bind((source, 0))
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        self.sock.connect((host, port) if port else host)
        if port:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.heard: list[tuple[int, bytes]] = []
        self.nonce = b""
        self.version = ""
        self.id = 0
        self.status = 0
        self.plugin = ""
        self.server_capabilities = 0
        self.server_extended = 0
        self.switched_to = ""
        self.asked_full = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        """Close with RST, as when a machine vanishes."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # -- bytes and packets

    def write(self, data: bytes) -> None:
        self.sock.sendall(data)

    def exactly(self, count: int) -> bytes:
        """So many bytes. Closed when the other side has ended the connection before."""
        while len(self.buffer) < count:
            try:
                data = self.sock.recv(max(1 << 16, min(count - len(self.buffer), 1 << 20)))
            except ConnectionError:
                raise Closed from None
            if not data:
                raise Closed
            self.buffer += data
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def packet(self, sequence: list[int] | None = None) -> bytes:
        """The next payload, put together from its packets; `sequence` gets their numbers."""
        parts = []
        while True:
            header = self.exactly(4)
            size = int.from_bytes(header[:3], "little")
            if sequence is not None:
                sequence.append(header[3])
            parts.append(self.exactly(size))
            if size < FULL:
                self.heard.append((header[3], b"".join(parts)))
                return self.heard[-1][1]

    @property
    def closed(self) -> bool:
        """Whether the other side has closed, waiting for it: AssertionError when bytes come instead."""
        try:
            data = self.exactly(1)
        except Closed:
            return True
        raise AssertionError(f"more bytes: {data + bytes(self.buffer)!r}")

    def reply(self, *, fields: bool = False) -> Reply:
        """Read the reply to one command. `fields`: to COM_FIELD_LIST."""
        sequence: list[int] = []
        first = self.packet(sequence)
        if fields and first[:1] != b"\xff":
            return self._field_list(first, sequence)
        if first[:1] == b"\x00":
            return ok_of(first, sequence)
        if first[:1] == b"\xff":
            return error_of(first, sequence)
        count, _ = lenenc(first, 0)
        assert count is not None
        reply = Reply("rows", sequence=sequence)
        for _ in range(count + 1):
            definition = self.packet(sequence)
            if definition[:1] == b"\xff":
                return error_of(definition, sequence)
            if len(reply.columns) < count:
                reply.columns.append(column_name(definition))
        assert is_eof(definition), definition
        while True:
            row = self.packet(sequence)
            if is_eof(row):
                reply.warnings, reply.status = struct.unpack_from("<HH", row, 1)
                return reply
            if row[:1] == b"\xff":
                failed = error_of(row, sequence)
                failed.rows = reply.rows
                return failed
            reply.rows.append(row_of(row, count))

    def _field_list(self, first: bytes, sequence: list[int]) -> Reply:
        reply = Reply("rows", sequence=sequence)
        while not is_eof(first):
            reply.columns.append(column_name(first))
            first = self.packet(sequence)
        reply.status = struct.unpack_from("<H", first, 3)[0]
        return reply

    # -- commands

    def ask(self, sql: str | bytes) -> Reply:
        self.write(query(sql))
        return self.reply()

    def do(self, code: int, argument: bytes = b"", *, fields: bool = False) -> Reply:
        self.write(command(code, argument))
        return self.reply(fields=fields)

    def ping(self) -> Reply:
        return self.do(PING)

    def replies(self) -> list[Reply]:
        """All replies to one command: MORE_RESULTS_EXISTS in one announces another."""
        found = [self.reply()]
        while found[-1].kind != "err" and found[-1].status & MORE_RESULTS:
            found.append(self.reply())
        return found

    # -- log-in

    def greeting(self) -> Reply | None:
        """Read the greeting. The error, when the proxy sends one instead."""
        sequence: list[int] = []
        data = self.packet(sequence)
        if data[:1] == b"\xff":
            return error_of(data, sequence)
        assert data[0] == 10, data
        assert sequence == [0]
        end = data.index(b"\0", 1)
        self.version = data[1:end].decode()
        self.id, part, low, _, self.status, high, size = struct.unpack_from("<I8sxHBHHB", data, end + 1)
        self.server_capabilities = low | high << 16
        self.server_extended = int.from_bytes(data[end + 1 + 27 : end + 1 + 31], "little")
        rest = data[end + 1 + 21 + 10 :]
        second = rest[: max(13, size - 8)]
        self.nonce = (part + second)[:20]
        self.plugin = rest[len(second) :].rstrip(b"\0").decode()
        return None

    def response(
        self,
        user: str,
        password: str,
        database: str | None = None,
        *,
        plugin: str = SHA2,
        flags: int = 0,
        attributes: bytes = b"",
        extended: int = 0,
    ) -> bytes:
        """The packet that answers the greeting. `extended`: MariaDB's own capabilities; with them the flag
        that is the sign of MySQL is not set.
        """
        secret = password.encode()
        if plugin == SHA2:
            scramble = scramble_caching_sha2(secret, self.nonce)
        else:
            scramble = scramble_native_password(secret, self.nonce)
        flags |= CAPABILITIES | (CONNECT_WITH_DB if database is not None else 0)
        if extended:
            flags &= ~1
        body = struct.pack("<IIB19xI", flags, 1 << 24, 45, extended) + user.encode() + b"\0"
        body += bytes([len(scramble)]) + scramble
        if database is not None:
            body += database.encode() + b"\0"
        return packet(body + plugin.encode() + b"\0" + attributes, 1)

    def login(
        self,
        user: str = "demo",
        password: str = "demo",
        database: str | None = None,
        *,
        plugin: str = SHA2,
        flags: int = 0,
        attributes: bytes = b"",
        behind: bytes = b"",
        extended: int = 0,
    ) -> Reply:
        """Log in; the OK or the error that ends it. `behind` is sent in one write with the response."""
        refused = self.greeting()
        if refused is not None:
            return refused
        self.write(
            self.response(
                user, password, database, plugin=plugin, flags=flags, attributes=attributes, extended=extended
            )
            + behind
        )
        return self._authenticate(password)

    def change_user(
        self,
        user: str,
        password: str,
        database: str | None = None,
        *,
        plugin: str = SHA2,
        attributes: bytes = b"",
        behind: bytes = b"",
    ) -> Reply:
        """COM_CHANGE_USER, with a scramble of the log-in's nonce as drivers send it."""
        scramble = scramble_native_password if plugin == NATIVE else scramble_caching_sha2
        auth = scramble(password.encode(), self.nonce)
        body = user.encode() + b"\0" + bytes([len(auth)]) + auth + (database or "").encode() + b"\0"
        body += struct.pack("<H", 45) + plugin.encode() + b"\0" + attributes
        self.switched_to, self.asked_full = "", False
        self.write(command(CHANGE_USER, body) + behind)
        return self._authenticate(password)

    def _authenticate(self, password: str) -> Reply:
        """Answer what the server asks until it says OK or an error."""
        while True:
            sequence: list[int] = []
            data = self.packet(sequence)
            seq = sequence[-1] + 1
            if data[:1] == b"\x00":
                return ok_of(data, sequence)
            if data[:1] == b"\xff":
                return error_of(data, sequence)
            if data[:1] == b"\xfe":
                name, _, nonce = data[1:].partition(b"\0")
                self.switched_to, self.nonce = name.decode(), nonce[:20]
                answer = (
                    scramble_native_password(password.encode(), self.nonce)
                    if self.switched_to == NATIVE
                    else scramble_caching_sha2(password.encode(), self.nonce)
                )
                self.write(packet(answer, seq))
            elif data == b"\x01\x04":
                self.asked_full = True
                answer = self.answer_full(password, seq)
                if answer[:1] == b"\xff":
                    return error_of(answer, sequence)
                self.write(answer)
            else:
                assert data == b"\x01\x03", data

    def answer_full(self, password: str, seq: int) -> bytes:
        """The packet with the password: encrypted, for which the public key is asked. Or the error instead of
        the key.
        """
        self.write(packet(b"\x02", seq))
        sequence: list[int] = []
        key = self.packet(sequence)
        if key[:1] == b"\xff":
            return key
        return packet(sha2_rsa_encrypt(password.encode(), self.nonce, key[1:]), sequence[-1] + 1)
