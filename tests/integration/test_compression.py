"""Compressed connections: the CLIs of both kinds, and a raw client that minds every sequence number."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import zstandard

from tests.integration.fixtures import MakeOwn
from tests.integration.raw import LOCAL_FILES, MULTI_STATEMENTS, PING, Closed, Raw, command, packet, query
from tests.support.demo import Demo
from tests.support.programs import program_of

pytestmark = pytest.mark.one_server

COMPRESS, ZSTD = 0x20, 0x04000000
BOTH = pytest.mark.parametrize("algorithm", ["zlib", "zstd"])
MB = 1 << 20


class Compressed(Raw):
    """Compresses once it has logged in. `numbers` are those of the compressed packets that came."""

    algorithm = ""
    least = 50  # shorter payloads go as they are

    def start(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self.numbers: list[int] = []
        self.seq = 0

    def write(self, data: bytes) -> None:
        """One command, in compressed packets of at most 1 MB."""
        if not self.algorithm:
            super().write(data)
            return
        self.seq = 0
        self.more(data)

    def more(self, data: bytes) -> None:
        """`write` that goes on with the numbers."""
        for start in range(0, len(data), MB):
            self.sock.sendall(self.packed(data[start : start + MB]))

    def packed(self, payload: bytes) -> bytes:
        before = 0
        if len(payload) >= self.least:
            before = len(payload)
            small = zlib.compress if self.algorithm == "zlib" else zstandard.compress
            payload = small(payload)
        self.seq += 1
        return (len(payload) | (self.seq - 1 & 0xFF) << 24 | before << 32).to_bytes(7, "little") + payload

    def exactly(self, count: int) -> bytes:
        if not self.algorithm:
            return super().exactly(count)
        plain = self.plain
        while len(plain) < count:
            header = super().exactly(7)
            payload = super().exactly(int.from_bytes(header[:3], "little"))
            before = int.from_bytes(header[4:], "little")
            self.numbers.append(header[3])
            self.seq = header[3] + 1
            if before:
                if self.algorithm == "zlib":
                    payload = zlib.decompress(payload)
                else:
                    payload = zstandard.ZstdDecompressor().decompress(payload, max_output_size=before)
                assert len(payload) == before
            plain += payload
        data = bytes(plain[:count])
        del plain[:count]
        return data

    @property
    def plain(self) -> bytearray:
        if not hasattr(self, "_plain"):
            self._plain = bytearray()
        return self._plain

    def in_order(self) -> None:
        """The compressed packets of one reply were numbered from 1 on."""
        assert self.numbers == [(1 + index) % 256 for index in range(len(self.numbers))]
        self.numbers.clear()


Connect = Callable[..., Compressed]


@pytest.fixture
def compressed(demo: Demo, unharmed: None) -> Iterator[Connect]:
    with ExitStack() as stack:

        def connected(
            algorithm: str, database: str | None = "legacy", flags: int = 0, port: int = 0
        ) -> Compressed:
            client = stack.enter_context(Compressed(demo.host, port or demo.port))
            flag = {"zlib": COMPRESS, "zstd": ZSTD}[algorithm]
            reply = client.login(database=database, flags=flags | flag)
            assert reply.kind == "ok", reply
            assert client.server_capabilities & flag
            client.start(algorithm)
            return client

        yield connected


@BOTH
@pytest.mark.parametrize("database", ["legacy", "demo", None])
def test_replies(compressed: Connect, algorithm: str, database: str | None) -> None:
    client = compressed(algorithm, database)
    for sql, rows in (
        ("SELECT 1", 1),
        ("SELECT * FROM legacy.orders", 5),
        ("SELECT * FROM demo.users", 20),
        ("SELEC", 0),
    ):
        reply = client.ask(sql)
        assert len(reply.rows) >= rows, reply
        assert reply.in_order
        client.in_order()
    assert client.ping().kind == "ok"
    client.in_order()


@BOTH
def test_20_megabytes_there_and_back(compressed: Connect, algorithm: str) -> None:
    client = compressed(algorithm)
    text = "xyz" * 7_000_000
    client.write(query(f"SELECT '{text}'"))
    row = client.reply()
    assert row.value == text.encode()
    assert row.in_order
    assert client.numbers[0] == 21
    assert client.ask("SELECT LENGTH(REPEAT('x', 17000000)), REPEAT('y', 17000000)").rows[0][0] == b"17000000"


@BOTH
def test_a_large_row_is_in_one_frame(compressed: Connect, algorithm: str) -> None:
    """However it came from the server: mysql-connector-python reads no packet that is in more than two."""
    client = compressed(algorithm)
    for _ in range(5):
        client.numbers.clear()
        assert len(client.ask("SELECT REPEAT('x', 3000000)").rows[0][0] or b"") == 3_000_000
        assert len(client.numbers) <= 5  # the packets: column count, definition, EOF, the row, EOF


@BOTH
def test_cut_at_every_byte(compressed: Connect, algorithm: str) -> None:
    client = compressed(algorithm)
    sql = "SELECT 'a text that is long enough to be compressed', 'because it is, because it is'"
    for place in range(1, 60):
        client.seq = 0
        whole = client.packed(query(sql))
        client.sock.sendall(whole[:place])
        client.sock.sendall(whole[place:])
        assert client.reply().kind == "rows"
        client.in_order()
    client.least = 10_000
    inner = query("SELECT 'cut inside'")
    for place in range(1, len(inner)):
        client.seq = 0
        client.more(inner[:place])
        client.more(inner[place:])
        assert client.reply().value == b"cut inside"
        assert client.numbers[0] == 2
        client.numbers.clear()


@BOTH
def test_pipelined_commands(compressed: Connect, algorithm: str) -> None:
    """Each in a packet of its own, number 0: each reply begins with 1. In one packet: the numbers run on."""
    client = compressed(algorithm, "demo")
    for sql in ("SELECT COUNT(*) FROM users", "SELECT 2", "SET NAMES utf8mb4"):
        client.write(query(sql))
    client.write(command(PING))
    for kind in ("rows", "rows", "ok", "ok"):
        assert client.reply().kind == kind
        client.in_order()
    client.write(query("SELECT 1") + query("SELECT 2") + command(PING))
    assert [client.reply().kind for _ in range(3)] == ["rows", "rows", "ok"]
    client.in_order()


@BOTH
def test_several_statements_and_files(compressed: Connect, demo: Demo, algorithm: str) -> None:
    with demo.direct(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL local_infile = 1")
        cursor.execute("CREATE TABLE squeezed (a INT PRIMARY KEY, b LONGTEXT)")
        try:
            client = compressed(algorithm, flags=MULTI_STATEMENTS | LOCAL_FILES)
            client.write(
                query(
                    "SELECT 1; SELECT * FROM orders; LOAD DATA LOCAL INFILE 'f' INTO TABLE squeezed; SELECT 3"
                )
            )
            for _ in range(2):
                client.reply()
            sequence: list[int] = []
            assert client.packet(sequence) == b"\xfbf"
            client.in_order()
            number = sequence[0]
            for size in (10, 100_000, 17_000_000):
                client.more(packet(b"%d\t%s\n" % (size, b"x" * size), number + 1))
                number += 1 + (size > 16_777_215)
            client.more(packet(b"", number + 1))
            first = client.seq
            replies = client.replies()
            assert [reply.kind for reply in replies] == ["ok", "rows"]
            assert replies[0].affected == 3
            assert client.numbers[0] == first % 256
            assert replies[0].sequence == [(number + 2) % 256]
            assert client.ask("SELECT SUM(LENGTH(b)) FROM squeezed").value == b"17100010"
        finally:
            cursor.execute("DROP TABLE squeezed")


@BOTH
def test_what_cannot_be_expanded(compressed: Connect, algorithm: str) -> None:
    bomb = zlib.compress(b"x" * (64 * MB)) if algorithm == "zlib" else zstandard.compress(b"x" * (64 * MB))
    for payload in (bomb, b"rubbish" * 10):
        client = compressed(algorithm)
        client.sock.sendall((len(payload) | 100 << 32).to_bytes(7, "little") + payload)
        assert client.reply().code == 1157
        with pytest.raises(Closed):
            client.packet()
        assert compressed(algorithm).ping().kind == "ok"


def test_max_packet_holds(compressed: Connect, own: MakeOwn) -> None:
    """What is small when it comes may not be larger than allowed. Only what the settings name is offered."""
    proxy = own({"limits": {"max_packet": "1MB"}, "compression": ["zlib"]})
    client = compressed("zlib", port=proxy.proxy.port)
    assert client.server_capabilities & (ZSTD | COMPRESS) == COMPRESS
    client.sock.sendall(client.packed(query("SELECT '" + "x" * (3 * MB) + "'")))
    assert client.reply().code == 1153


MYSQL9 = program_of("mysql9")
CLIS = {
    "mariadb": (shutil.which("mariadb"), ["--compress"], ("--skip-ssl", "--ssl")),
    "mysql zlib": (
        str(MYSQL9.path.with_name("mysql")) if MYSQL9 else None,
        ["--get-server-public-key", "--compression-algorithms=zlib"],
        ("--ssl-mode=DISABLED", "--ssl-mode=REQUIRED"),
    ),
    "mysql zstd": (
        str(MYSQL9.path.with_name("mysql")) if MYSQL9 else None,
        ["--get-server-public-key", "--compression-algorithms=zstd", "--zstd-compression-level=9"],
        ("--ssl-mode=DISABLED", "--ssl-mode=REQUIRED"),
    ),
}


@pytest.mark.parametrize("cli", CLIS)
def test_the_clis(demo: Demo, unharmed: None, cli: str) -> None:
    path, compression, tls = CLIS[cli]
    if path is None:
        pytest.skip(f"no {cli.split()[0]} CLI")
    words = [
        path,
        "--no-defaults",
        "-h",
        demo.host,
        "-P",
        str(demo.port),
        "-u",
        "demo",
        "-pdemo",
        *compression,
    ]
    sql = "SHOW STATUS LIKE 'Compression'; SELECT REPEAT('x', 17000000); SELECT COUNT(*) FROM demo.pins"
    for option in tls:
        done = subprocess.run(
            [*words, option, "--max-allowed-packet=64M", "-N", "-e", sql],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (option, done.stderr)
        first, second, _ = done.stdout.split("\n", 2)
        assert first.split() == ["Compression", "ON"]
        assert len(second) == 17_000_000
