"""A client: its connection, with what it logs in by, and what its commands are run by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy import pipeline
from proxy.engine import outside_transaction
from proxy.engine.relay import Relay
from proxy.engine.services import Services
from proxy.errors import ProxyError
from proxy.execute.prepared import prepare

from .commands import run_command
from .connection import ClientConnection
from .login import Login

if TYPE_CHECKING:
    from proxy.engine.exchange import Describe
    from proxy.wire.packets import Err
    from rewriter.plans import Gather, Plan, Values


class Client(ClientConnection):
    """What the proxy makes for each connection that comes in."""

    __slots__ = ()

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.relay = Relay(self)

    def connected(self) -> None:
        """Begin the log-in, unless there is no room."""
        services = self.services
        services.clients.connections.add(self)
        services.stats.started_connections += 1
        limit = services.clients.most
        error: ProxyError | None = None
        if len(services.clients.connections) > limit:
            error = ProxyError("too_many_connections", limit=limit)
        if error is not None:
            services.stats.refused(error.kind.name)
            self.seq = -1
            self.write_error(error)
            self.close()
            return
        given_up = services.clients.logins.begin(self, self.address)
        self.phase = Login(self)
        if given_up is not None and isinstance(given_up.phase, Login):
            given_up.phase.refuse(ProxyError("too_many_logins", limit=services.clients.logins.limit))

    def execute(self, sql: bytes) -> None:
        pipeline.execute(self, sql)

    def run_plan(self, plan: Plan, literals: Values) -> None:
        pipeline.run_plan(self, plan, literals)

    def describe(self, plan: Gather, values: Values, reply: Describe) -> None:
        pipeline.describe(self, plan, values, reply)

    def asks_about_syntax(self, error: Err) -> bool:
        return outside_transaction.asks_about_syntax(self, error)

    def execute_again(self, packet: bytes) -> bool:
        return prepare.execute_again(self, packet)

    def command(self, payload: bytes) -> None:
        run_command(self, payload)
