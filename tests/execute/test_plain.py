"""The compiled way of plain statements and replies, and Python's: two worlds that are told the same, in one
of which the compiled way is taken, are the same after each step, down to each attribute.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.engine.relay import Relay
from proxy.frontend import plain
from proxy.load import Load
from rewriter.sql.statements.facts import UNREAD
from tests.execute.two_worlds import (
    COMMENT,
    ITEM,
    LIST,
    LISTED,
    PIN,
    STATEMENTS,
    USERS,
    Step,
    be,
    behind_much,
    both,
    deliver,
    execute,
    feed,
    garble,
    host,
    kill,
    leave,
    lose,
    pause,
    pin,
    reply,
    say,
    send,
    serve,
    tick,
    twice,
    while_written,
    wrote,
)
from tests.support.compiler import may_compile

compiled = pytest.mark.skipif(plain.ask is None, reason="no compiler: the way in C is NOT tested")

FED = ["halves", "beginning", "two", "more", "number", "other", "text", "empty", "attributes"]
CLIENTS = st.integers(0, 2)
COUNTS = [0, 1, 2, 250, 251, 252, 65_535, 65_536, 1 << 24, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
NUMBERS = [0, 1, 7, 250, 251, 65_536, (1 << 24) - 1, 1 << 24, (1 << 36) - 1, 1 << 63, (1 << 64) - 1]
INFOS = [
    b"",
    b"Rows matched: 12  Changed: 3  Warnings: 0",
    b"Rows matched: ",
    b"Rows matched: x",
    b"matched: 99999999999999999999999999",
    b"Records: 2  Duplicates: 0  Warnings: 0",
]
TEXTS = st.builds(
    lambda text, literal, end: text.replace(b"?", literal) + end,
    st.sampled_from(
        [
            b"SELECT data FROM pins WHERE id = ?",
            b"select ts FROM pins WHERE id = ? LIMIT 3",
            b"SELECT data FROM pins WHERE id = %d AND data = ?" % pin(1),
            b"SELECT data FROM pins WHERE data = ? AND id = %d" % pin(2),
            b"SELECT data FROM pins WHERE id IN (?)",
            b"INSERT INTO comments (data) VALUES (?)",
            b"INSERT INTO comments (data) VALUES ('{\"pin_id\": ?}')",
            b"INSERT INTO board_has_pins (pin_id, sequence, board_id) VALUES (5, 1, ?)",
            b"UPDATE pins SET data = ? WHERE id = %d" % pin(3),
            b"SELECT ?",
            b"?",
        ]
    ),
    st.sampled_from(
        [
            b"%d" % pin(0),
            b"%d" % pin(3),
            b"7",
            b"0",
            b"-1",
            b"1.5",
            b"1e3",
            b"",
            b"a1",
            b"1a",
            b"9" * 30,
            b"%d, %d" % (pin(1), pin(2)),
            b"1,2",
            b"'x'",
            b"''",
            b"'",
            b"'a''b'",
            b"'a\\'b'",
            b"'a' 'b'",
            b"x'41'",
            b"b'1'",
            b"N'a'",
            b'"a"',
            b"'a\0b'",
            b"'7'",
            b"' 7",
            b"'{\"pin_id\": %d}'" % pin(1),
            b"/* 7 */ 8",
            b"@'a'",
            b"'\xc3\xa4'",
            b"'" + b"y" * 2100 + b"'",
            b"?",
        ]
    ),
    st.sampled_from([b"", b"", b"", b" ", b";", b"\n", b" -- 7", b" # 7", b"'", b"\0"]),
)
STEPS = st.one_of(
    st.builds(send, CLIENTS, st.integers(0, 6)),  # mostly what is plain
    st.builds(send, CLIENTS, st.integers(0, len(STATEMENTS) - 1)),
    st.builds(say, CLIENTS, TEXTS),
    st.builds(twice, CLIENTS, TEXTS),
    st.builds(deliver, st.integers(0, 3)),
    st.builds(deliver, st.integers(0, 3)),
    st.builds(deliver, st.integers(0, 3), st.integers(1, 400), st.booleans()),
    st.builds(deliver, st.integers(0, 3), st.none(), st.booleans()),
    st.builds(reply, st.integers(0, 3), st.integers(0, 1), st.sampled_from([False, False, True])),
    st.builds(send, CLIENTS, st.sampled_from([LISTED, COMMENT, PIN, ITEM, ITEM + 1])),
    st.builds(send, CLIENTS, st.just(LIST)),
    st.builds(deliver, st.integers(0, 3), st.integers(1, 60)),
    st.builds(wrote, st.sampled_from(COUNTS), st.sampled_from(NUMBERS), st.sampled_from(INFOS)),
    st.builds(pause, CLIENTS, st.booleans()),
    st.builds(leave, CLIENTS),
    st.builds(lose, st.integers(0, 3)),
    st.builds(
        garble,
        st.integers(0, 3),
        st.integers(-12, 400),
        st.sampled_from([-1, 0, 1, 2, 5, 8, 9, 0x22, 0x41, 0xFB, 0xFE, 0xFF]),
        st.sampled_from([b"", b"", b"\0", b"\0\0\0\7", b"\xff\xff\xff\7a", b"\5\0\0\7\xfe\0\0\2\0"]),
    ),
    st.builds(while_written, CLIENTS, st.sampled_from(["pause", "leave", "lose", "kill", "soon", "behind"])),
    st.builds(kill, CLIENTS),
    st.builds(host, st.integers(0, 1), st.sampled_from(["renew", "retire", "changed"])),
    st.builds(be, CLIENTS, st.sampled_from(["slow", "other", "soon", "told", "tracked", "once"])),
    st.builds(be, CLIENTS, st.sampled_from(["single", "gbk", "lost", "attributes", *USERS])),
    st.builds(feed, CLIENTS, st.integers(0, 7), st.sampled_from(FED)),
    st.builds(serve, st.booleans()),
    st.builds(execute, CLIENTS, st.integers(0, 6)),
    st.builds(tick),
    st.builds(behind_much),
)


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_where_it_can_be_compiled_it_is_used() -> None:
    assert plain.ask is not None, "run: make setup"
    assert plain.answer is not None
    assert plain.piece is not None


WARM = [step for one in (0, 3, 0, 3, 1, 2) for step in (send(0, one), deliver())]
"""Both hosts have a connection, all shards a load, and the columns are known."""


@compiled
def test_plain_statements_take_it() -> None:
    steps = WARM + [step for one in (0, 1, 2, 3) for step in (send(1, one), deliver())] * 3
    side = asyncio.run(both(steps, begins=False))
    assert side.asked >= 12
    assert side.answered >= 12
    begun = asyncio.run(both(steps))
    assert begun.begun > side.asked, "those, too, for which a connection was made"
    assert (begun.asked, begun.answered) == (0, side.answered)
    assert all(client.ready for one in (side, begun) for client in one.clients)


@compiled
@pytest.mark.parametrize(
    ("steps", "asked", "answered"),
    [
        pytest.param([send(0, 4), deliver(), send(0, 5), deliver()], 2, 1, id="other columns"),
        pytest.param([send(0, 0), send(0, 3), deliver(), deliver()], 2, 2, id="one behind the other"),
        pytest.param(
            [send(0, 0), send(1, 1), send(2, 0), deliver(2), deliver(), deliver()], 1, 1, id="crowded"
        ),
        pytest.param([send(0, 0), deliver(size=50), deliver()], 1, 0, id="in pieces"),
        pytest.param(
            [send(0, 0), deliver(size=50), deliver(), send(0, 0), deliver()], 2, 1, id="behind pieces"
        ),
        pytest.param([reply(warnings=1), send(0, 0), deliver(), reply(), deliver()], 1, 1, id="warnings"),
        pytest.param(
            [reply(error=True), send(0, 0), deliver(), reply(), deliver(), deliver(), send(0, 0), deliver()],
            2,
            1,
            id="error",
        ),
        pytest.param([reply(0), send(0, 0), deliver()], 1, 1, id="no rows"),
        pytest.param([send(0, 0), deliver(changed=True), deliver(), deliver()], 1, 0, id="state changed"),
        pytest.param(
            [send(0, 11), send(0, 0), deliver(), deliver(), send(0, 12), deliver()], 0, 1, id="transaction"
        ),
        pytest.param([send(0, 14), send(0, 0), deliver(), deliver()], 0, 0, id="autocommit off"),
        pytest.param([send(0, 0), pause(0, True), deliver(), pause(0, False)], 1, 1, id="slow client"),
        pytest.param(
            [pause(0, True), send(0, 0), deliver(), pause(0, False), deliver()], 0, 0, id="slow before"
        ),
        pytest.param(
            [send(0, 0), leave(0), deliver(), send(1, 0), deliver(), deliver()], 1, 0, id="client gone"
        ),
        pytest.param([send(0, 0), lose(0), send(0, 0), deliver(), deliver()], 1, 0, id="server gone"),
        pytest.param(
            [send(0, 16), send(0, 0), deliver(), deliver(), send(0, 0), deliver(), deliver()],
            1,
            1,
            id="settings",
        ),
        pytest.param([send(0, 8), deliver(), send(0, 0), deliver()], 2, 2, id="write"),
        *(
            pytest.param([wrote(1, 9), send(0, one), deliver(), send(0, 0), deliver()], 1, 2, id=name)
            for one, name in ((COMMENT, "comment"), (PIN, "pin"))
        ),
        pytest.param(
            [wrote(1, 9), send(0, ITEM), *[deliver()] * 3, send(0, ITEM), deliver()], 0, 0, id="item"
        ),
        pytest.param(
            [send(0, ITEM + 2), *[deliver()] * 3, send(0, ITEM + 2), deliver()], 0, 0, id="passthrough"
        ),
        *(
            pytest.param(
                [wrote(affected, number), send(0, COMMENT), deliver()], 0, 1, id=f"{affected} {number}"
            )
            for affected, number in ((0, 0), (1, 0), (251, 0), (1 << 40, 0), (250, 1), (1, 1 << 36))
        ),
        *(
            pytest.param(
                [wrote(affected, number), send(0, COMMENT), deliver()], 0, 0, id=f"{affected} {number}"
            )
            for affected, number in ((251, 1), (1 << 40, 1), (1, (1 << 64) - 1), ((1 << 64) - 1, 0))
        ),
        *(
            pytest.param([wrote(1, id, info), send(0, COMMENT), deliver()], 0, 1, id=f"{info!r} {id}")
            for info in INFOS
            for id in (0, 9)
        ),
        *(
            pytest.param([send(0, ITEM), garble(0, place, byte, more), deliver(), deliver()], 0, 0, id=name)
            for place, byte, more, name in (
                (3, 2, b"", "another number"),
                (4, 1, b"", "no OK"),
                (7, 0x0A, b"", "more results said"),
                (5, 0xFB, b"", "NULL rows"),
                (5, 0xFE, b"", "no number of rows"),
                (0, 3, b"", "too short"),
                (-1, 0, b"\0", "more behind OK"),
                (-1, -1, b"", "cut"),
            )
        ),
        pytest.param([send(0, 9), deliver(), deliver(), send(0, 0), deliver()], 1, 1, id="list"),
        pytest.param([send(0, 10), deliver(), send(0, 0), deliver()], 0, 0, id="behind another way"),
        pytest.param([execute(0, 0), deliver(), execute(0, 0), deliver()], 2, 2, id="prepared"),
        pytest.param([execute(0, 0), deliver(), send(0, 0), deliver()], 2, 2, id="behind a prepared one"),
        pytest.param([behind_much(), send(0, 0), deliver()], 1, 1, id="behind 16 MB"),
        pytest.param([tick(), send(0, 0), tick(), deliver()], 1, 1, id="time passes"),
        pytest.param([send(0, 0), kill(0), deliver()], 1, 0, id="killed too late"),
        pytest.param([send(0, 0), host(0, "retire"), deliver()], 1, 1, id="the host goes"),
        pytest.param([send(0, 0), host(0, "renew"), deliver()], 1, 1, id="other passwords"),
        pytest.param([be(0, "slow"), send(0, 0), deliver()], 1, 1, id="looked at"),
        pytest.param([be(0, "other"), send(0, 0), deliver()], 0, 0, id="other capabilities"),
        pytest.param([be(0, "tracked"), send(0, 0), deliver()], 0, 0, id="tracked"),
        pytest.param([be(0, "told"), send(0, 0), deliver()], 1, 1, id="told of changes"),
        pytest.param(
            [be(0, "told"), wrote(1, 9), send(0, COMMENT), deliver()], 0, 1, id="told of changes, a row"
        ),
        pytest.param([be(0, "once"), send(0, 0), deliver()], 0, 0, id="once"),
        pytest.param([send(0, 0), be(0, "soon"), deliver()], 1, 1, id="leaving"),
        *(
            pytest.param([send(0, 0), while_written(0, what), deliver()], 1, 1, id=f"{what} while written")
            for what in ("pause", "leave", "lose", "kill", "soon")
        ),
        pytest.param([while_written(0, "behind"), send(0, 0), deliver(), deliver()], 2, 2, id="asked within"),
        pytest.param([send(0, 0), garble(0, -2, 1), deliver(), deliver()], 1, 0, id="autocommit off said"),
        pytest.param([send(0, 0), garble(0, -2, 10), deliver(), deliver()], 1, 0, id="more said"),
        pytest.param([send(0, 0), garble(0, -9, 6), deliver(), deliver()], 1, 0, id="longer end"),
        pytest.param([send(0, 0), garble(0, -5, 0x31), deliver(), deliver()], 1, 0, id="a row at the end"),
        pytest.param([send(0, 0), garble(0, -1, 0, b"\0"), deliver(), deliver()], 1, 0, id="a byte behind"),
    ],
)
def test_what_is_not_plain(steps: list[Step], asked: int, answered: int) -> None:
    before = asyncio.run(both(WARM, 3, begins=False))
    side = asyncio.run(both(WARM + steps, 3, begins=False))
    assert (side.asked - before.asked, side.answered - before.answered) == (asked, answered)
    asyncio.run(both(WARM + steps, 3))


@compiled
@pytest.mark.parametrize(
    ("before", "sent"),
    [
        pytest.param([], 1, id="plain"),
        pytest.param([pause(0, True)], 0, id="slow"),
        pytest.param([be(0, "tracked")], 0, id="tracked"),
        pytest.param([be(0, "other")], 0, id="other capabilities"),
        pytest.param([send(0, 11)], 0, id="in a transaction"),
        pytest.param([send(1, 3), send(2, 0)], 0, id="none is free"),
    ],
)
def test_a_write_that_is_sent(before: list[Step], sent: int) -> None:
    side = asyncio.run(both([*WARM, wrote(1, 9), *before, send(0, COMMENT), *[deliver()] * 3], 3))
    assert side.sent == sent


NUMBER = STATEMENTS.index(b"SELECT id, data, ts FROM pins WHERE id = 0")


@compiled
@pytest.mark.parametrize(
    ("steps", "begun"),
    [
        *(pytest.param([send(0, one), deliver()], 1, id=STATEMENTS[one].decode()) for one in range(7)),
        *(
            pytest.param([send(0, one), deliver(), deliver()], 0, id=STATEMENTS[one][:90].decode())
            for one in range(7, len(STATEMENTS))
            if one != NUMBER + 1
        ),
        pytest.param([send(0, NUMBER + 1), deliver()], 1, id="leading zeros"),
        *(
            pytest.param([feed(0, one, how), deliver(), deliver()], 0, id=f"{how} {one}")
            for how in FED
            if how not in ("number", "text")
            for one in (0, 4)
        ),
        pytest.param([feed(0, 0, "text"), deliver()], 1, id="text"),
        pytest.param([be(0, "reader"), send(0, 0), deliver()], 1, id="reader"),
        *(
            pytest.param([be(0, who), send(0, 0), deliver()], 0, id=who)
            for who in ("single", "gbk", "lost", "attributes", "nobody", "of demo", "of more")
        ),
        pytest.param(
            [serve(False), send(0, 0), deliver(), serve(True), send(0, 0), deliver()], 1, id="frozen"
        ),
        pytest.param([send(0, 0), send(0, 0), deliver(), deliver()], 1, id="not ready"),
        pytest.param([pause(0, True), send(0, 0), deliver(), pause(0, False), deliver()], 1, id="slow"),
        pytest.param([send(0, 11), send(0, 0), deliver(), deliver()], 1, id="in a transaction"),
        pytest.param([send(0, 0), send(1, 1), send(2, 0), deliver(), deliver(), deliver()], 3, id="crowded"),
        pytest.param([send(0, 16), send(0, 0), deliver(), deliver()], 1, id="other settings"),
    ],
)
def test_what_begins_at_once(steps: list[Step], begun: int) -> None:
    warm = WARM + [step for one in (4, 6) for step in (send(0, one), deliver())] * 2
    before = asyncio.run(both(warm, 3))
    side = asyncio.run(both(warm + steps, 3))
    assert side.begun - before.begun == begun


ROW = b"INSERT INTO comments (data) VALUES ('%b')"
OF_PIN = ROW % b'{"text": "a", "pin_id": %d}'
OF_BOARD = b"INSERT INTO board_has_pins (pin_id, sequence, board_id) VALUES (5, 1, %d)"


@compiled
@pytest.mark.parametrize(
    ("steps", "begun"),
    [
        pytest.param([say(0, OF_PIN % pin(3)), deliver()], 1, id="a row"),
        pytest.param([say(0, OF_BOARD % pin(1, 2)), deliver()], 0, id="of several numbers: Python finds it"),
        pytest.param([wrote(1, 9), say(0, OF_PIN % pin(3)), deliver()], 1, id="that gets an ID"),
        *(
            pytest.param([say(0, ROW % text), deliver(), deliver()], 0, id=text.decode())
            for text in (
                b'{"pin_id": %d}' % pin(500), b'{"pin_id": -5}', b'{"pin_id": %d.0}' % pin(1),
                b'{"pin_id": null}', b"{}", b"", b"[]", b'{"pin_id": 5, "pin_id": %d}' % pin(1),
                b'{"a": [1], "pin_id": %d}' % pin(1),
            )
        ),
        *(
            pytest.param([be(0, who), say(0, OF_PIN % pin(3)), deliver(), deliver()], 0, id=who)
            for who in ("single", "gbk", "lost", "reader", "nobody", "of demo", "of more", "tracked", "once")
        ),
        pytest.param([serve(False), say(0, OF_PIN % pin(3)), deliver(), deliver()], 0, id="frozen"),
        pytest.param([say(0, b"BEGIN"), say(0, OF_PIN % pin(3)), deliver(), deliver()], 0, id="transaction"),
        pytest.param([pause(0, True), say(0, OF_PIN % pin(3)), deliver()], 0, id="slow"),
    ],
)  # fmt: skip
def test_rows_that_begin_at_once(steps: list[Step], begun: int) -> None:
    known = [step for sql in (OF_PIN, OF_BOARD) for step in (say(0, sql % pin(0, 2)), deliver()) * 2]
    before = asyncio.run(both(WARM + known, 3))
    side = asyncio.run(both(WARM + known + steps, 3))
    assert side.begun - before.begun == begun


@compiled
@pytest.mark.parametrize(("statement", "place", "byte"), [(4, 203, 0xFE), (0, 204, 0)])
def test_definitions_that_cannot_be_read(statement: int, place: int, byte: int) -> None:
    """The client is cut off: nobody knows what it was given."""
    steps = [execute(0, statement), garble(0, place, byte), deliver()]
    side = asyncio.run(both([*WARM, *steps], 1))
    (client,) = side.clients
    assert client.closed
    assert not side.world.backends.pool("h1:3306").state.busy


@compiled
@settings(max_examples=100)
@given(st.lists(STEPS, max_size=25), st.integers(1, 3), st.booleans())
@example([send(0, 0), deliver()] * 3, 1, True)
@example([feed(0, 0, "other"), deliver(), deliver(), execute(0, 0)], 1, True)
@example([say(0, b"SELECT data FROM pins WHERE data = 'a' AND id = %d" % pin(2)), deliver()] * 3, 1, True)
def test_any_steps(steps: list[Step], clients: int, begins: bool) -> None:
    asyncio.run(both(WARM + steps, clients, begins=begins))


@compiled
def test_arguments_are_looked_at() -> None:
    assert plain.ask is not None
    assert plain.answer is not None
    begin: Any = plain.begin
    ask: Any = plain.ask
    send: Any = plain.send
    answer: Any = plain.answer
    for wrong in ((), (1, 2), (1, 2, 3, 4, 5, 6, 7)):
        with pytest.raises(TypeError):
            ask(*wrong)
        with pytest.raises(TypeError):
            answer(*wrong)
        with pytest.raises(TypeError):
            begin(*wrong, 3)
        with pytest.raises(TypeError):
            send(*wrong)
    assert not begin(None, b"")
    assert not begin(object(), None)
    assert not ask(None, "h", b"", None, b"", None)
    assert not send(None, "h", b"", None, False, (), None, None, None)
    assert not answer(None, None, b"")
    assert not answer(object(), object(), object())


@compiled
def test_a_relay_of_no_client() -> None:
    async def run() -> None:
        side = await both(WARM, begins=False)
        relay, load = side.clients[0].relay, next(iter(side.world.backends.loads.shards.values()))
        assert isinstance(relay, Relay)
        assert plain.send is not None
        relay.client = object()  # type: ignore[assignment]
        assert not plain.send(relay, "h1:3306", b"SELECT 1", None, False, (), None, UNREAD, load)

    asyncio.run(run())


@compiled
def test_a_load_that_goes_while_its_host_is_looked_for() -> None:
    async def run() -> None:
        side = await both(WARM, begins=False)
        relay = side.clients[0].relay
        assert isinstance(relay, Relay)
        pool, known = relay.pool, relay.known

        others: list[Load] = []

        def without_loads(host: str) -> Any:
            known.clear()
            others.extend(Load() for _ in range(20))  # one of them is where the shard's was, if that has gone
            return pool(host)

        relay.pool = without_loads
        before = side.asked
        side.send(0, STATEMENTS[0])
        assert side.asked == before + 1
        assert isinstance(relay.shard, Load)
        assert not any(relay.shard is one for one in others)

    asyncio.run(run())


@compiled
def test_a_shard_that_is_not_counted_as_its_host_is() -> None:
    async def run() -> None:
        side = await both(WARM, begins=False)
        side.send(0, STATEMENTS[0])
        await side.world.turn()
        conn = side.clients[0].relay.conn
        (one,) = side.ready
        assert conn is not None
        assert conn.shard is not None
        conn.shard.buckets = [0]
        assert plain.answer is not None
        assert not plain.answer(side.clients[0].relay, conn, bytes(one.out))
        assert conn.receiver is not None, "nothing was done"

    asyncio.run(run())
