"""Clients that send spoilt packets, in every phase of a connection.

The proxy may answer, refuse with a clean error or close the connection, but not be silent, and not take a bug
of its own to the client (error 1105).
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import yaml

from tests.fuzz.mutate import pieces, spoil
from tests.integration import raw as wire
from tests.integration.raw import Raw, packet

CORPUS = Path(__file__).parent / "corpus"
USER = PASSWORD = "fuzz"

#: Seconds for an answer, or for the end of the connection.
PATIENCE = 10.0
#: Seconds after which a client that may have made the proxy wait ends what it is sending.
_HALF_A_SECOND = 0.5

LOCAL_FILES, MULTI_STATEMENTS, CONNECT_ATTRS, QUERY_ATTRIBUTES = 0x80, 1 << 16, 1 << 20, 1 << 27
COMPRESS = 0x20


class Finding(AssertionError):
    """The proxy has done what it must not."""


@dataclass(frozen=True)
class Conversation:
    """What a client says after its log-in; see corpus/clients.yaml."""

    name: str
    packets: tuple[bytes, ...]
    setup: tuple[bytes, ...] = ()
    waits: bool = False
    numbers: tuple[int, ...] = ()  # sequence numbers of the packets

    def stream(self, payloads: Sequence[bytes], stmt: bytes = b"\x01\0\0\0") -> bytes:
        numbers = self.numbers or (0,) * len(payloads)
        return b"".join(
            packet(payload.replace(b"{stmt}", stmt), number)
            for payload, number in zip(payloads, numbers, strict=True)
        )


@cache
def conversations(id: int, other: int) -> tuple[Conversation, ...]:
    """The corpus, with the IDs of two users."""
    found = []
    for one in yaml.safe_load((CORPUS / "clients.yaml").read_text(encoding="utf-8")):
        setup, packets = (
            tuple(
                text.encode("latin-1").replace(b"{id}", b"%d" % id).replace(b"{other}", b"%d" % other)
                for text in one.get(key, ())
            )
            for key in ("setup", "packets")
        )
        numbers = tuple(one.get("numbers", ()))
        found.append(Conversation(one["name"], packets, setup, one.get("waits", False), numbers))
    return tuple(found)


@cache
def openings() -> tuple[bytes, ...]:
    """What comes instead of an answer to the greeting."""
    texts = yaml.safe_load((CORPUS / "openings.yaml").read_text(encoding="utf-8"))
    return tuple(text.encode("latin-1") for text in texts)


class Manner(NamedTuple):
    """How a client logs in."""

    plugin: str
    database: str | None
    flags: int


MANNERS = (
    Manner(wire.SHA2, "demo", 0),
    Manner(wire.SHA2, "demo", MULTI_STATEMENTS | LOCAL_FILES | wire.FOUND_ROWS),
    Manner(wire.NATIVE, "demo", MULTI_STATEMENTS | QUERY_ATTRIBUTES),
    Manner(wire.SHA2, None, LOCAL_FILES | COMPRESS),
)


class _Spoilt(Exception):
    """The client has said what it had to say; `data` is all that came after it."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Client(Raw):
    """A client whose write number `spoilt_write` (from 0) is changed by `change`, and its last."""

    def __init__(
        self,
        address: tuple[str, int],
        source: str,
        spoilt_write: int = -1,
        change: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        super().__init__(*address, timeout=PATIENCE, source=source)
        self.compressed = False
        self._left = spoilt_write
        self._change = change

    def write(self, data: bytes) -> None:
        self._left -= 1
        if self._left == -1:
            self.sock.sendall(self._change(data))
            raise _Spoilt(self.rest())
        self.sock.sendall(self.wrapped(data))

    def wrapped(self, data: bytes) -> bytes:
        """In packets of the compressed protocol, if that was agreed on."""
        if not self.compressed:
            return data
        body, size = (zlib.compress(data), len(data)) if len(data) > 50 else (data, 0)
        return struct.pack("<I", len(body))[:3] + b"\0" + struct.pack("<I", size)[:3] + body

    def enter(self, manner: Manner) -> None:
        """Log in. Raises Finding when that fails."""
        flags = manner.flags
        reply = self.login(USER, PASSWORD, manner.database, plugin=manner.plugin, flags=flags)
        if reply.kind != "ok":
            raise Finding(f"log-in: {reply}")
        self.compressed = bool(flags & COMPRESS & self.server_capabilities)

    def until(self, marker: bytes, seconds: float = PATIENCE) -> tuple[bytes, bool]:
        """What comes until it holds `marker` or the connection is closed, and whether it was closed.
        TimeoutError when neither happens.
        """
        self.sock.settimeout(seconds)
        data = bytearray(self.buffer)
        self.buffer.clear()
        while marker not in (opened(data) if self.compressed else data):
            try:
                more = self.sock.recv(1 << 16)
            except TimeoutError:
                self.buffer += data
                raise
            except ConnectionError:
                return bytes(data), True
            if not more:
                return bytes(data), True
            data += more
        return bytes(data), False

    def rest(self) -> bytes:
        """Say that nothing more comes; what the proxy sends until it closes. Finding when it does not."""
        with suppress(OSError):  # it may have closed already
            self.sock.shutdown(1)
        try:
            return self.until(b"no such bytes \xff\0\xff\0\xff\0")[0]
        except TimeoutError:
            raise Finding(
                f"not closed within {PATIENCE} s after the client's end: {self.buffer[-200:]!r}"
            ) from None


def opened(data: bytes | bytearray) -> bytes:
    """What is in whole packets of the compressed protocol."""
    out, pos = b"", 0
    while pos + 7 <= len(data):
        end = pos + 7 + int.from_bytes(data[pos : pos + 3], "little")
        if end > len(data):
            break
        body = bytes(data[pos + 7 : end])
        out += zlib.decompress(body) if any(data[pos + 4 : pos + 7]) else body
        pos = end
    return out


class ClientFuzz:
    """Cases for the proxy at `address`; `codes` counts the errors it has answered with."""

    def __init__(self, host: str, port: int, users: tuple[int, int], seed: int) -> None:
        self.address = host, port
        self.seed = seed
        self.conversations = conversations(*users)
        self.codes: Counter[int] = Counter()
        self.ends: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """Case `number`. Raises Finding."""
        chooser = Random(f"{self.seed}/{number}")
        kind = chooser.choices((self._command, self._stream, self._log_in, self._opening), (6, 3, 2, 1))[0]
        try:
            kind(chooser, number)
        except Finding as finding:
            raise Finding(f"case {number} of seed {self.seed}, {kind.__name__[1:]}: {finding}") from None

    def cuts(self) -> Iterator[tuple[str, int]]:
        """Every byte of the log-in, then of every conversation: arguments for `cut`."""
        with closing(Client(self.address, source(0))) as client:
            client.greeting()
            for place in range(len(client.response(USER, PASSWORD, "demo"))):
                yield "", place
        for one in self.conversations:
            for place in range(len(one.stream(one.packets))):
                yield one.name, place

    def cut(self, name: str, place: int) -> None:
        """A client that ends after `place` bytes of a conversation (the log-in when it has no name)."""
        origin = source(1 + place)
        try:
            if not name:
                with closing(Client(self.address, origin, 0, lambda data: data[:place])) as client:
                    client.enter(MANNERS[0])
            one = next(one for one in self.conversations if one.name == name)
            with closing(Client(self.address, origin)) as client:
                client.enter(MANNERS[1])
                stmt = self._set_up(client, one)
                client.write(one.stream(one.packets, stmt)[:place])
                self._judge(client, client.rest())
        except _Spoilt as end:
            self._judge(client, end.data)
        except Finding as finding:
            raise Finding(f"{name or 'log-in'} cut at byte {place}: {finding}") from None

    # -- kinds of cases

    def _command(self, chooser: Random, number: int) -> None:
        """One packet of a conversation has a spoilt payload; the framing is right."""
        one = chooser.choice(self.conversations)
        manner = chooser.choice(MANNERS)
        with closing(Client(self.address, source(number))) as client:
            client.enter(manner._replace(database="demo"))
            stmt = self._set_up(client, one)
            payloads = [payload.replace(b"{stmt}", stmt) for payload in one.packets]
            which = chooser.randrange(len(payloads))
            payloads[which] = spoil(chooser, payloads[which])
            command, marker = last_word(number)
            client.write(one.stream(payloads) + command)
            try:
                data, closed = client.until(marker, _HALF_A_SECOND if one.waits else PATIENCE)
            except TimeoutError:
                if not one.waits:
                    raise Finding(
                        f"no answer to {payloads} ({one.name}), so far {bytes(client.buffer)!r}"
                    ) from None
                data, closed = client.rest(), True
            self.ends["closed" if closed else "answered"] += 1
            self._judge(client, data)

    def _stream(self, chooser: Random, number: int) -> None:
        """A conversation's bytes are spoilt anywhere, headers too, and come in pieces."""
        one = chooser.choice(self.conversations)
        with closing(Client(self.address, source(number))) as client:
            client.enter(chooser.choice(MANNERS))
            stmt = self._set_up(client, one)
            for piece in pieces(chooser, spoil(chooser, client.wrapped(one.stream(one.packets, stmt)))):
                try:
                    client.sock.sendall(piece)
                except ConnectionError:
                    break  # closed already
            self._judge(client, client.rest())

    def _log_in(self, chooser: Random, number: int) -> None:
        """One packet of the log-in is spoilt: its payload, or anything of it."""

        def change(data: bytes) -> bytes:
            if chooser.random() < 0.7:
                return packet(spoil(chooser, data[4:]), data[3])
            return spoil(chooser, data)

        with closing(Client(self.address, source(number), chooser.choice((0, 0, 0, 1)), change)) as client:
            try:
                client.enter(chooser.choice(MANNERS))
            except _Spoilt as end:
                self._judge(client, end.data)

    def _opening(self, chooser: Random, number: int) -> None:
        """Something else than a log-in, before or after the greeting."""
        with closing(Client(self.address, source(number))) as client:
            if chooser.random() < 0.5:
                client.greeting()
            data = chooser.choice(openings())
            client.sock.sendall(spoil(chooser, data) if chooser.random() < 0.7 else data)
            self._judge(client, client.rest())

    # -- parts

    def _set_up(self, client: Client, one: Conversation) -> bytes:
        """Send the conversation's beginning; the id of the statement prepared, if it was."""
        if not one.setup:
            return b"\x01\0\0\0"
        command, marker = last_word(-1)
        client.write(b"".join(map(packet, one.setup)) + command)
        try:
            data, _ = client.until(marker)
        except TimeoutError:
            raise Finding(f"no answer to {one.setup}") from None
        self._judge(client, data)
        plain = opened(data) if client.compressed else data
        return bytes(plain[5:9]) if plain[4:5] == b"\0" else b"\x01\0\0\0"

    def _judge(self, client: Client, data: bytes) -> None:
        """Count the errors in what has come; Finding when one is the proxy's own bug."""
        plain = opened(data) if client.compressed else data
        for match in re.finditer(rb"\xff(..)#(\w{5})", plain, re.S):
            self.codes[int.from_bytes(match[1], "little")] += 1
        if b"Internal error" in plain:
            place = plain.index(b"Internal error")
            raise Finding(f"a bug: {plain[place : place + 200]!r}")


def last_word(number: int) -> tuple[bytes, bytes]:
    """A command that the proxy always answers by itself, and what its answer has in it."""
    id = 0x70000001 + number
    return packet(b"\x0c" + struct.pack("<I", id)), b"Unknown thread id: %d" % id


def source(number: int) -> str:
    """An address of its own for every case: failed log-ins are answered late, per address."""
    return f"127.{1 + number // 62_500 % 200}.{number // 250 % 250}.{1 + number % 250}"
