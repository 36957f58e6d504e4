"""One connection, fed by hand: whoever sends a statement hears exactly once what became of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends import connection as module
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import UNKNOWN
from proxy.errors import ProxyError
from proxy.wire import replies
from tests.backends.fakes import IN_TRANS, OK, FakeOwner, FakeTransport, Recorder, connection
from tests.support.waiting import turns
from tests.wire.streams import (
    Err,
    Ok,
    Result,
    Rows,
    cuts,
    err_packet,
    ok_packet,
    packet,
    read_reply,
    reply_packets,
    results,
)

ROWS = b"".join(reply_packets([Rows([b"\x011", b"\xfb"], warnings=1)]))
SET_FAILED = err_packet(1, 1231, "42000", "Variable 'x' can't be set")


def sent(
    receiver: Recorder, sync_packets: int = 0, replies: int = 1
) -> tuple[BackendConnection, FakeTransport, FakeOwner]:
    owner = FakeOwner()
    conn, transport = connection(owner)
    conn.settings = UNKNOWN
    conn.send(b"statement", receiver, sync_packets, replies=replies)
    assert transport.take() == b"statement"
    return conn, transport, owner


def feed_bytes(conn: BackendConnection, data: bytes) -> None:
    for byte in data:
        conn.data_received(bytes((byte,)))


# -- replies
# ----------------------------------------------------------------------------------------------------------


@given(st.data(), results(80), st.integers(0, 3))
def test_a_reply_comes_whole_and_is_over_once(data: st.DataObject, some: list[Result], count: int) -> None:
    reply = b"".join(reply_packets(some))
    receiver = Recorder()
    conn, _, owner = sent(receiver, count)
    for piece in data.draw(cuts(OK * count + reply)):
        assert conn.receiver is receiver
        conn.data_received(piece)
        given = b"".join(receiver.data)
        assert reply.startswith(given)
        assert read_reply(given).partial == 0, "given on in the middle of a packet"
    assert receiver.data == [reply, b""]
    assert receiver.ends == 1
    assert conn.receiver is None
    assert not owner.closed


@given(st.data(), st.lists(results(80), min_size=1, max_size=4), st.integers(0, 2))
def test_pipelined_replies(data: st.DataObject, many: list[list[Result]], count: int) -> None:
    expected = [b"".join(reply_packets(some)) for some in many]
    receiver = Recorder()
    conn, _, _ = sent(receiver, count, len(many))
    for piece in data.draw(cuts(OK * count + b"".join(expected))):
        conn.data_received(piece)
    assert receiver.data == [*expected, b""]
    assert not receiver.lost
    assert conn.receiver is None
    readings = [read_reply(reply) for reply in expected]
    affected = [reading.ok[0] if reading.ok else None for reading in readings]
    assert receiver.done == [(one, reading.err) for one, reading in zip(affected, readings, strict=True)]


def test_the_next_statement_from_within_the_last_one_s_end() -> None:
    second = Recorder()
    first = Recorder()
    first.on_done = lambda conn: conn.send(b"next", second)
    conn, transport, _ = sent(first)
    conn.data_received(OK)
    assert conn.receiver is second
    assert transport.take() == b"next"
    feed_bytes(conn, ROWS)
    assert second.data == [ROWS, b""]


def test_one_statement_at_a_time() -> None:
    conn, _, _ = sent(Recorder())
    with pytest.raises(RuntimeError, match="under way"):
        conn.send(b"another", Recorder())


def test_status_is_that_of_the_last_reply() -> None:
    conn, _, _ = sent(Recorder(), sync_packets=2)
    conn.data_received(OK + IN_TRANS)
    assert conn.in_transaction
    conn.data_received(err_packet(1, 1064, "42000", "no"))
    assert conn.in_transaction
    conn.send(b"rollback", Recorder())
    conn.data_received(OK)
    assert not conn.in_transaction


# -- sync statements
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [[], [OK]], ids=["first", "second"])
@pytest.mark.parametrize("reply", [OK, ROWS, err_packet(1, 1064, "42000", "no")], ids=["ok", "rows", "err"])
def test_a_failed_prelude_fails_the_statement(before: list[bytes], reply: bytes) -> None:
    data = b"".join(before) + SET_FAILED + OK + reply
    for cut in range(1, len(data)):
        receiver = Recorder()
        conn, transport, owner = sent(receiver, len(before) + 2)
        conn.data_received(data[:cut])
        assert not receiver.ends
        conn.data_received(data[cut:])
        assert receiver.lost == [("settings_failed", True)]
        assert not receiver.pieces
        assert not receiver.given
        assert not transport.open
        assert owner.closed == [conn]


def test_a_failed_prelude_fails_every_pipelined_statement() -> None:
    """None of their replies counts, though the server has run them."""
    receiver = Recorder()
    conn, _, _ = sent(receiver, 1, 3)
    conn.data_received(SET_FAILED + OK * 3)
    assert receiver.lost == [("settings_failed", True)]
    assert not receiver.pieces


def test_a_kill_waits_for_the_sync_statements() -> None:
    """The statement behind a SET that was killed would run without it."""
    conn, _, owner = sent(Recorder(), 2)
    conn.thread_id = 7
    conn.kill_query()
    conn.data_received(OK)
    assert (owner.kills, conn.doomed) == ([], True)
    conn.data_received(OK)
    assert owner.kills == [7]
    conn.data_received(OK)
    conn.send(b"another", Recorder(), 1)
    conn.data_received(OK)
    assert owner.kills == [7]
    conn.kill_query()
    assert owner.kills == [7, 7]


def test_a_connection_lost_after_a_failed_prelude_is_lost_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was given on, however much of a large row has come."""
    monkeypatch.setattr(module, "_HOLD_LIMIT", 8)
    receiver = Recorder()
    conn, _, _ = sent(receiver, 1)
    conn.data_received(SET_FAILED + ROWS[:-1])
    conn.data_received(b"")
    conn.connection_lost(None)
    assert receiver.lost == [("host_lost", True)]


@pytest.mark.parametrize(
    "answer", [packet(b"\x01", 1), packet(b"\0\0", 1), packet(b"\xfe\0\0\2\0", 1), b"\0\0\0\1"]
)
def test_a_prelude_answered_by_something_else(answer: bytes) -> None:
    receiver = Recorder()
    conn, transport, _ = sent(receiver, 1)
    conn.data_received(answer + OK)
    assert receiver.lost == [("backend_protocol", True)]
    assert not transport.open


# -- packets held back
# ----------------------------------------------------------------------------------------------------------

LONG = b"".join(reply_packets([Rows([b"r" * 50, b"s" * 200, b"t"])]))


@pytest.mark.parametrize("whole", [False, True])
def test_a_large_packet_in_pieces(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Above the limit a packet is passed on in pieces, unless the receiver wants it whole."""
    monkeypatch.setattr(module, "_HOLD_LIMIT", 100)
    receiver = Recorder(whole=whole)
    conn, _, _ = sent(receiver)
    held = 0
    for number, byte in enumerate(LONG, 1):
        conn.data_received(bytes((byte,)))
        given = len(receiver.data[0])
        held = max(held, number - given)
        if not receiver.done:
            assert conn.at_packet_end == (read_reply(LONG[:given]).partial == 0)
    assert receiver.data == [LONG, b""]
    assert held == (203 if whole else 99)


@pytest.mark.parametrize("whole", [False, True])
def test_lost_at_every_byte(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """`clean` is true only when the next packet may follow what was given on."""
    monkeypatch.setattr(module, "_HOLD_LIMIT", 100)
    monkeypatch.setattr(replies, "MAX_PAYLOAD", 120)
    data = b"".join(reply_packets([Rows([b"r" * 50, b"s" * 120, b"t" * 300, b"u"])], 120))
    for cut in range(len(data)):
        receiver = Recorder(whole=whole)
        conn, _, owner = sent(receiver)
        for piece in (data[: cut // 2], data[cut // 2 : cut]):
            if piece:
                conn.data_received(piece)
        conn.connection_lost(ConnectionResetError("reset"))
        assert owner.closed == [conn]
        [(name, clean)] = receiver.lost
        assert name == "host_lost"
        given = read_reply(receiver.data[0], 120)
        within = given.partial or _goes_on(receiver.data[0], 120)
        assert clean == (not within)
        assert receiver.given == given.seq


@pytest.mark.parametrize("limit", [1 << 20, 30])
def test_column_definitions_come_together(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """No server puts an error in the place of a definition, and some clients take it for one: so it comes in
    the place of the whole result, or of a row. Above the limit they are passed on as they come.
    """
    monkeypatch.setattr(module, "_HOLD_LIMIT", limit)
    parts = reply_packets([Rows([b"\x011"])])
    data, head = b"".join(parts), len(b"".join(parts[:-2]))
    for cut in range(1, len(data)):
        receiver = Recorder()
        conn, _, _ = sent(receiver)
        feed_bytes(conn, data[:cut])
        conn.connection_lost(None)
        assert receiver.lost == [("host_lost", True)]
        given = len(receiver.data[0])
        if limit > head:
            assert (given >= head) == (cut >= head)
            assert given == 0 or given >= head
        elif cut > limit:
            assert given > 0


def _goes_on(data: bytes, most: int) -> bool:
    """Whether the last packet of `data` is continued in another."""
    last = 0
    pos = 0
    while pos < len(data):
        last = int.from_bytes(data[pos : pos + 3], "little")
        pos += 4 + last
    return last == most


# -- ends
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 3])
def test_lost_at_every_byte_of_a_pipeline(count: int) -> None:
    data = OK * count + ROWS + OK + err_packet(1, 1064, "42000", "no")
    ends = [len(OK * count + ROWS), len(OK * count + ROWS + OK), len(data)]
    for cut in range(len(data) + 1):
        receiver = Recorder()
        conn, transport, owner = sent(receiver, count, 3)
        if cut:
            conn.data_received(data[:cut])
        conn.connection_lost(None)
        conn.connection_lost(None)
        assert len(receiver.done) == sum(cut >= end for end in ends)
        assert len(receiver.lost) == (cut < len(data))
        assert owner.closed == [conn]
        assert not transport.aborted


@pytest.mark.parametrize("data", [b"\xff", OK, ROWS])
def test_bytes_nobody_asked_for(data: bytes) -> None:
    owner = FakeOwner()
    conn, transport = connection(owner)
    conn.data_received(data)
    assert conn.closed
    assert owner.closed == [conn]
    assert transport.aborted == 1


@pytest.mark.parametrize("cut", [1, 5, len(OK)])
def test_bytes_behind_the_reply(cut: int) -> None:
    receiver = Recorder()
    conn, _, owner = sent(receiver)
    data = OK + b"!"
    conn.data_received(data[:cut])
    if not conn.closed:
        conn.data_received(data[cut:])
    assert receiver.ends == 1
    assert receiver.given == 0
    assert receiver.lost == ([] if cut == len(OK) else [("backend_protocol", True)])
    assert owner.closed == [conn]


@given(st.data(), st.binary(min_size=1, max_size=120), st.integers(0, 2), st.integers(1, 3))
def test_nonsense(data: st.DataObject, garbage: bytes, count: int, replies: int) -> None:
    """Whatever the server says, each statement ends once, and nothing but the error registry speaks of it."""
    receiver = Recorder()
    conn, _, owner = sent(receiver, count, replies)
    for piece in data.draw(cuts(data.draw(st.sampled_from((garbage, OK + garbage, ROWS + garbage))))):
        if not conn.closed:
            conn.data_received(piece)
    conn.connection_lost(None)
    assert len(receiver.lost) == (len(receiver.done) < replies)
    assert len(owner.closed) == 1


def test_nonsense_in_the_middle_is_clean_after_whole_packets() -> None:
    receiver = Recorder()
    conn, _, _ = sent(receiver)
    head = b"".join(reply_packets([Rows([b"\x011"])])[:-1])
    conn.data_received(head)
    conn.data_received(packet(b"\xfe", 5))
    assert receiver.data == [head]
    assert receiver.lost == [("backend_protocol", True)]


def test_close_says_nothing_to_the_receiver() -> None:
    receiver = Recorder()
    conn, transport, owner = sent(receiver)
    conn.data_received(ROWS[:20])
    conn.close()
    conn.close()
    conn.connection_lost(None)
    assert not receiver.ends
    assert transport.aborted == 1
    assert owner.closed == [conn]


@pytest.mark.parametrize("when", ["data", "done"])
def test_a_receiver_that_closes_the_connection_hears_no_more(when: str) -> None:
    receiver = Recorder()
    conn, _, owner = sent(receiver, 0, 3)
    setattr(receiver, f"on_{when}", BackendConnection.close)
    conn.data_received(OK * 3)
    assert len(receiver.done) == 1
    assert not receiver.lost
    assert owner.closed == [conn]


@pytest.mark.parametrize("how", ["by us", "by the server"])
async def test_a_statement_for_a_closed_connection(how: str) -> None:
    """A transaction's connection may die between two statements: the second must not wait for ever."""
    owner = FakeOwner()
    conn, transport = connection(owner)
    conn.scanner.feed(ok_packet(1, 3))
    if how == "by us":
        conn.close()
    else:
        conn.connection_lost(None)
    receiver = Recorder()
    conn.send(b"statement", receiver)
    assert not receiver.ends, "not before send has returned"
    await turns()
    assert receiver.lost == [("connection_gone", True)]
    assert conn.scanner.seq == 0
    assert transport.take() == b""
    assert owner.closed == [conn]


async def test_a_statement_for_a_closed_connection_that_nobody_waits_for() -> None:
    conn, _ = connection()
    conn.connection_lost(None)
    receiver = Recorder()
    conn.send(b"statement", receiver)
    conn.close()
    await turns()
    assert not receiver.ends


def test_end_of_stream_closes() -> None:
    conn, _ = connection()
    assert conn.eof_received() is False


def test_errors_of_servers_are_replies() -> None:
    receiver = Recorder()
    conn, _, owner = sent(receiver, 0, 2)
    conn.data_received(b"".join(reply_packets([Err(1213)])) + b"".join(reply_packets([Ok(5)])))
    assert receiver.done == [(None, 1213), (5, None)]
    assert not owner.closed


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "the server closed the connection"),
        (ConnectionResetError(104, "Connection reset by peer"), "the server closed the connection"),
        (BrokenPipeError(32, "Broken pipe"), "the server closed the connection"),
        (TimeoutError(110, "Connection timed out"), "Connection timed out"),
        (ValueError("odd"), "odd"),
    ],
)
def test_a_lost_connection_is_told_in_plain_words(error: Exception | None, reason: str) -> None:
    """A server that is killed closes or resets its connections, by what was under way."""
    told: list[str] = []

    class Client(Recorder):
        def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
            told.append(str(error.details["reason"]))

    conn, _ = connection()
    conn.send(b"Q", Client())
    conn.connection_lost(error)
    assert told == [reason]
