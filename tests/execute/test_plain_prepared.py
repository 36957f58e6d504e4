"""Prepared point SELECTs by the compiled way and by Python's: two worlds that are told the same stay the
same; and a plain statement's way, whichever kind it is, runs no Python.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.engine.relay import Relay
from proxy.frontend import plain
from proxy.session.prepared import Statement
from proxy.wire.packets import frame
from tests.execute.two_worlds import (
    COMMENT,
    LIST,
    USERS,
    Side,
    Step,
    be,
    both,
    deliver,
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
    while_written,
    wrote,
)

compiled = pytest.mark.skipif(plain.ask is None, reason="no compiler: the way in C is NOT tested")

PREPARED = (
    (b"SELECT id, data, ts FROM pins WHERE id = ?", 1),
    (b"SELECT data FROM pins WHERE id = ? LIMIT 1", 1),
    (b"SELECT pin_id FROM board_has_pins WHERE sequence > ? AND board_id = ?", 2),
    (b"SELECT 1, data FROM pins WHERE id = ? AND ts > '2020-01-01'", 1),
)
FORMS = {"q": b"\x08\x00", "Q": b"\x08\x80", "i": b"\x03\x00", "I": b"\x03\x80", "b": b"\x01\x00"}
HOW = ("plain", "unbound", "null", "cursor", "other", "short", "more", "halves", "two", "number")


def statement_of(side: Side, client: int, which: int) -> Statement:
    """The client's statement, prepared when it is asked for first."""
    session, rewriter = side.clients[client].session, side.world.services.serving.snapshot.rewriter
    sql, parameters = PREPARED[which]
    for one in session.prepared.by_id.values():
        if one.sql == sql:
            return one
    env = session.prepared.env(session.env)
    plan, literals = rewriter.plan(sql, env)
    generation = rewriter.generation
    made = Statement(sql, env, session.settings.system, plan, literals, generation, learnt=generation)
    made.parameters = parameters
    session.prepared.add(made)
    return made


def packet_of(statement: Statement, numbers: tuple[int, ...], form: str, how: str) -> bytes:
    number = statement.id + 77 * (how == "other")
    head = struct.pack("<BIBI", 0x17, number, how == "cursor", 1)
    values = b"".join(struct.pack(f"<{form}", one & (1 << 8 * struct.calcsize(form)) - 1) if form in "QI"
                      else struct.pack(f"<{form}", one) for one in numbers)  # fmt: skip
    types = b"" if how == "unbound" else FORMS[form] * len(numbers)
    payload = head + bytes((how == "null", how != "unbound")) + types + values
    return frame(payload[:-1] if how == "short" else payload + b"\7" * (how == "more"))


def repeat(client: int, which: int, *numbers: int, form: str = "q", how: str = "plain") -> Step:
    """An EXECUTE, as many numbers as the statement has parameters."""

    def step(side: Side) -> None:
        one = side.clients[client % len(side.clients)]
        if one.closed:
            return
        statement = statement_of(side, client % len(side.clients), which)
        given = (numbers * 2)[: statement.parameters]
        packet = packet_of(statement, given, form, how)
        pieces = {
            "halves": [packet[:9], packet[9:]],
            "two": [packet * 2],
            "number": [packet[:3] + b"\1" + packet[4:]],
        }
        for piece in pieces.get(how, [packet]):
            if not one.closed:
                one.data_received(piece)

    return step


WARM = [
    step
    for shard in (0, 3, 1, 2)
    for which in (0, 1, 2)
    for step in (repeat(0, which, pin(shard, 2 if which == 2 else 1)), deliver(), deliver())
] * 2


@compiled
@pytest.mark.parametrize(
    ("steps", "begun"),
    [
        *(pytest.param([repeat(0, 0, pin(shard)), deliver()], 1, id=f"shard {shard}") for shard in range(4)),
        pytest.param([repeat(0, 1, pin(1)), deliver()], 1, id="with a literal"),
        pytest.param([repeat(0, 2, 1, pin(1, 2)), deliver()], 1, id="two parameters"),
        pytest.param([repeat(0, 3, pin(1)), deliver(), deliver()], 0, id="the first time"),
        pytest.param([repeat(0, 3, pin(1)), deliver(), repeat(0, 3, pin(2)), deliver()], 1, id="the second"),
        pytest.param([repeat(0, 0, pin(1), form="Q"), deliver()], 0, id="another type"),
        pytest.param([repeat(0, 0, pin(1), form="Q"), deliver()] * 2, 1, id="another type twice"),
        pytest.param([repeat(0, 0, 7, form="b"), deliver()] * 2, 0, id="small"),
        *(
            pytest.param([repeat(0, 0, number), *[deliver()] * 2], 0, id=str(number))
            for number in (0, -1, 7, pin(500), pin(1, 3), -(1 << 63), (1 << 63) - 1)
        ),
        *(
            pytest.param([repeat(0, 0, pin(1), how=how), *[deliver()] * 3], 0, id=how)
            for how in HOW[1:]
        ),
        *(
            pytest.param([be(0, who), repeat(0, 0, pin(1)), *[deliver()] * 2], 0, id=who)
            for who in ("single", "lost", "nobody", "of demo", "tracked")
        ),
        pytest.param([be(0, "slow"), repeat(0, 0, pin(1)), deliver()], 1, id="looked at"),
        pytest.param([serve(False), repeat(0, 0, pin(1)), deliver()], 0, id="frozen"),
        pytest.param([say(0, b"SET sql_mode = 'ANSI'"), repeat(0, 0, pin(1)), *[deliver()] * 3], 0,
                     id="settings"),
        pytest.param([say(0, b"BEGIN"), repeat(0, 0, pin(1)), *[deliver()] * 2], 1, id="transaction"),
        pytest.param([reply(warnings=1), repeat(0, 0, pin(1)), reply(), *[deliver()] * 2], 1, id="warnings"),
        pytest.param([reply(error=True), repeat(0, 0, pin(1)), reply(), *[deliver()] * 2], 1, id="error"),
        pytest.param([reply(0), repeat(0, 0, pin(1)), deliver()], 1, id="no rows"),
        pytest.param([reply(300), repeat(0, 0, pin(1)), deliver()], 1, id="many rows"),
        pytest.param([repeat(0, 0, pin(1)), deliver(size=50), deliver()], 1, id="in pieces"),
        pytest.param([repeat(0, 0, pin(1)), lose(0), deliver()], 1, id="server gone"),
        pytest.param([repeat(0, 0, pin(1)), leave(0), deliver()], 1, id="client gone"),
        pytest.param([repeat(0, 0, pin(1)), pause(0, True), deliver(), pause(0, False)], 1, id="slow"),
        pytest.param([repeat(0, 0, pin(1)), garble(0, -12, 0x41), deliver(), deliver()], 1, id="no number"),
    ],
)  # fmt: skip
def test_what_is_repeated_at_once(steps: list[Step], begun: int) -> None:
    before = asyncio.run(both(WARM, 2))
    side = asyncio.run(both(WARM + steps, 2))
    assert side.begun - before.begun == begun


CLIENTS = st.integers(0, 1)
NUMBERS = st.sampled_from(
    [pin(0), pin(1), pin(2), pin(3), pin(1, 2), pin(3, 2), 0, 7, -1, pin(500), (1 << 63) - 1]
)
SMALL = st.integers(-128, 127)
STEPS = st.one_of(
    st.builds(repeat, CLIENTS, st.integers(0, 3), NUMBERS, NUMBERS),
    st.builds(repeat, CLIENTS, st.integers(0, 3), NUMBERS, how=st.sampled_from(HOW)),
    st.builds(repeat, CLIENTS, st.integers(0, 3), SMALL, form=st.sampled_from([*FORMS])),
    st.builds(deliver, st.integers(0, 3)),
    st.builds(deliver, st.integers(0, 3)),
    st.builds(deliver, st.integers(0, 3), st.integers(1, 400), st.booleans()),
    st.builds(reply, st.integers(0, 3), st.integers(0, 1), st.sampled_from([False, False, True])),
    st.builds(send, CLIENTS, st.sampled_from([0, 4, 6, 11, 12, 14, 15, 16])),
    st.builds(pause, CLIENTS, st.booleans()),
    st.builds(leave, CLIENTS),
    st.builds(lose, st.integers(0, 3)),
    st.builds(kill, CLIENTS),
    st.builds(while_written, CLIENTS, st.sampled_from(["pause", "leave", "lose", "kill", "soon", "behind"])),
    st.builds(host, st.integers(0, 1), st.sampled_from(["renew", "retire", "changed"])),
    st.builds(be, CLIENTS, st.sampled_from(["slow", "other", "soon", "told", "tracked", "once"])),
    st.builds(be, CLIENTS, st.sampled_from(["single", "lost", *USERS])),
    st.builds(serve, st.booleans()),
    st.builds(tick),
    st.builds(
        garble,
        st.integers(0, 3),
        st.integers(-60, 400),
        st.sampled_from([-1, 0, 1, 5, 9, 0x22, 0x30, 0x41, 0xFB, 0xFE, 0xFF]),
        st.sampled_from([b"", b"", b"\0", b"\5\0\0\7\xfe\0\0\2\0"]),
    ),
)  # fmt: skip


@compiled
@settings(max_examples=100)
@given(st.lists(STEPS, max_size=25))
def test_any_steps(steps: list[Step]) -> None:
    asyncio.run(both(WARM + steps, 2))


# -- no Python
# -----------------------------------------------------------------------------------------------------------

OURS = ("proxy", "rewriter", "config")


def run_python(step: Callable[[], object]) -> Counter[str]:
    """The product's functions in Python that a step runs, by how often."""
    found: Counter[str] = Counter()

    def note(at: FrameType, event: str, _: object) -> None:
        module = at.f_globals.get("__name__", "")
        if event == "call" and module.partition(".")[0] in OURS:
            found[f"{module}.{at.f_code.co_qualname}"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(before)
    return found


@compiled
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(send(0, 0), id="a point SELECT"),
        pytest.param(send(0, 4), id="with a LIMIT"),
        pytest.param(send(0, 6), id="of a mapping"),
        pytest.param(send(0, COMMENT), id="an INSERT"),
        pytest.param(repeat(0, 0, pin(2)), id="an EXECUTE"),
        pytest.param(send(0, LIST), id="a list of IDs"),
    ],
)
async def test_a_plain_statement_runs_no_python(step: Step) -> None:
    """Neither its way to the host nor the reply's to the client, and what is counted there."""
    side = Side(short=True, begins=True, clients=1)
    (client,) = side.clients
    relay = client.relay
    assert isinstance(relay, Relay)
    client.begins, client.pieces = plain.begin, plain.piece
    relay.asks, relay.sends, relay.answer = plain.ask, plain.send, plain.answer
    for one in [wrote(1, 9), *WARM, *[step, *[deliver()] * 6] * 8]:
        one(side)
        await side.world.turn()
    found = run_python(lambda: step(side))
    await side.world.turn()
    assert client.work is not None
    for server in side.ready:
        data, server.out = bytes(server.out), b""
        found += run_python(partial(server.conn.data_received, data))
    assert client.ready
    assert found == {"proxy.wire.packets.frame": 1}, "but for this test's own"
