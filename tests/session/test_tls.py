"""`TlsTransport` by hand-fed bytes: two of them face to face, and peers that spoil the handshake."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.tls import BackendTls, ClientTls
from demo.certificates import LocalAuthority
from proxy.tls import TlsTransport
from tests.backends.fakes import FakeTransport


class App(asyncio.Protocol):
    """What a protocol hears."""

    def __init__(self) -> None:
        self.data = b""
        self.calls = 0
        self.heard: list[str] = []

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.calls += 1

    def eof_received(self) -> bool:
        self.heard.append("eof")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append("lost")

    def pause_writing(self) -> None:
        self.heard.append("pause")

    def resume_writing(self) -> None:
        self.heard.append("resume")


class Raw(FakeTransport):
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class End:
    """One end of a connection."""

    def __init__(self, context: ssl.SSLContext, name: str | None = None) -> None:
        self.app, self.raw = App(), Raw()
        self.outcome: list[str] = []
        self.tls = TlsTransport(
            self.raw,
            self.app,
            context,
            ready=lambda: self.outcome.append("ready"),
            failed=self.outcome.append,
            server_name=name,
        )

    def feed(self, data: bytes, size: int = 1 << 20) -> None:
        for n in range(0, len(data), size):
            self.tls.data_received(data[n : n + size])


class Pair:
    def __init__(self, server: ClientTls, client: BackendTls, name: str = "127.0.0.1") -> None:
        self.server, self.client = End(server.context()), End(client.context(), name)

    def run(self, size: int = 1 << 20) -> None:
        """Carry bytes until both are silent."""
        for _ in range(20):
            there, back = self.client.raw.take(), self.server.raw.take()
            if not there and not back:
                return
            self.server.feed(there, size)
            self.client.feed(back, size)
        raise AssertionError("they never end")

    def shake_hands(self, size: int = 1 << 20) -> None:
        self.client.tls.start()
        self.server.tls.start(self.client.raw.take())  # with the request for TLS
        self.run(size)
        assert self.client.outcome == self.server.outcome == ["ready"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> LocalAuthority:
    return LocalAuthority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def settings(authority: LocalAuthority) -> tuple[ClientTls, BackendTls]:
    cert, key = authority.issue()
    return ClientTls(cert=cert, key=key), BackendTls(ca=authority.ca)


@pytest.fixture
def pair(settings: tuple[ClientTls, BackendTls]) -> Pair:
    return Pair(*settings)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_there_and_back(pair: Pair, size: int) -> None:
    pair.shake_hands(size)
    assert pair.server.raw.protocol is pair.server.tls
    pair.client.tls.write(b"question")
    pair.server.tls.write(b"answer" * 10000)
    pair.run(size)
    assert (pair.server.app.data, pair.client.app.data) == (b"question", b"answer" * 10000)
    cipher = pair.client.tls.get_extra_info("cipher")
    assert cipher == pair.server.tls.get_extra_info("cipher")
    assert cipher[1].startswith("TLSv1.")


def test_one_read_is_one_read_and_one_write_one_write(pair: Pair) -> None:
    pair.shake_hands()
    writes = pair.server.raw.writes
    pair.server.tls.write(b"x" * 200000)  # 13 records
    assert pair.server.raw.writes == writes + 1
    pair.client.feed(pair.server.raw.take())
    assert (pair.client.app.calls, len(pair.client.app.data)) == (1, 200000)


def test_what_is_written_before_tls_stands_waits(pair: Pair) -> None:
    pair.server.tls.write(b"early")
    assert pair.server.raw.take() == b""
    pair.shake_hands()
    assert pair.client.app.data == b"early"


@given(st.lists(st.binary(min_size=1, max_size=40000), max_size=6), st.integers(1, 70000))
def test_any_data_cut_anywhere(
    settings: tuple[ClientTls, BackendTls], pieces: list[bytes], size: int
) -> None:
    pair = Pair(*settings)
    pair.shake_hands()
    for piece in pieces:
        pair.client.tls.write(piece)
    pair.run(size)
    assert pair.server.app.data == b"".join(pieces)


CLEAR = {
    "a packet": b"\x20\0\0\2" + b"\0" * 32,
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "zeroes": b"\0" * 100,
    "an alert": b"\x15\x03\x01\0\2\2\x28",
    "a broken hello": b"\x16\x03\x01\0\5\1\0\0\1\xff",
}


@pytest.mark.parametrize("data", CLEAR.values(), ids=CLEAR)
@pytest.mark.parametrize("size", [1, 100])
def test_no_hello(pair: Pair, data: bytes, size: int) -> None:
    pair.server.tls.start()
    pair.server.feed(data, size)
    assert len(pair.server.outcome) == 1
    assert pair.server.outcome != ["ready"]
    assert not pair.server.raw.open
    assert pair.server.app.data == b""
    pair.server.feed(b"more")  # on its way already


@given(st.integers(0, 5), st.integers(0, 2000), st.integers(1, 255))
def test_a_handshake_with_one_wrong_byte(
    settings: tuple[ClientTls, BackendTls], flight: int, place: int, change: int
) -> None:
    """It fails for one side at least, with a reason, or the byte did not matter; nothing is raised."""
    pair = Pair(*settings)
    pair.client.tls.start()
    pair.server.tls.start()
    pair.client.tls.write(b"question")
    for number in range(6):
        sender, receiver = (pair.client, pair.server) if number % 2 == 0 else (pair.server, pair.client)
        data = bytearray(sender.raw.take())
        if number == flight and data:
            data[place % len(data)] ^= change
        receiver.feed(bytes(data))
    for end in (pair.client, pair.server):
        assert len(end.outcome) <= 1
        if end.outcome and end.outcome != ["ready"]:
            assert not end.raw.open
    assert pair.server.app.data in (b"", b"question")


def test_clear_text_between_hello_and_finished(pair: Pair) -> None:
    pair.client.tls.start()
    pair.server.tls.start(pair.client.raw.take())
    pair.server.feed(b"\x0f\0\0\0\3SELECT secrets")
    assert pair.server.outcome != ["ready"]
    assert pair.server.app.data == b""
    assert not pair.server.raw.open


def test_a_peer_that_goes_in_the_middle(pair: Pair) -> None:
    pair.client.tls.start()
    pair.server.tls.start(pair.client.raw.take()[:50])
    pair.server.tls.eof_received()
    assert pair.server.outcome == ["the peer closed the connection"]
    pair.client.tls.connection_lost(ConnectionResetError("reset"))
    assert (pair.client.outcome, pair.client.app.heard) == (["reset"], ["lost"])


def test_the_end(pair: Pair) -> None:
    pair.shake_hands()
    pair.server.tls.write(b"last words")
    pair.server.tls.close()
    assert not pair.server.raw.open
    pair.server.tls.write(b"too late")
    pair.client.feed(pair.server.raw.take())
    assert (pair.client.app.data, pair.client.app.heard) == (b"last words", ["eof"])
    assert not pair.client.raw.open, "close_notify is the end"
    assert pair.client.tls.is_closing()


def test_damage_is_the_end(pair: Pair) -> None:
    pair.shake_hands()
    pair.client.tls.write(b"whole")
    whole = pair.client.raw.take()
    pair.client.tls.write(b"damaged")
    damaged = bytearray(pair.client.raw.take())
    damaged[-1] ^= 1
    pair.server.feed(whole + damaged)
    assert (pair.server.app.data, pair.server.app.heard) == (b"whole", ["eof"])
    assert not pair.server.raw.open


def test_flow_is_the_transports(pair: Pair) -> None:
    pair.shake_hands()
    pair.server.tls.pause_writing()
    pair.server.tls.resume_writing()
    assert pair.server.app.heard == ["pause", "resume"]
    reading = []
    for change in (pair.server.tls.pause_reading, pair.server.tls.resume_reading):
        change()
        reading.append(pair.server.raw.reading)
    assert reading == [False, True]
    assert pair.server.tls.get_extra_info("peername") == ("127.0.0.1", 50000)
    other = App()
    pair.server.tls.set_protocol(other)
    pair.client.tls.write(b"for the other")
    pair.run()
    assert other.data == b"for the other"
    pair.server.tls.abort()
    assert pair.server.raw.aborted == 1


@pytest.mark.parametrize(
    ("verify", "name", "trusted", "fits"),
    [
        ("full", "127.0.0.1", True, True),
        ("full", "localhost", True, True),
        ("full", "127.0.0.2", True, False),
        ("full", "elsewhere", True, False),
        ("full", "localhost", False, False),
        ("ca", "elsewhere", True, True),
        ("ca", "localhost", False, False),
        ("none", "elsewhere", False, True),
    ],
)
def test_who_is_believed(
    settings: tuple[ClientTls, BackendTls],
    tmp_path_factory: pytest.TempPathFactory,
    verify: str,
    name: str,
    trusted: bool,
    fits: bool,
) -> None:
    ca = settings[1].ca if trusted else LocalAuthority(tmp_path_factory.mktemp("other")).ca
    pair = Pair(settings[0], BackendTls.model_validate({"ca": ca, "verify": verify}), name)
    pair.client.tls.start()
    pair.server.tls.start(pair.client.raw.take())
    pair.run()
    assert (pair.client.outcome == ["ready"]) == fits
    if not fits:
        assert pair.client.outcome[0].startswith("the certificate is refused")
        assert not pair.client.raw.open


def test_versions(settings: tuple[ClientTls, BackendTls]) -> None:
    server = settings[0].model_copy(update={"min_version": "TLSv1.3"})
    pair = Pair(server, settings[1])
    old = settings[1].context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    pair.client = End(old, "127.0.0.1")
    pair.client.tls.start()
    pair.server.tls.start(pair.client.raw.take())
    assert pair.server.outcome == ["unsupported protocol"]
