"""Lists of IDs over several hosts by the compiled way and by Python's: what begins at once, and the pieces of
the replies, in two worlds that must stay the same (`two_worlds`).
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.engine.relay import Relay
from proxy.wire.resultset import encode_row
from rewriter.reads import select
from tests.execute.test_plain import CLIENTS, STEPS, WARM, compiled
from tests.execute.two_worlds import (
    LIST,
    STATEMENTS,
    Side,
    Step,
    be,
    both,
    column,
    deliver,
    garble,
    kill,
    leave,
    lose,
    pause,
    pin,
    reply,
    say,
    send,
    serve,
    while_written,
)
from tests.wire.streams import Rows

KNOWN = [reply(3), *[send(0, LIST), *[deliver()] * 4] * 3]
"""The list is planned, and its column definitions are known. A reply has 133 bytes: 100 before its rows, 8
for each of the three, and 9 for the EOF packet.
"""
PART = deliver(0, 110)
COLUMNS = [column(b"", name) for name in (b"id", b"data")]
THRICE = [send(0, LIST), *[deliver()] * 6] * 3
OF_TWO = b"SELECT id, data FROM pins WHERE id IN (%d, 7, %d)"


def pieces_of(steps: list[Step]) -> int:
    """How many of the pieces are the compiled way's."""
    return asyncio.run(both(WARM + KNOWN + steps, 3)).given - known().given


@cache
def known() -> Side:
    """Before the steps of a test."""
    return asyncio.run(both(WARM + KNOWN, 3))


@compiled
@pytest.mark.parametrize(
    ("steps", "pieces"),
    [
        pytest.param([send(0, LIST), deliver(), deliver()], 2, id="whole"),
        pytest.param([reply(0), send(0, LIST), deliver(), deliver()], 2, id="no rows"),
        *(
            pytest.param([send(0, LIST), deliver(0, size), deliver(0), deliver()], 3, id=f"cut at {size}")
            for size in (100, 101, 103, 104, 105, 107, 108, 110, 116, 120, 123, 124, 125, 127, 128, 129, 132)
        ),
        *(
            pytest.param([send(0, LIST), *[deliver(0, size)] * 270], most, id=f"by {size}")
            for size, most in ((1, 66), (40, 2), (99, 0), (110, 4))
        ),
        pytest.param([send(0, LIST), PART, deliver(1, 110), deliver(0), deliver(0)], 4, id="in turn"),
        pytest.param([reply(3, 1), send(0, LIST), deliver(), deliver(), *[deliver()] * 4], 2, id="warnings"),
        pytest.param([reply(error=True), send(0, LIST), deliver(), reply(), *[deliver()] * 4], 0, id="error"),
        pytest.param([pause(0, True), send(0, LIST), deliver(), pause(0, False), deliver()], 2, id="slow"),
        pytest.param([send(0, LIST), PART, kill(0), deliver(), deliver(), deliver()], 1, id="killed"),
        pytest.param([send(0, LIST), PART, leave(0), deliver(), deliver()], 1, id="gone"),
        pytest.param([send(0, LIST), PART, lose(0), deliver(), deliver()], 1, id="lost"),
        *(
            pytest.param([send(0, LIST), while_written(0, what), *[deliver()] * 3], 2 - ends, id=what)
            for ends, names in enumerate((("pause", "lose", "soon", "behind"), ("leave", "kill")))
            for what in names
        ),
        pytest.param([say(0, b"BEGIN"), send(0, LIST), *[deliver()] * 4], 0, id="transaction"),
        pytest.param([send(0, 16), send(0, LIST), *[deliver()] * 4], 0, id="other settings"),
        pytest.param([send(0, LIST), garble(0, -2, 1), *[deliver()] * 4], 0, id="autocommit off said"),
        pytest.param([send(0, LIST), garble(0, -2, 10), *[deliver()] * 4], 1, id="more said"),
        pytest.param([send(0, LIST), garble(0, -1, 0, b"\0"), *[deliver()] * 4], 0, id="a byte behind"),
        pytest.param([send(0, LIST), garble(0, 20, 0x41), *[deliver()] * 4], 1, id="other definitions"),
        pytest.param([send(0, LIST), garble(0, 3, 2), *[deliver()] * 4], 0, id="another number"),
        pytest.param(
            [send(0, LIST), garble(0, 103, 9), deliver(0, 106), deliver(0, 4), *[deliver()] * 2], 4,
            id="a row with another number, cut",
        ),
        pytest.param([be(0, "told"), send(0, LIST), deliver(), deliver()], 2, id="told of changes"),
        *(
            pytest.param([say(0, b"SET sql_mode = '%b'" % mode.encode()), *THRICE], 5, id=mode)
            for mode in ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI,NO_BACKSLASH_ESCAPES")
        ),
    ],
)  # fmt: skip
def test_pieces_of_lists(steps: list[Step], pieces: int) -> None:
    assert pieces_of(steps) == pieces


@compiled
@settings(max_examples=30)
@given(
    st.lists(STEPS | st.builds(send, CLIENTS, st.just(LIST)), max_size=25),
    st.lists(st.integers(1, 250), max_size=12),
)
def test_any_pieces(steps: list[Step], sizes: list[int]) -> None:
    cut = [deliver(number % 3, size) for number, size in enumerate(sizes)]
    asyncio.run(both([*WARM, *KNOWN, send(0, LIST), *cut, *steps, send(1, LIST), *cut], 3))


@compiled
@pytest.mark.parametrize(
    ("steps", "begun"),
    [
        pytest.param([send(0, LIST)], 1, id="plain"),
        pytest.param([say(0, OF_TWO % (pin(0), pin(1)))], 0, id="one host"),
        pytest.param([say(0, OF_TWO % (pin(0), pin(3)))], 1, id="one of each"),
        pytest.param([say(0, b"SELECT id, data FROM pins WHERE id IN (5, 6)")], 0, id="none"),
        pytest.param([say(0, b"SELECT id, data FROM pins WHERE id IN (5,, 6)")], 0, id="no list"),
        pytest.param([send(1, LIST), send(0, LIST)], 1, id="no connection is free"),
        pytest.param([send(1, 3), send(0, LIST)], 1, id="none is free on one host"),
        pytest.param([pause(0, True), send(0, LIST)], 0, id="slow"),
        pytest.param([serve(False), send(0, LIST)], 0, id="frozen"),
        pytest.param([say(0, b"SET sql_select_limit = 2"), deliver(), send(0, LIST)], 0, id="limited"),
        pytest.param([send(0, 11), send(0, LIST)], 0, id="transaction"),
        pytest.param([send(0, 14), send(0, LIST)], 0, id="autocommit off"),
        *(
            pytest.param([be(0, who), send(0, LIST)], 0, id=who)
            for who in ("single", "gbk", "lost", "nobody", "of demo", "of more", "tracked", "once", "other")
        ),
        pytest.param([be(0, "reader"), send(0, LIST)], 1, id="reader"),
        pytest.param([be(0, "told"), send(0, LIST)], 1, id="told of changes"),
    ],
)
def test_lists_that_begin_at_once(steps: list[Step], begun: int) -> None:
    side = asyncio.run(both([*WARM, *KNOWN, *steps, *[deliver()] * 6, pause(0, False)], 3))
    assert side.begun - known().begun == begun
    assert all(client.ready for client in side.clients)


@compiled
def test_pieces_without_rows_of_a_client_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host's next statement is sent while the client is: what begins its reply stops the reading."""
    monkeypatch.setattr(select, "CHUNK", 1)

    def same_columns(side: Side) -> None:
        for server in side.world.servers.values():
            server.script = lambda conn, sql: [Rows([encode_row([b"1", b"a"])] * 3, 2, definitions=COLUMNS)]

    steps: list[Step] = [same_columns, *[send(0, LIST), *[deliver()] * 6] * 3, send(0, LIST)]
    steps += [pause(0, True), deliver(), deliver(0, 100), pause(0, False), *[deliver()] * 4]
    side = asyncio.run(both([*WARM, *steps], 3))
    assert side.given >= 6
    assert side.clients[0].ready


@compiled
@pytest.mark.parametrize("what", ["taken", "closed"])
def test_a_connection_that_goes_while_another_host_is_looked_for(what: str) -> None:
    async def run() -> None:
        side = await both([*WARM, *KNOWN])
        client, (first, second) = side.clients[0], ("h1:3306", "h2:3306")
        relay, state = client.relay, side.world.backends.pool(first).state
        assert isinstance(relay, Relay)
        pool, (conn, *_) = relay.pool, [one for idle in state.idle for one in idle]

        def without_it(host: str) -> Any:
            if host == second and conn in state.idle[conn.capability_set]:
                if what == "closed":
                    conn.close()
                else:
                    state.take(conn.settings, None, conn.capability_set, "somebody")
            return pool(host)

        relay.pool = without_it
        before = side.begun
        side.send(0, STATEMENTS[LIST])
        await side.world.turn()
        assert side.begun == before
        assert conn.receiver is None
        for _ in range(4):
            side.deliver(0, None, changed=False)
            await side.world.turn()
        assert client.ready

    asyncio.run(run())
