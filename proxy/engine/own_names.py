"""Names that a session gives: to prepared statements (PREPARE) and open handlers (HANDLER … OPEN).

A server has one set of each for a session. Here the connections hold them, one a host, and
`Transaction.pins` knows which: a statement that uses a name goes to the connection that holds it, whatever
the current database is, and a name that is made on one host is free on all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.engine.lease import borrowed, give_back
from proxy.engine.left_behind import pin
from proxy.engine.outside_transaction import syntax_error
from proxy.engine.task import TaskWork
from proxy.wire.packets import Err
from rewriter.plan import Plan
from rewriter.sql.statements.effects import Effects, Pin
from rewriter.sql.statements.forms import State

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from rewriter.plans import OneHost

_NO_HANDLER: Final = 1109
_NAME_IS_TAKEN: Final = 1066


def holder_of(client: Exchange, plan: Plan) -> str | None:
    """The host that holds the name in the statement; None if it has no name, or no host holds it."""
    effects, transaction = plan.effects, client.session.transaction
    if not transaction.pins or effects is None or effects.uses is None:
        return None
    return transaction.holder(effects.uses)


def database_at(client: Exchange, plan: OneHost) -> str | None:
    """The current database of the statement. The connection that holds the name keeps its own database: the
    session's may not exist on that host, and a prepared statement runs in the database of its PREPARE.
    """
    holder = holder_of(client, plan)
    if holder is None or holder == plan.host(client.snapshot.topology):
        return plan.database
    conn = client.session.transaction.held.get(holder)
    return None if conn is None else conn.database


def frees_names(client: Exchange, effects: Effects, host: str, go_on: Callable[[], None]) -> bool:
    """Whether a name that the statement creates on `host` must be freed on another host first. Then `go_on`,
    which sends the statement, is called after that.
    """
    for name in effects.pins:
        if name[0] in _FREED:
            holder = client.session.transaction.holder(name)
            if holder is not None and holder != host:
                TaskWork(client).start(_free(client, host, holder, name, go_on))
                return True
    return False


async def _free(client: Exchange, host: str, holder: str, name: Pin, go_on: Callable[[], None]) -> None:
    error = await syntax_error(client, host, client.sql)
    if error is None:  # what is no SQL frees nothing
        statement, refused = _FREED[name[0]]
        quoted = b"`%s`" % str(name[1]).replace("`", "``").encode()
        async with borrowed(client, holder, utf8=True) as conn:
            error = refused((await Collector().query(conn, statement % quoted)).err, str(name[1]))
            if error is None:
                pin(client.session, conn, Effects(unpins=(name,)), ())
        give_back(client, conn)
    if error is not None:
        client.fail(error)
        return
    go_on()


def _never(answer: Err | None, name: str) -> Err | None:
    """PREPARE may replace any statement of the name; an error means that there was none."""
    return None


def _if_open(answer: Err | None, name: str) -> Err | None:
    """HANDLER … OPEN fails while a handler of the name is open; a server closes one with its table."""
    if answer is not None and answer.code == _NO_HANDLER:
        return None
    return Err(_NAME_IS_TAKEN, "42000", f"Not unique table/alias: '{name}'".encode())


_FREED: Final = {
    State.PREPARE.value: (b"DEALLOCATE PREPARE %s", _never),
    State.HANDLER.value: (b"HANDLER %s READ FIRST LIMIT 0", _if_open),
}
"""The question to the holder of a name, by kind, and the client's error for an answer."""
