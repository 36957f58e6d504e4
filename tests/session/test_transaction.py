"""A session's transaction as a value: what it sends, and what it holds."""

from __future__ import annotations

import pytest

from proxy.backends.settings import LOGIN
from proxy.session.savepoints import savepoint_of
from proxy.session.transaction import Transaction, completion_of, modes_of
from proxy.wire.packets import PacketReader
from rewriter.plans.characteristics import PLAIN, Characteristics, Completion, Isolation
from tests.backends.fakes import IN_TRANS, connection


def statements(packets: tuple[bytes, int]) -> list[bytes]:
    """The COM_QUERYs, which must be as many as were said."""
    found = [payload for _, payload in PacketReader(1 << 20).feed(packets[0])]
    assert len(found) == packets[1]
    assert all(payload[:1] == b"\x03" for payload in found)
    return [payload[1:] for payload in found]


def test_a_plain_begin() -> None:
    transaction = Transaction()
    was = transaction.open
    transaction.start()
    assert (was, transaction.open) == (False, True)
    assert statements(transaction.opening(LOGIN)) == [b"START TRANSACTION"]


def test_all_that_opens_it() -> None:
    transaction = Transaction()
    transaction.next = Characteristics(Isolation.READ_COMMITTED, read_only=True)
    transaction.start(Characteristics(snapshot=True))
    transaction.savepoints += (savepoint_of(b"`a`", "utf8mb4"), savepoint_of(b"`b`", "utf8mb4"))
    assert statements(transaction.opening(LOGIN)) == [
        b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
        b"START TRANSACTION WITH CONSISTENT SNAPSHOT",
        b"SAVEPOINT `a`",
        b"SAVEPOINT `b`",
    ]


def test_with_autocommit_off_a_statement_opens_it() -> None:
    transaction = Transaction()
    assert transaction.opening(LOGIN) == (b"", 0)
    transaction.savepoints += (savepoint_of(b"`a`", "utf8mb4"),)
    assert statements(transaction.opening(LOGIN)) == [b"SAVEPOINT `a`"]


def test_open_by_the_servers_word() -> None:
    transaction = Transaction()
    conn, _ = connection()
    transaction.held["h1"] = conn
    was = transaction.open
    conn.scanner.feed(IN_TRANS)
    assert (was, transaction.open) == (False, True)


def test_end() -> None:
    """Pinned connections stay, the others are the caller's to give back; nothing of the old one is left."""
    transaction = Transaction()
    transaction.next = Characteristics(read_only=True)
    transaction.start()
    pinned, other = connection()[0], connection()[0]
    pinned.pinned = True
    pinned.host = "h1"
    transaction.pins["h1"] = [("lock", "a")]
    transaction.held = {"h1": pinned, "h2": other}
    transaction.opened |= {"h1", "h2"}
    transaction.savepoints += (savepoint_of(b"`a`", "utf8mb4"),)
    transaction.lost = "why"
    ended = transaction.end()
    assert ended == [other]
    assert transaction.held == {"h1": pinned}
    assert not any((transaction.open, transaction.lost, transaction.savepoints, transaction.opened))
    assert transaction.next is None


def test_the_next_one_begins_anew() -> None:
    transaction = Transaction()
    transaction.start()
    transaction.opened |= {"h1"}
    transaction.savepoints += (savepoint_of(b"`a`", "utf8mb4"),)
    transaction.lost = "why"
    transaction.start(Characteristics(read_only=True))
    assert (transaction.begin, transaction.lost, transaction.savepoints, transaction.opened) == (
        Characteristics(read_only=True),
        "",
        (),
        frozenset(),
    )


def test_what_is_set_later_is_not_for_it() -> None:
    transaction = Transaction()
    transaction.start(modes=modes_of(LOGIN))
    later = LOGIN.with_values({"transaction_isolation": b"'SERIALIZABLE'", "transaction_read_only": b"1"})
    assert statements(transaction.opening(later)) == [
        b"SET @@transaction_isolation = @@global.transaction_isolation",
        b"START TRANSACTION READ WRITE",
    ]
    transaction.start(Characteristics(snapshot=True), modes_of(later))
    assert statements(transaction.opening(LOGIN)) == [
        b"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ]
    transaction.start(Characteristics(read_only=False), modes_of(LOGIN))
    transaction.next = Characteristics(Isolation.READ_COMMITTED)
    assert statements(transaction.opening(later)) == [
        b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        b"START TRANSACTION READ WRITE",
    ]
    transaction.start(modes=modes_of(later))
    transaction.next = Characteristics(Isolation.READ_UNCOMMITTED)
    assert statements(transaction.opening(LOGIN)) == [
        b"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        b"START TRANSACTION READ ONLY",
    ]


@pytest.mark.parametrize(
    ("said", "start", "set_"),
    [
        (PLAIN, b"START TRANSACTION", b""),
        (Characteristics(read_only=False), b"START TRANSACTION READ WRITE", b"SET TRANSACTION READ WRITE"),
        (
            Characteristics(Isolation.REPEATABLE_READ, read_only=True, snapshot=True),
            b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        ),
    ],
)
def test_what_is_said_of_a_transaction_as_sql(said: Characteristics, start: bytes, set_: bytes) -> None:
    assert said.start == start
    assert not set_ or said.set == set_


def test_what_one_says_and_another_says_of_the_rest() -> None:
    first = Characteristics(read_only=False)
    second = Characteristics(Isolation.SERIALIZABLE, read_only=True, snapshot=True)
    assert first.over(second) == Characteristics(Isolation.SERIALIZABLE, read_only=False, snapshot=True)
    assert second.over(first) == second
    assert PLAIN.over(first) == first.over(PLAIN) == first


@pytest.mark.parametrize(
    ("value", "completion"),
    [
        (None, Completion.NO_CHAIN),
        (b"'NO_CHAIN'", Completion.NO_CHAIN),
        (b"0", Completion.NO_CHAIN),
        (b"'chain'", Completion.CHAIN),
        (b"1", Completion.CHAIN),
        (b"'RELEASE'", Completion.RELEASE),
        (b"2", Completion.RELEASE),
    ],
)
def test_what_follows_the_end(value: bytes | None, completion: Completion) -> None:
    settings = LOGIN if value is None else LOGIN.with_values({"completion_type": value})
    assert completion_of(settings) is completion
