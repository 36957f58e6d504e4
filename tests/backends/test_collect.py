"""Small replies as values; and what becomes of whoever waits for one that never comes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.wire import replies, rows
from proxy.wire.packets import frame
from proxy.wire.resultset import encode_row, integer_column, text_column, text_resultset
from tests.backends.fakes import IN_TRANS, OK, FakeTransport, connection
from tests.support.waiting import turns_until
from tests.wire.streams import Rows, definitions, err_packet, ok_packet, packet, reply_packets

RESULT = text_resultset(
    [text_column("a"), text_column("b")], [["1", None], ["", "x"]], 2, warnings=1, extended=False
)


async def begun(conn: BackendConnection, question: Coroutine[Any, Any, Collector]) -> asyncio.Task[Collector]:
    """The task that waits for the answer: `conn` has been asked."""
    task = asyncio.ensure_future(question)
    await turns_until(lambda: conn.receiver, "the question is written")
    return task


async def asked() -> tuple[BackendConnection, FakeTransport, asyncio.Task[Collector]]:
    conn, transport = connection()
    return conn, transport, await begun(conn, Collector().query(conn, b"SELECT 1"))


async def test_rows() -> None:
    conn, transport, task = await asked()
    assert transport.take() == frame(b"\x03SELECT 1")
    for byte in RESULT:
        conn.data_received(bytes((byte,)))
    reply = await task
    assert reply.values() == [[b"1", None], [b"", b"x"]]
    assert (reply.ok, reply.err, reply.status, reply.warnings) == (None, None, 2, 1)
    assert len(reply.columns) == 2
    assert conn.receiver is None


async def test_wide_texts() -> None:
    """As with character_set_results = ucs2: texts are read in it, and MariaDB's numbers."""
    conn, _, task = await asked()
    columns = [replace(text_column("a"), collation=35), integer_column("b")]
    values = ["é".encode("utf-16-be"), "12".encode("utf-16-be")]
    conn.data_received(text_resultset(columns, [values, [None, None]], 2, extended=False))
    assert (await task).values() == [["é".encode(), b"12"], [None, None]]


async def test_ok_and_err() -> None:
    conn, _, task = await asked()
    conn.data_received(ok_packet(1, 3, affected=4, insert_id=5))
    reply = await task
    assert reply.ok is not None
    assert (reply.ok.affected, reply.ok.insert_id, reply.status, reply.values()) == (4, 5, 3, [])
    task = await begun(conn, Collector().query(conn, b"x"))
    conn.data_received(err_packet(1, 1146, "42S02", "no such table"))
    reply = await task
    assert reply.err is not None
    assert reply.err.code == 1146


async def test_an_error_behind_rows_and_preludes() -> None:
    conn, _ = connection()
    task = await begun(conn, Collector().run(conn, b"packets", 2))
    broken = b"".join(reply_packets([Rows([b"\x011"], definitions=definitions(1))])[:-1]) + err_packet(
        5, 1317, "70100", "killed"
    )
    conn.data_received(OK + IN_TRANS + broken)
    reply = await task
    assert reply.err is not None
    assert reply.rows == [b"\x011"]
    assert conn.in_transaction


async def test_rows_of_several_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (replies, rows):
        monkeypatch.setattr(module, "MAX_PAYLOAD", 64)
    long = encode_row([b"v" * 200])
    conn, _, task = await asked()
    for part in reply_packets([Rows([long, b"\xfb", long], definitions=definitions(1))], 64):
        conn.data_received(part)
    assert (await task).values() == [[b"v" * 200], [None], [b"v" * 200]]


async def test_lost() -> None:
    conn, _, task = await asked()
    conn.data_received(RESULT[:-5])
    conn.connection_lost(None)
    with pytest.raises(ProxyError) as caught:
        await task
    assert caught.value.kind.name == "host_lost"


async def test_lost_before_it_was_asked() -> None:
    conn, _ = connection()
    question = Collector().query(conn, b"SELECT 1")
    conn.connection_lost(None)
    with pytest.raises(ProxyError, match="Lost connection"):
        await question


async def test_cancelled() -> None:
    """What is half read cannot be read on: the connection is closed."""
    conn, _, task = await asked()
    conn.data_received(RESULT[:-5])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert conn.closed


async def test_the_statement_s_time_begins_now() -> None:
    """A connection that was idle in a transaction for hours is not at work for hours."""
    conn, _ = connection()
    conn.begun = 0.0
    before = monotonic()
    task = await begun(conn, Collector().query(conn, b"SELECT 1"))
    assert conn.begun >= before
    conn.data_received(OK)
    await task


async def test_a_row_that_is_none() -> None:
    conn, _, task = await asked()
    conn.data_received(b"".join(reply_packets([Rows([b"\x07short"])])))
    with pytest.raises(ProxyError, match="Malformed packet from MySQL server h1:3306"):
        (await task).values()


async def test_nonsense() -> None:
    conn, _, task = await asked()
    conn.data_received(packet(b"\xfb", 1))
    with pytest.raises(ProxyError, match="Malformed packet"):
        await task


async def test_a_definition_that_is_none() -> None:
    conn, _, task = await asked()
    conn.data_received(b"".join(reply_packets([Rows([b"\x011"], definitions=[b"\x03def\xff"])])))
    with pytest.raises(ProxyError, match="Malformed packet from MySQL server h1:3306"):
        await task
