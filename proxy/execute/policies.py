"""What a user may do, beyond their role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from rewriter.plans import Bound

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def check_scatter(client: Exchange, bound: Bound) -> int | None:
    """Whether the user may scatter; the most rows such a read may give, None for no limit."""
    user = client.session.user
    if not user.scatter_allowed:
        shards = sum(len(statement.shards) for statement in bound.statements)
        raise ProxyError(
            "scatter_denied",
            statement="SELECT",
            shards=shards,
            reason=f"user '{user.name}' may not scatter",
            column="the routing column",
            alternative="ask for scatter: allow",
        )
    return user.scatter_rows or client.services.settings.limits.scatter_rows or None
