"""KILL [CONNECTION | QUERY] id and COM_PROCESS_KILL, for sessions of this proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.session.state import Role
from rewriter.plans import Builtin, Values
from rewriter.splice import Template

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection


def kill_statement(client: ClientConnection, plan: Builtin, values: Values) -> None:
    template = plan.arguments["id"]
    assert isinstance(template, Template)
    text = template.render(values).strip().strip(b"'\"")
    if not text.isdigit():
        raise ProxyError("no_such_thread", id=text.decode("latin-1"))
    kill(client, int(text), query_only=bool(plan.arguments["query"]))


def kill(client: ClientConnection, id: int, *, query_only: bool) -> None:
    """End another session, or what it runs. A user may kill own sessions, an admin everybody's."""
    other = client.services.clients.get(id)
    if other is None or other.session is None:
        raise ProxyError("no_such_thread", id=id)
    user = client.session.user
    if other.session.user.name != user.name and user.role < Role.ADMIN:
        raise ProxyError("not_owner", id=id)
    if other is client:
        if query_only:
            raise ProxyError("killed")
        client.killed = True
        raise ProxyError("connection_killed")
    work = other.work
    if not query_only:
        other.killed = True
        if work is None:
            other.close()
    if work is not None:
        work.kill_query()
    client.reply_ok()
