"""SHOW PROCEDURE STATUS and its kin: a server has the routines of all databases, and a user with a list sees
those of the databases in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.engine.lease import borrowed
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from rewriter.plans import Values, is_one_host
from rewriter.plans.builtins import ShowRoutines

from .rows import write_kept, write_rows

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_SYNTAX: Final = 1064


def show_routines(client: Exchange, plan: ShowRoutines, values: Values) -> None:
    """Without a list of databases the server's own answer; else the rows of the listed ones."""
    listed = client.session.user.databases
    if listed is None:
        client.run_plan(plan.home, values)
    else:
        TaskWork(client).start(_show_listed(client, plan, values, sorted(listed)))


async def _show_listed(client: Exchange, plan: ShowRoutines, values: Values, listed: list[str]) -> None:
    """WHERE is evaluated behind the server's choice of rows: errors in it could tell of others."""
    assert is_one_host(plan.home)
    names = b", ".join(b"_utf8mb4 X'%b'" % name.encode().hex().encode() for name in listed)
    sql = b"SHOW %b STATUS WHERE Db IN (%b)" % (plan.what.encode(), names or b"''")
    if plan.like is not None:
        sql += b" AND Name LIKE " + plan.like.render(values)
    async with borrowed(client, plan.home.host(client.snapshot.topology), all_rows=True) as conn:
        reply = await Collector().query(conn, sql)
    if reply.err is not None and reply.err.code == _SYNTAX:  # no such routines on this kind of server
        reason = f"You have an error in your SQL syntax near '{plan.what} STATUS'"
        raise ProxyError("syntax_error", reason=reason)
    if reply.err is not None:
        client.fail(reply.err)
    elif plan.where is not None:
        await write_kept(client, plan, values, reply.columns, reply.values(), files=True)
    else:
        write_rows(client, reply.columns, reply.values())
