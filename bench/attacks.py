"""What hostile clients do, for `bench.hostile`: each attack is one round on a socket that has logged in."""

from __future__ import annotations

import itertools
import select
import socket
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import zstandard

COMPRESS, ZSTD, MULTI = 0x20, 0x04000000, 0x10000
ID: Final = 241294492511762325
PING: Final = b"\x01\0\0\0\x0e"
_numbers = itertools.count()


@dataclass(frozen=True)
class Attack:
    """`run` does one round on a client's socket; `flags` are agreed upon at its log-in."""

    name: str
    run: Callable[[socket.socket], None]
    flags: int = 0


def packet(payload: bytes) -> bytes:
    """A command, in as many packets as it needs."""
    out, seq = [], 0
    while True:
        part, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
        out.append(struct.pack("<I", len(part) | (seq & 0xFF) << 24) + part)
        seq += 1
        if len(part) < 0xFFFFFF:
            return b"".join(out)


def query(sql: str | bytes) -> bytes:
    """A COM_QUERY."""
    return packet(b"\x03" + (sql if isinstance(sql, bytes) else sql.encode()))


def zlibbed(payload: bytes) -> bytes:
    """A compressed packet."""
    small = zlib.compress(payload, 9)
    return (len(small) | len(payload) << 32).to_bytes(7, "little") + small


def zstded(payload: bytes) -> bytes:
    small = zstandard.compress(payload, 3)
    return (len(small) | len(payload) << 32).to_bytes(7, "little") + small


def pour(sock: socket.socket, data: bytes, seconds: float = 600) -> None:
    """Send all, reading away whatever comes."""
    sock.setblocking(False)
    view = memoryview(data)
    try:
        while view:
            readable, writable, _ = select.select([sock], [sock], [], seconds)
            if not readable and not writable:
                return
            if readable and not sock.recv(1 << 20):
                raise EOFError
            if writable:
                view = view[sock.send(view) :]
    finally:
        sock.setblocking(True)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def _whole(sock: socket.socket) -> bytes:
    return _exactly(sock, int.from_bytes(_exactly(sock, 4)[:3], "little"))


def ask(sock: socket.socket, command: bytes) -> None:
    """Send one command and read its answer."""
    sock.sendall(command)
    first = _whole(sock)
    if first[:1] in (b"\0", b"\xff"):
        return
    ends = 0
    while ends < 2:
        one = _whole(sock)
        if one[:1] == b"\xff":
            return
        ends += one[:1] == b"\xfe" and len(one) < 9


def each(sqls: Callable[[int], str]) -> Callable[[socket.socket], None]:
    """A statement after another, each of another fingerprint."""

    def run(sock: socket.socket) -> None:
        ask(sock, query(sqls(next(_numbers))))

    return run


def flood(data: bytes | Callable[[], bytes]) -> Callable[[socket.socket], None]:
    """Pour `data`, or what it makes: not before it is wanted, where that takes long."""
    return lambda sock: pour(sock, data() if callable(data) else data)


def _list(count: int, one: Callable[[int], str], between: str = ", ") -> str:
    return between.join(map(one, range(count)))


def _joins(count: int) -> str:
    joins = _list(count, lambda n: f"JOIN pins p{n + 1} ON p{n + 1}.id = p{n}.id", " ")
    return f"SELECT p0.id FROM pins p0 {joins} WHERE p0.id = {ID}"


def _selfjoin(count: int) -> str:
    where = _list(count - 1, lambda n: f"p{n}.id = p{n + 1}.id", " AND ")
    return f"SELECT 1 FROM {_list(count, lambda n: f'pins p{n}')} WHERE {where}"


def _condition(size: int, word: str) -> str:
    return f"SELECT id FROM pins WHERE {_list(size // 30, lambda n: f'id = {ID}', f' {word} ')}"


def _ordered(columns: int) -> str:
    numbers = _list(columns, lambda n: str(n + 1))
    return f"SELECT {_list(columns, lambda n: 'ts')} FROM pins ORDER BY {numbers}"


def _insert(rows: int, alike: bool) -> str:
    value = (lambda n: "('a')") if alike else (lambda n: f"('a'{' ' * (n % 40)}{'+1' * (n % 30)})")
    return f"INSERT INTO pins (data) VALUES {_list(rows, value)} ON DUPLICATE KEY UPDATE nosuch = 1"


def _ids(count: int) -> str:
    return f"SELECT id FROM pins WHERE id IN ({_list(count, lambda n: str(ID + n))})"


def _union(count: int) -> str:
    return _list(count, lambda n: f"SELECT id FROM pins WHERE id = {ID}", " UNION ALL ")


PINGS: Final = PING * (16_700_000 // 5)
BOMB: Final = b"\xff\xff\xff\0\x03" + b" " * 16_777_210
MB20: Final = 20_000_000

ATTACKS: Final = {
    one.name: one
    for one in (
        Attack("pings", flood(PING * 200_000)),
        Attack("zlib: pings", flood(lambda: zlibbed(PINGS)), COMPRESS),
        Attack("zstd: pings", flood(lambda: zstded(PINGS)), ZSTD),
        Attack("zlib: tiny frames", flood(b"\x01\0\0\0\0\0\0\x01" * 100_000), COMPRESS),
        Attack("zlib: bomb", flood(lambda: zlibbed(BOMB) * 8), COMPRESS),
        Attack("closes", flood(packet(b"\x19\1\0\0\0") * 100_000)),
        Attack("long data", flood(packet(b"\x18\1\0\0\0\0\0x") * 100_000)),
        Attack("field lists", flood(packet(b"\x04pins\0") * 20_000)),
        Attack("SET", flood(query("SET @a = 1") * 20_000)),
        Attack("SELECT 1", flood(query("SELECT 1") * 20_000)),
        Attack("SHOW SHARDS", flood(query("SHOW SHARDS") * 2_000)),
        Attack("1,000,000 semicolons", each(lambda n: f"DO {n}" + ";" * 1_000_000), MULTI),
        Attack("200,000 statements", each(lambda n: "DO 1;" * 200_000), MULTI),
        Attack("499 joins", each(lambda n: f"{_joins(499)} AND c{n}")),
        Attack("61 tables", each(lambda n: f"{_selfjoin(61)} AND c{n}")),
        Attack("400 tables", each(lambda n: f"{_selfjoin(400)} AND c{n}")),
        Attack("30 tables", each(lambda n: f"{_selfjoin(30)} AND c{n}")),
        Attack("10 tables", each(lambda n: f"{_selfjoin(10)} AND c{n}")),
        Attack("ORDER BY 6000", each(lambda n: f"SELECT * FROM pins ORDER BY {'ts, ' * 6000}c{n}")),
        Attack("3000 columns by number", each(lambda n: f"{_ordered(3000)}, c{n}")),
        Attack("700 KB of OR", each(lambda n: f"{_condition(700_000, 'OR')} OR c{n}")),
        Attack("700 KB of AND", each(lambda n: f"{_condition(700_000, 'AND')} AND c{n}")),
        Attack("IN of 10,000", each(lambda n: _ids(10_000))),
        Attack("UNION of 5,000", each(lambda n: _union(5000))),
        Attack("INSERT of 100,000 rows", each(lambda n: _insert(100_000, True))),
        Attack("INSERT, 20,000 unlike rows", each(lambda n: _insert(20_000, False))),
        Attack("20 MB text", each(lambda n: f"SELECT 1 FROM pins WHERE data = '{'x' * MB20}'")),
        Attack("20 MB of columns", each(lambda n: f"SELECT {'ts,' * (MB20 // 3)} ts FROM pins")),
        Attack("20 MB of words", each(lambda n: "SELECT " + "a " * (MB20 // 2))),
        Attack("20 MB of numbers", each(lambda n: f"SELECT {'1,' * (MB20 // 2)}1")),
        Attack("20 MB of quotes", each(lambda n: "SELECT " + "''" * (MB20 // 2))),
        Attack("2 MB variables", each(lambda n: f"SET @v{n % 3} = '{'x' * 2_000_000}'")),
    )
}
