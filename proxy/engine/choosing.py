"""Which shard takes a row that no ID places: any one that is open, of a host that serves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import choice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.backends import Backends
    from proxy.engine.exchange import Exchange
    from rewriter.plans import Choose, Insert

_TRIES: Final = 20
"""With half of the hosts away a row meets one of these once in a million times, and its error tells."""


def any_open(client: Exchange, plan: Insert) -> Choose:
    """Chooses for the rows of `plan`, in this statement's topology; may be called in another thread."""
    return partial(_choose, client.services.backends, client.snapshot.topology, plan.keyspace)


def _choose(backends: Backends, topology: Topology, keyspace: str, shards: Sequence[int]) -> int:
    """One of the open `shards`, which are not none; one of a host that is known to be away only if a few
    tries find no other.
    """
    host_of = topology.keyspaces[keyspace].host_of
    for _ in range(_TRIES):
        shard = choice(shards)
        host = host_of(shard)
        if host is None or not backends.away(host):
            break
    return shard
