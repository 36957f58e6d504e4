"""A client: its connection, with what it logs in by, and what its commands are run by."""

from __future__ import annotations

from proxy import pipeline
from proxy.engine import outside_transaction
from proxy.engine.relay import Relay
from proxy.engine.services import Services
from proxy.errors import ProxyError
from proxy.execute.prepared import prepare

from . import plain
from .commands import run_command
from .connection import ClientConnection
from .login import Login


class Client(ClientConnection):
    """What the proxy makes for each connection that comes in."""

    __slots__ = ()

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.relay = Relay(self)
        self.begins, self.pieces = plain.begin, plain.piece
        self.relay.asks, self.relay.sends, self.relay.answer = plain.ask, plain.send, plain.answer

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

    execute = pipeline.execute
    run_plan = pipeline.run_plan
    describe = pipeline.describe
    asks_about_syntax = outside_transaction.asks_about_syntax
    execute_again = prepare.execute_again
    command = run_command
