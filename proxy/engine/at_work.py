"""What the pieces below an `Exchange` may ask of it: the command at work, not how it is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from proxy.session.state import Session
    from rewriter.plan import Plan

    from .services import Services
    from .snapshot import Snapshot


class AtWork(Protocol):
    """A command at work. `kind`: of its plan; `sql`: b"" where it is no COM_QUERY."""

    kind: str
    observe_after: float
    plan: Plan | None
    services: Services
    session: Session
    snapshot: Snapshot
    sql: bytes
