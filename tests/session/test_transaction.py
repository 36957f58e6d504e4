"""A session's transaction as a value: what it sends, and what it holds."""

from __future__ import annotations

from proxy.backends.settings import LOGIN
from proxy.session.transaction import START, Transaction, modes_of
from proxy.wire.packets import PacketReader
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
    transaction.start(START)
    assert (was, transaction.open) == (False, True)
    assert statements(transaction.opening(LOGIN)) == [b"START TRANSACTION"]


def test_all_that_opens_it() -> None:
    transaction = Transaction()
    transaction.next_isolation = b"ISOLATION LEVEL READ COMMITTED, READ ONLY"
    transaction.start(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")
    transaction.savepoints += [b"`a`", b"`b`"]
    assert statements(transaction.opening(LOGIN)) == [
        b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
        b"START TRANSACTION WITH CONSISTENT SNAPSHOT",
        b"SAVEPOINT `a`",
        b"SAVEPOINT `b`",
    ]


def test_with_autocommit_off_a_statement_opens_it() -> None:
    transaction = Transaction()
    assert transaction.opening(LOGIN) == (b"", 0)
    transaction.savepoints.append(b"`a`")
    assert statements(transaction.opening(LOGIN)) == [b"SAVEPOINT `a`"]


def test_open_by_the_servers_word() -> None:
    transaction = Transaction()
    conn, _ = connection()
    transaction.held["h1"] = conn
    was = transaction.open
    conn.scanner.feed(IN_TRANS)
    assert (was, transaction.open) == (False, True)


def test_end() -> None:
    """Tied connections stay, the others are the caller's to give back; nothing of the old one is left."""
    transaction = Transaction()
    transaction.next_isolation = b"READ ONLY"
    transaction.start(START)
    tied, other = connection()[0], connection()[0]
    tied.tied = True
    tied.host = "h1"
    transaction.ties["h1"] = [("lock", "a")]
    transaction.held = {"h1": tied, "h2": other}
    transaction.opened |= {"h1", "h2"}
    transaction.savepoints.append(b"`a`")
    transaction.lost = "why"
    ended = transaction.end()
    assert ended == [other]
    assert transaction.held == {"h1": tied}
    assert not any((transaction.open, transaction.lost, transaction.savepoints, transaction.opened))
    assert transaction.next_isolation is None


def test_the_next_one_begins_anew() -> None:
    transaction = Transaction()
    transaction.start(START)
    transaction.opened.add("h1")
    transaction.savepoints.append(b"`a`")
    transaction.lost = "why"
    transaction.start(b"BEGIN")
    assert (transaction.begin, transaction.lost, transaction.savepoints, transaction.opened) == (
        b"BEGIN",
        "",
        [],
        set(),
    )


def test_what_is_set_later_is_not_for_it() -> None:
    transaction = Transaction()
    transaction.start(START, modes_of(LOGIN))
    later = LOGIN.with_values({"transaction_isolation": b"'SERIALIZABLE'", "transaction_read_only": b"1"})
    assert statements(transaction.opening(later)) == [
        b"SET @@transaction_isolation = @@global.transaction_isolation",
        b"START TRANSACTION READ WRITE",
    ]
    transaction.start(b"START TRANSACTION WITH CONSISTENT SNAPSHOT", modes_of(later))
    assert statements(transaction.opening(LOGIN)) == [
        b"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ]
    transaction.start(b"START TRANSACTION READ WRITE", modes_of(LOGIN))
    transaction.next_isolation = b"ISOLATION LEVEL READ COMMITTED"
    assert statements(transaction.opening(later)) == [
        b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        b"START TRANSACTION READ WRITE",
    ]
