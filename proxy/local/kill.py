"""KILL [CONNECTION | QUERY] id and COM_PROCESS_KILL, for sessions of this proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.task import TaskWork
from proxy.engine.work import Leaving
from proxy.errors import ProxyError
from rewriter.plans import Values
from rewriter.plans.builtins import Kill

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services
    from proxy.peers import Peers


def kill_statement(client: Exchange, plan: Kill, values: Values) -> None:
    text = plan.id.render(values).strip().strip(b"'\"")
    if not text.isdigit():
        raise ProxyError("no_such_thread", id=text.decode("latin-1"))
    kill(client, int(text), query_only=plan.query)


def kill(client: Exchange, id: int, *, query_only: bool) -> None:
    """End another session, or what it runs. A user may kill own sessions, an admin everybody's."""
    services, user = client.services, client.session.user
    peers = services.peers
    if peers is not None and id >> 24 != peers.number and id >> 24 < peers.count:
        TaskWork(client).start(_kill_elsewhere(client, peers, id, query_only))
        return
    if id == client.session.id:
        if query_only:
            raise ProxyError("killed")
        client.leaving = Leaving.NOW
        raise ProxyError("connection_killed")
    outcome = end(services, id, user.name, admin=user.sees_others, query_only=query_only)
    if outcome:
        raise ProxyError(outcome, id=id)
    client.reply_ok()


async def _kill_elsewhere(client: Exchange, peers: Peers, id: int, query_only: bool) -> None:
    """The session belongs to another worker process."""
    user = client.session.user
    admin = user.sees_others
    outcome = await peers.ask(id >> 24, "kill", id=id, user=user.name, admin=admin, query_only=query_only)
    if outcome:
        raise ProxyError(str(outcome), id=id)
    if outcome is None:
        raise ProxyError("no_such_thread", id=id)
    client.reply_ok()


def end(services: Services, id: int, user: str, *, admin: bool, query_only: bool) -> str:
    """End a session of this process, or what it runs. '' when done, else the name of the error."""
    other = services.clients.sessions.get(id)
    if other is None:
        return "no_such_thread"
    if other.session.user.name != user and not admin:
        return "not_owner"
    if not query_only:
        other.cut_off()
    elif other.work is not None:
        other.work.kill_query()
    return ""
