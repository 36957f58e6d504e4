"""Where a statement may run. transaction_mode = 'single': a transaction stays on the shard it began on.

Tables that are not sharded are on no shard, so they may take part as long as they are on the same host.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.session.transaction import Spot
from rewriter.plan import Access
from rewriter.plans import HostStatement, OneHost, Physical

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def check_place(client: Exchange, plan: OneHost, host: str) -> None:
    """Refuse what one host would run, when the state of a shard that it names does not allow it, or it would
    be a second shard.
    """
    places = plan.locations if isinstance(plan, Physical) else ()
    if places and not client.services.all_serving:
        client.services.check_places(places, write=plan.access > Access.READ)
    if client.session.transaction_mode == "single":
        check_single(client, [Spot(host, *place) for place in places] or [Spot(host)])


def spots_of(keyspace: str, statements: Iterable[HostStatement]) -> list[Spot]:
    """Where statements on sharded tables run."""
    return [Spot(one.host, keyspace, shard) for one in statements for shard in one.shards or (None,)]


def check_single(client: Exchange, spots: Iterable[Spot]) -> None:
    """Refuse a statement that would take the transaction to a second shard, naming both; note where it is."""
    session = client.session
    transaction = session.transaction
    if not transaction.explicit and session.autocommit:
        return
    if not transaction.open:
        transaction.spots = []
    found = list(transaction.spots)
    for spot in spots:
        for other in found:
            if other.excludes(spot):
                raise ProxyError("second_shard", first=str(other), second=str(spot))
        if spot not in found:
            found.append(spot)
    transaction.spots = found
