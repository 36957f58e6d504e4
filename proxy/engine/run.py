"""Statements that a command runs for itself: `rows = await run(client, select, Rows(client))`.

A statement goes the ordinary way, from its text to the servers and back, and the session is as after any
other; only its answer goes to a `ResultSink`. To whom the client's statements are counted it is part of the
command at work. KILL QUERY and lost connections meet the statement as they would the client's own; when the
client goes away, the coroutine that waits is cancelled after the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from proxy.errors import ProxyError

from .result import ResultSink
from .task import TaskWork

if TYPE_CHECKING:
    from .exchange import Exchange

Into = TypeVar("Into", bound=ResultSink)


class Steps(TaskWork):
    """The work of a coroutine that waits for nothing but the statements that it runs. A KILL meets the one at
    work; between two of them it is heard by the next.
    """

    __slots__ = ()

    def kill_query(self) -> None:
        self.stopping = True


async def run(client: Exchange, sql: bytes, into: Into, *, steady: bool = False) -> Into:
    """Run `sql`. Raises Failed, or the error of `into`, which has just been made. `steady`: also after a KILL
    that came before.
    """

    def start() -> None:
        client.sql = sql
        client.execute(sql)

    return await run_by(client, start, into, steady=steady)


async def run_by(client: Exchange, start: Callable[[], None], into: Into, *, steady: bool = False) -> Into:
    """The same with whatever `start` begins: it answers as a command does, or raises ProxyError."""
    work, tracker = client.work, client.session.tracker
    assert isinstance(work, TaskWork)
    shown = client.session.diagnostics
    before = client.sql, client.kind, client.plan, client.begun, client.again, client.below
    try:
        if work.stopping and not steady:
            raise ProxyError("killed")
        done = into.awaited(work)
        if tracker is not None:
            tracker.silent = not into.tells
        client.kind, client.plan, client.begun = "unplanned", None, monotonic()
        client.runs_again_by(start)
        try:
            start()
        except Exception as error:
            client.met(error)
        await done
    finally:
        into.take_down()
        client.sql, client.kind, client.plan, client.begun, client.again, client.below = before
        if tracker is not None:
            tracker.silent = False
    # a statement without tables and warnings leaves those of the statement before it (`without_tables`)
    found = client.session.diagnostics
    into.diagnostics = [] if found is shown else found
    into.check()
    return into
