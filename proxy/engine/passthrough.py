"""`Passthrough`: what sends a statement to one host, and its reply to the client; and what it can be given to
send, a `Request`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from proxy.backends.connection import BackendConnection
from proxy.backends.receiver import Receiver
from proxy.errors import ProxyError
from proxy.load import Load
from proxy.session.outcome import Diagnostics
from rewriter.plans import Values
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.facts import UNREAD, StatementFacts

from .work import Work

if TYPE_CHECKING:
    from proxy.session.prepared import HostRepeat, Statement


class Passthrough(Work, Receiver, Protocol):
    """Sends one statement to one host, and its reply to the client as it comes.

    The members below `forget` are for the request at work. `conn`: the connection whose reply is awaited.
    `plain`: there is nothing special about the statement, and what is said of it is of an earlier one.
    """

    once: Callable[[bytes], Request] | None
    """Makes, of its text, the request as which the next statement goes that is given none."""

    def ask(
        self,
        host: str,
        sql: bytes,
        column_metadata: ColumnMetadata | None,
        shard: bytes,
        statement: Statement | None = None,
    ) -> None:
        """A point select in the database `shard`. `statement`: whose rows, made binary, the client gets."""

    def run(
        self,
        host: str,
        sql: bytes,
        database: str | None = None,
        column_metadata: ColumnMetadata | None = None,
        facts: StatementFacts = UNREAD,
        shards: Sequence[Load] = (),
        effects: Effects | None = None,
        literals: Values = (),
        id_offset: int | None = None,
        keeps_insert_id: bool = False,
        request: Request | None = None,
    ) -> None:
        """Any statement; see `relay.Relay`."""

    def take_up(self, conn: BackendConnection, request: Request, repeat: HostRepeat, fresh: bool) -> None:
        """`request` sends the statement of `repeat` over `conn`, which is as it must be. `fresh`: the session
        had not had it before.
        """

    def fetch(self, conn: BackendConnection, request: Request) -> None:
        """More of a result that `conn` still has, for which `request` asks."""

    def forget(self) -> None:
        """Let go of the last statement."""

    conn: BackendConnection | None
    plain: bool
    sql: bytes
    database: str | None
    facts: StatementFacts
    effects: Effects | None
    literals: Values
    keeps_insert_id: bool

    @property
    def attributes(self) -> bytes:
        """The query attributes of the client's statement, for `AttributedConnection`."""

    def send(self, conn: BackendConnection) -> None:
        """Send the statement over `conn`, from the beginning."""

    def packets_before(self, conn: BackendConnection) -> tuple[bytes, int]:
        """The packets to be sent before the statement, and how many they are."""

    def begin_to_drain(self, conn: BackendConnection) -> None:
        """The reply is complete, but for what the session must ask the server for; then the command is
        done.
        """


class Request:
    """What a statement is sent as when that is no COM_QUERY whose reply is all there is. It gets the replies,
    and gives the relay on what is for the client: so what the relay makes of that holds for all requests.
    """

    __slots__ = ("own", "relay")

    def __init__(self, relay: Passthrough) -> None:
        self.relay = relay
        self.own = False

    def send(self, conn: BackendConnection) -> None:
        """Send it over `conn`, whose current database is the right one."""
        raise NotImplementedError

    def warned(self, found: Diagnostics) -> None:
        """The warnings of the reply that was the last one, if it had any."""
        del found

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    @property
    def whole(self) -> bool:
        return self.relay.whole

    @property
    def attributes(self) -> bytes:
        """As the relay's."""
        return self.relay.attributes

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        return self.relay.accepts(conn, changed)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        self.relay.reply_data(conn, data)

    def reply_done(self, conn: BackendConnection) -> None:
        self.relay.reply_done(conn)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        self.relay.reply_lost(conn, error, clean)
