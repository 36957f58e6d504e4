"""Planning off the loop: the plans are the same, nobody waits for another's, and what takes too long ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import structlog

from proxy.errors import ProxyError, error_lines
from proxy.planning import pool
from proxy.planning.pool import Planners, Turns, _Job
from proxy.planning.process import Planner, serve
from proxy.planning.protocol import AT_ONCE, HEADER, Request, Unpacking, pack
from proxy.tasks import Tasks
from rewriter.env import Env
from rewriter.explain import explain as rewriter_explain
from rewriter.planner import LONG, lift
from rewriter.plans import Insert, Opened, ShardSelect
from rewriter.text.split import cut
from tests.rewriter import golden
from tests.rewriter.support import SCHEMA_MODEL, TOPOLOGY, expand, rewriter, values_of
from tests.support.demo import gone
from tests.support.waiting import async_wait_until
from tests.support.zygote import ForkedPlanner

ENV = Env(database="demo")
KNOWN = rewriter()
CASES = [case for path in sorted(golden.FOLDER.glob("*.yaml")) for case in golden.load(path)]


def test_a_plan_comes_back_as_it_was() -> None:
    """All golden statements: what the plan says and binds is the same behind the socket."""
    planner, made = Planner(), rewriter()
    for case in CASES:
        env = golden.env_of(case)
        sql = expand(case["sql"]).encode()
        answer = planner.answer(Request(env, False, 60.0, SCHEMA_MODEL, TOPOLOGY, made.limits), sql)
        unpacking = Unpacking(sql)
        [back] = [one for one in (unpacking.take(data[HEADER.size :]) for data in pack(answer, sql)) if one]
        assert back.made is not None
        assert back.lifted is not None
        if isinstance(back.made.plan, Opened):
            answer = planner.answer(Request(env, False, 60.0), back.made.plan.text)
            assert answer.made is not None
            back = answer
        assert back.made is not None
        plan, values = back.made.plan, values_of(back.made.plan, back.made.literals)
        found = {"plan": plan.kind, **golden._plan(plan, values), **golden._bound(plan, values)}
        assert found == {name: value for name, value in case.items() if name not in golden.GIVEN}, sql


def test_long_tuples_come_in_parts() -> None:
    sql = b"INSERT INTO pins (data) VALUES " + b", ".join(b"('%d')" % n for n in range(5 * AT_ONCE))
    planner, made = Planner(), rewriter()
    answer = planner.answer(Request(ENV, False, 60.0, SCHEMA_MODEL, TOPOLOGY, made.limits), sql)
    messages = pack(answer, sql)
    assert len(messages) > 10
    assert max(map(len, messages)) < 40 * AT_ONCE
    unpacking = Unpacking(sql)
    *_, back = [unpacking.take(data[HEADER.size :]) for data in messages]
    assert back is not None
    assert back.made is not None
    assert isinstance(back.made.plan, Insert)
    assert back.made.literals == lift(sql, ENV).literals


def test_long_texts_are_not_sent_back() -> None:
    long = b"x" * 1_000_000
    sql = b"SELECT 1 FROM pins WHERE data = '" + long + b"' AND ts = 5"
    planner, made = Planner(), rewriter()
    answer = planner.answer(Request(ENV, False, 60.0, SCHEMA_MODEL, TOPOLOGY, made.limits), sql)
    [message] = pack(answer, sql)
    assert len(message) < 10_000
    back = Unpacking(sql).take(message[HEADER.size :])
    assert back is not None
    assert back.made is not None
    assert back.made.literals == (b"1", long + b"'", b"5", b"")


async def test_users_take_turns() -> None:
    turns = Turns()
    loop = asyncio.get_running_loop()

    def put(user: str, number: int) -> _Job:
        sql = b"%s %d" % (user.encode(), number)
        job = _Job(sql, KNOWN, Request(ENV), loop.create_future())
        turns.put(user, job)
        return job

    for number in range(4):
        put("hostile", number)
    put("other", 0)
    gone = put("gone", 0)
    put("other", 1)
    gone.future.cancel()
    order = []
    while (job := turns.next()) is not None:
        order.append(job.sql.decode())
    assert order == ["hostile 0", "other 0", "hostile 1", "other 1", "hostile 2", "hostile 3"]
    assert not len(turns)


@pytest.fixture
async def executed() -> AsyncIterator[Planners]:
    """With processes as proxies have them."""
    made = Planners(Tasks().spawn, 60.0)
    yield made
    made.close()


@pytest.fixture
def planners(executed: Planners, monkeypatch: pytest.MonkeyPatch) -> Planners:
    """With forked ones, which are there without half a second of imports."""
    monkeypatch.setattr(pool, "Child", ForkedPlanner)
    return executed


async def test_a_process_plans(executed: Planners) -> None:
    planners = executed
    sql = b"SELECT data FROM pins WHERE ts = 1 " + b"AND ts = 1 " * 20
    answer = await planners.plan("u", sql, ENV, KNOWN)
    assert answer.made is not None
    assert isinstance(answer.made.plan, ShardSelect)
    long = sql + b"AND ts = 1 " * LONG
    answers = await asyncio.gather(*[planners.plan("u", one, ENV, KNOWN) for one in (sql, long, sql)])
    assert all(one.made is not None and one.made.plan.kind == "select" for one in answers)


async def test_a_process_is_there_from_its_first_statement_on(planners: Planners) -> None:
    """It takes 32 MB, which a worker without such statements does without."""
    assert (planners._short._process, planners._long._process) == (None, None)
    await planners.plan("u", b"SELECT data FROM pins WHERE ts = 1", ENV, KNOWN)
    assert planners._short._process is not None
    assert planners._long._process is None


async def test_what_takes_too_long_ends(planners: Planners) -> None:
    """By its own clock, which counts CPU time; the next statement is planned."""
    planners._short._seconds = 0.05
    sql = b"SELECT " + b"ts, " * 7000 + b"ts FROM pins ORDER BY 1"
    with pytest.raises(ProxyError) as error:
        await planners.plan("u", sql, ENV, KNOWN)
    assert error.value.kind.name == "statement_too_complex"
    assert error.value.code == 3170
    planners._short._seconds = 60.0
    answer = await planners.plan("u", b"SELECT data FROM pins WHERE ts = 1", ENV, KNOWN)
    assert answer.made is not None


async def test_a_statement_that_nobody_waits_for_any_longer(planners: Planners) -> None:
    await planners.plan("u", b"SELECT 1", ENV, KNOWN)
    process = planners._short._process
    assert process is not None
    waiting = asyncio.ensure_future(
        planners.plan("u", b"SELECT " + b"ts, " * 8000 + b"ts FROM pins", ENV, KNOWN)
    )
    other = asyncio.ensure_future(planners.plan("v", b"SELECT data FROM pins", ENV, KNOWN))
    await async_wait_until(lambda: planners.waiting == 1, "the first is at work")
    waiting.cancel()
    answer = await other
    assert answer.made is not None
    assert planners._short._process is not process


async def test_nobody_waits_any_longer_while_the_process_starts(
    planners: Planners, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not plan that statement, and the next one."""
    begun = asyncio.Event()
    goes_on = asyncio.Event()
    connect = asyncio.open_connection

    async def slowly(**how: Any) -> Any:
        begun.set()
        await goes_on.wait()
        return await connect(**how)

    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: failed.append(what))
    monkeypatch.setattr(asyncio, "open_connection", slowly)
    waiting = asyncio.ensure_future(planners.plan("u", LASTING, ENV, KNOWN))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    other = asyncio.ensure_future(planners.plan("v", b"SELECT data FROM pins", ENV, KNOWN))
    goes_on.set()
    assert (await other).made is not None
    assert not failed


#: Takes some seconds to plan.
LASTING = b"SELECT " + b"ts, " * 7000 + b"ts FROM pins ORDER BY 1"


def process_of(planners: Planners) -> int:
    process = planners._short._process
    assert process is not None
    return process.pid


async def test_a_process_that_is_lost_with_nothing_to_do(executed: Planners) -> None:
    """No statement notices, and it is no zombie."""
    planners = executed
    await planners.plan("u", b"SELECT 1", ENV, KNOWN)
    first = process_of(planners)
    os.kill(first, signal.SIGKILL)
    await async_wait_until(lambda: gone(first), "it is gone")
    with structlog.testing.capture_logs() as logs:
        assert (await planners.plan("u", b"SELECT 1", ENV, KNOWN)).made is not None
    assert [line["reason"] for line in logs] == ["killed by signal 9 (SIGKILL)"]

    second = process_of(planners)
    os.kill(second, signal.SIGKILL)
    await async_wait_until(lambda: gone(second), "it is gone")
    planners.tend()
    for pid in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert (await planners.plan("u", b"SELECT 1", ENV, KNOWN)).made is not None


async def test_a_process_that_is_lost_at_work(planners: Planners) -> None:
    """Another plans the statement; when that is lost as well, it fails, and the next is planned."""
    await planners.plan("u", b"SELECT 1", ENV, KNOWN)
    for deaths in (1, 2):
        waiting = asyncio.ensure_future(planners.plan("u", LASTING, ENV, KNOWN))
        victim = 0
        for _ in range(deaths):
            before = victim
            await async_wait_until(partial(_another_at_work, planners, before), "a process at work")
            victim = process_of(planners)
            os.kill(victim, signal.SIGKILL)
        if deaths == 1:
            assert (await waiting).made is not None
            continue
        with pytest.raises(ProxyError) as error:
            await waiting
        assert error.value.kind.name == "planning_lost"
    assert (await planners.plan("u", b"SELECT 1", ENV, KNOWN)).made is not None


def _another_at_work(planners: Planners, before: int) -> bool:
    lane = planners._short
    return lane._busy and lane._process is not None and lane._process.pid != before


async def test_a_process_that_is_stopped(planners: Planners) -> None:
    """It has its statement for some seconds, not for ever; whoever comes next is planned."""
    await planners.plan("u", b"SELECT 1", ENV, KNOWN)
    planners._short._look = 0.3
    os.kill(process_of(planners), signal.SIGSTOP)
    with structlog.testing.capture_logs() as logs, pytest.raises(ProxyError) as error:
        await planners.plan("u", b"SELECT 1", ENV, KNOWN)
    assert error.value.kind.name == "statement_too_complex"
    assert "stopped" in logs[0]["reason"]
    planners._short._look = 60.0
    assert (await planners.plan("u", b"SELECT 1", ENV, KNOWN)).made is not None


async def test_explain_route_and_cutting(planners: Planners) -> None:
    asked = []

    def slot(name: str) -> bytes:
        asked.append(name)
        return b"70437463654407"

    sql = b"SELECT data FROM pins WHERE id = @pin AND ts = @when"
    rows = await planners.explain("u", sql, ENV, KNOWN, slot, cached=False)
    assert sorted(asked) == ["@pin", "@when"]
    expected = rewriter_explain(
        rewriter(), sql, ENV, TOPOLOGY, lambda name: b"70437463654407", error_lines, cached=False
    )
    assert list(rows) == expected
    text = b"SELECT '" + b";" * 100_000 + b"'; SELECT 2; SELECT 3"
    piece = await planners.cut("u", text, ENV, KNOWN)
    assert piece == cut(text, 0, ENV)
    assert text[piece.end :] == b"; SELECT 2; SELECT 3"


def test_a_proxy_that_was_killed() -> None:
    """With an answer that it has not read: its planning processes end without a word in its log."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(b"an answer")
        theirs.close()
        serve(ours)
