"""Who a client's connection gives its events to while a statement or a phase is at work."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, Protocol

AHEAD: Final = 1
FILE: Final = 2
"""Who wants the client not to be read from: it has sent ahead, or the file that it sends is read slowly."""


class Leaving(IntEnum):
    """When a session ends by the proxy's doing: as soon as no command is at work, or no transaction too."""

    NOT = 0
    BETWEEN_TRANSACTIONS = 1
    NOW = 2


class Writing(NamedTuple):
    """What a command has read that now writes. `rows`: how many. `fills_in`: they are values that it has had
    computed, and would ask for again.
    """

    rows: int
    fills_in: bool


class Work(Protocol):
    """A statement under way."""

    def cancel(self) -> None:
        """The client is gone: stop, and leave no statement running on a server."""

    def kill_query(self) -> None:
        """KILL QUERY: end what runs on the servers; their error (1317) reaches the client by itself."""

    def flow(self) -> None:
        """`client.writing_paused` has changed: pause or resume the backends that stream into the client."""


class Phase(Protocol):
    """Who gets the client's payloads while they are no commands: the log-in; LOAD DATA LOCAL, for a file."""

    def payload(self, seq: int, payload: bytes) -> None: ...

    def abandon(self) -> None: ...
