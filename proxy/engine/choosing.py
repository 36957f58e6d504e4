"""Which shard takes a row that no ID places: any one that is open, of a host that serves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import choice, choices
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.backends import Backends
    from proxy.engine.exchange import Exchange
    from rewriter.plans import Choose, Insert


def any_open(client: Exchange, plan: Insert) -> Choose:
    """Chooses for the rows of `plan`, in this statement's topology; may be called in another thread."""
    return partial(_choose, client.services.backends, client.snapshot.topology, plan.keyspace)


def _choose(backends: Backends, topology: Topology, keyspace: str, shards: Sequence[int]) -> int:
    """One of the open `shards`, which are not none; of a host that is known to be away only if all are."""
    found, shard = topology.keyspaces[keyspace], choice(shards)
    host = found.host_of(shard)
    if host is None or not backends.away(host):
        return shard
    left = [mine for other, mine in found.open_by_host.items() if not backends.away(other)]
    return choice(choices(left, [len(mine) for mine in left])[0]) if left else shard
