"""What a reply says of the connection's state: nothing dirty goes to others, nor as a plain OK."""

from __future__ import annotations

import pytest

from proxy.backends.connection import BackendConnection
from proxy.backends.settings import LOGIN
from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.packets import frame, lenenc_bytes
from tests.backends.fakes import OK, FakeOwner, FakeTransport, Recorder, connection
from tests.wire.streams import Rows, err_packet, ok_packet, reply_packets

AUTOCOMMIT, IN_TRANS, CHANGED = 0x0002, 0x0001, 0x4000
STATE_CHANGE = b"\x02\x02\x011"
VARIABLE = b"\x00" + lenenc_bytes(lenenc_bytes(b"time_zone") + lenenc_bytes(b"+03:00"))
TRANSACTION = b"\x05\x09\x08T_______"


def tracked(status: int, state: bytes, info: bytes = b"") -> bytes:
    """An OK packet with session state."""
    return ok_packet(1, status | CHANGED, affected=3, info=lenenc_bytes(info) + lenenc_bytes(state))


def rows(status: int) -> bytes:
    return b"".join(reply_packets([Rows([b"\x011"], status=status)]))


def asked(receiver: Recorder) -> tuple[BackendConnection, FakeTransport, FakeOwner]:
    owner = FakeOwner()
    conn, transport = connection(owner)
    conn.settings = LOGIN
    conn.ask(b"statement", receiver)
    transport.take()
    return conn, transport, owner


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("reply", "shown", "unclean"),
    [
        (OK, OK, False),
        (tracked(AUTOCOMMIT, STATE_CHANGE), ok_packet(1, AUTOCOMMIT, affected=3), True),
        (tracked(AUTOCOMMIT, VARIABLE + STATE_CHANGE), ok_packet(1, AUTOCOMMIT, affected=3), True),
        (
            tracked(AUTOCOMMIT, STATE_CHANGE, b"Rows: 3"),
            ok_packet(1, AUTOCOMMIT, affected=3, info=b"\x07Rows: 3"),
            True,
        ),
        (tracked(AUTOCOMMIT, TRANSACTION), ok_packet(1, AUTOCOMMIT, affected=3), False),
        (rows(AUTOCOMMIT), rows(AUTOCOMMIT), False),
        (rows(AUTOCOMMIT | CHANGED), rows(AUTOCOMMIT | CHANGED)[:-2] + b"\x02\x00", True),
        (err_packet(1, 1062, "23000", "Duplicate"), err_packet(1, 1062, "23000", "Duplicate"), True),
        (tracked(0, STATE_CHANGE), ok_packet(1, 0, affected=3), True),
    ],
)
def test_what_a_reply_says(reply: bytes, shown: bytes, unclean: bool, pieces: int) -> None:
    receiver = Recorder()
    conn, _, _ = asked(receiver)
    for at in range(pieces):
        conn.data_received(reply[at * len(reply) // pieces : (at + 1) * len(reply) // pieces])
    assert receiver.data == [shown, b""]
    assert conn.unclean is unclean
    assert not conn.closed
    assert not conn.scanner.status & CHANGED


@pytest.mark.parametrize("reply", [ok_packet(1, 0, affected=1), rows(0)], ids=["ok", "rows"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_autocommit_is_not_what_it_should_be(reply: bytes, pieces: int) -> None:
    """Nothing says that the statement has changed it: it was so before, and the write is not committed."""
    receiver = Recorder()
    conn, _, owner = asked(receiver)
    for at in range(pieces):
        conn.data_received(reply[at * len(reply) // pieces : (at + 1) * len(reply) // pieces])
    assert [name for name, _ in receiver.lost] == ["unclean_connection"]
    assert not receiver.done
    assert owner.closed == [conn]


def test_autocommit_as_set() -> None:
    receiver = Recorder()
    conn, _, _ = asked(receiver)
    conn.settings = LOGIN.with_values({"autocommit": b"0"})
    conn.data_received(ok_packet(1, 0, affected=1))
    assert receiver.done == [(1, None)]
    conn.ask(b"next", receiver)
    conn.data_received(OK)
    assert [name for name, _ in receiver.lost] == ["unclean_connection"]


class Strict(Recorder):
    """A session without a transaction."""

    def accepts(self, conn: object, changed: bool) -> bool:
        return False


@pytest.mark.parametrize("reply", [ok_packet(1, 3, affected=1), rows(3)], ids=["ok", "rows"])
def test_a_transaction_of_nobody(reply: bytes) -> None:
    receiver = Strict()
    conn, _, owner = asked(receiver)
    conn.data_received(reply)
    assert [name for name, _ in receiver.lost] == ["unclean_connection"]
    assert owner.closed == [conn]


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize(
    "reply", [ok_packet(2, 2), ok_packet(0, 2), err_packet(0, 4031, "HY000", "inactive"), b"\x01\0\0\x05\x01"]
)
def test_what_answers_nothing_that_was_asked(reply: bytes, pieces: int) -> None:
    """A packet of another number is no reply: it came from before, or out of the blue."""
    receiver = Recorder()
    conn, _, owner = asked(receiver)
    for at in range(pieces):
        if not conn.closed:
            conn.data_received(reply[at * len(reply) // pieces : (at + 1) * len(reply) // pieces])
    assert [name for name, _ in receiver.lost] == ["backend_protocol"]
    assert owner.closed == [conn]


LARGE = frame(b"\x03" + b"x" * MAX_PAYLOAD)
SMALL = frame(b"\x03SELECT 1")


@pytest.mark.parametrize(
    ("commands", "sync_packets", "replies", "numbers"),
    [
        (LARGE, 0, 1, [2]),
        (LARGE, 0, 1, [1]),  # an error before all was read
        (SMALL + LARGE, 0, 2, [1, 2]),
        (LARGE + SMALL, 0, 2, [2, 1]),
        (LARGE + SMALL, 1, 1, [2, 1]),
        (LARGE + SMALL + LARGE, 2, 1, [2, 1, 2]),
    ],
)
def test_answers_to_what_is_larger_than_a_packet(
    commands: bytes, sync_packets: int, replies: int, numbers: list[int]
) -> None:
    """Its packets have numbers, too."""
    receiver = Recorder()
    conn, _, owner = asked(receiver)
    conn.data_received(OK)
    for pending in (False, True):
        receiver = Recorder()
        if pending:
            conn.tell(LARGE)
        conn.send(commands, receiver, sync_packets, replies=replies)
        for number in [2, *numbers] if pending else numbers:
            conn.data_received(ok_packet(number, AUTOCOMMIT))
        assert receiver.ends == replies
        assert not receiver.lost
        conn.ask(SMALL, receiver)
        conn.data_received(OK)
        assert receiver.ends == replies + 1
    conn.ask(SMALL, receiver)
    conn.data_received(ok_packet(2, AUTOCOMMIT))
    assert [name for name, _ in receiver.lost] == ["backend_protocol"]
    assert owner.closed == [conn]


@pytest.mark.parametrize("more", [OK, err_packet(1, 1105, "HY000", "x"), rows(2), b"\x07"])
def test_more_than_the_reply(more: bytes) -> None:
    """In one read with it, or when nothing is asked."""
    receiver = Recorder()
    conn, _, owner = asked(receiver)
    conn.data_received(OK + more)
    assert [name for name, _ in receiver.lost] == ["backend_protocol"]
    assert owner.closed == [conn]
    receiver = Recorder()
    conn, _, owner = asked(receiver)
    conn.data_received(OK)
    conn.data_received(more)
    assert receiver.done == [(0, None)]
    assert owner.closed == [conn]
