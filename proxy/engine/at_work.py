"""What the pieces below an `Exchange` may ask of it: the command at work, not how it is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from proxy.load import Load
    from proxy.session.state import Session
    from proxy.stats import Visit
    from rewriter.env import Env
    from rewriter.plan import Plan

    from .services import Services
    from .snapshot import Snapshot


class AtWork(Protocol):
    """A command at work. `kind`: of its plan; `sql`: b"" where it has no text, and `code` tells what it is,
    see `Command`. `host` and `shard`, or `visits`: where it has been; `first` and `last`: from when to when
    (monotonic); `queued`: seconds that it has waited for connections; `missed`: where it was to go and never
    came. `reading`: a text and the settings that it was read with, if it was with others than the session's:
    a prepared statement's.
    """

    code: int
    first: float
    host: str | None
    kind: str
    last: float
    missed: Visit | None
    observe_after: float
    plan: Plan | None
    queued: float
    reading: tuple[bytes, Env] | None
    services: Services
    session: Session
    shard: Load | None
    snapshot: Snapshot
    sql: bytes
    visits: list[Visit] | None

    @property
    def prepared_env(self) -> Env | None: ...
