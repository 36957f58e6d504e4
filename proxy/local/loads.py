"""SHOW SHARDS, HOT SHARDS, POOLS and PROXY QUERIES: where the load is, and how it is carried, as all worker
processes have seen it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from proxy.engine.seen import (
    NOTHING,
    Query,
    Seen,
    earlier,
    hosts_seen,
    queries_seen,
    queries_together,
    seen_of,
    shards_seen,
    together,
    usual,
)
from proxy.engine.task import TaskWork
from proxy.peers import of_all, with_kept
from proxy.wire.resultset import Column, integer_column, text_column
from rewriter.plans import Values
from rewriter.plans.builtins import Listing

from .rows import like_pattern, like_text
from .show import LongAnswer, SeenPlaces, answer_rows, liked

if TYPE_CHECKING:
    from config.topology import Keyspace
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services
    from proxy.peers import Peers

_FOR_REPLICAS: Final = "5.5.5-"
"""What MariaDB before 11 puts before its version in the greeting, for old replicas."""
_AT_ONCE: Final = 250
"""So many rows are made in one turn of the loop."""
_HOT: Final = 100
"""So many shards SHOW HOT SHARDS tells of."""


def tell_loads(peers: Peers, services: Services) -> None:
    """Answer the other workers' questions for the same."""
    peers.handlers["shards"] = lambda _: shards_seen(services, all=True)
    peers.handlers["shards_now"] = lambda _: shards_seen(services)
    peers.handlers["pools"] = lambda _: pools_seen(services)
    peers.handlers["queries"] = lambda request: _queries(services, **request)


def ms(seconds: float) -> str:
    """Milliseconds, as they are shown."""
    return f"{seconds * 1000:.3f}"


# -- shards
# ---------------------------------------------------------------------------------------------------------

_LOAD: Final = [
    text_column("Load"),
    text_column("Per_second"),
    text_column("Mean_ms"),
    text_column("P95_ms"),
    text_column("Busy"),
    integer_column("Errors"),
    integer_column("Running"),
    text_column("Oldest_ms"),
]
_TOTALS: Final = [
    integer_column("Total"),
    integer_column("Total_errors"),
    integer_column("Total_rows"),
    text_column("Max_ms"),
]


def _load(seen: Seen, usually: float) -> list[object]:
    """The columns of `_LOAD`."""
    return [
        seen.state(usually) or None,
        f"{seen.per_second:.1f}",
        ms(seen.mean),
        ms(seen.within(0.95)),
        f"{seen.busy:.3f}",
        seen.errors,
        seen.running,
        ms(seen.oldest),
    ]


def _totals(seen: Seen) -> list[object]:
    return [seen.total, seen.total_errors, seen.total_rows, ms(seen.longest)]


def shards(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each shard: where it is, and what it has had to do in the last seconds and in all."""
    TaskWork(client).start(_shards(client, plan, values))


async def _shards(client: Exchange, plan: Listing, values: Values) -> None:
    seen = together(
        await of_all(client.services.peers, "shards", await shards_seen(client.services, all=True))
    )
    by_shard = await seen_of(client.snapshot.topology, seen)
    columns = [
        text_column("Keyspace"),
        integer_column("Shard"),
        text_column("Database"),
        text_column("Master"),
        text_column("Slave"),
        text_column("State"),
        text_column("Open"),
        *_LOAD,
        *_TOTALS,
    ]
    answer, places = LongAnswer(client, columns), SeenPlaces(client)
    for keyspace in client.snapshot.topology.keyspaces.values():
        mine = by_shard[keyspace.name]
        usually = usual(mine.values())
        shards = [one for one in keyspace.all_shards if places.has(keyspace.name, one, one)]
        for at in range(0, len(shards), _AT_ONCE):
            rows = [
                _shard(keyspace, one, mine.get(one, NOTHING), usually) for one in shards[at : at + _AT_ONCE]
            ]
            answer.add(liked(plan, values, rows, 0, 2))
            await asyncio.sleep(0)
    answer.end()


def _shard(keyspace: Keyspace, shard: int, seen: Seen, usually: float) -> list[object]:
    """Its row."""
    found = keyspace.range_of(shard)
    assert found is not None
    database, opened = keyspace.database_of(shard).decode(), "yes" if found.open else "no"
    place = [keyspace.name, shard, database, found.master, found.slave, str(found.state), opened]
    return [*place, *_load(seen, usually), *_totals(seen)]


def hot_shards(client: Exchange, plan: Listing, values: Values) -> None:
    """The shards that fail, those that are slow, and those with most work, in this order."""
    TaskWork(client).start(_hot_shards(client, plan, values))


async def _hot_shards(client: Exchange, plan: Listing, values: Values) -> None:
    seen = together(await of_all(client.services.peers, "shards_now", await shards_seen(client.services)))
    found: list[tuple[tuple[object, ...], list[object]]] = []
    by_shard, places = await seen_of(client.snapshot.topology, seen), SeenPlaces(client)
    for keyspace in client.snapshot.topology.keyspaces.values():
        mine = by_shard[keyspace.name]
        usually = usual(mine.values())
        for shard, one in mine.items():
            if not places.has(keyspace.name, shard, shard):
                continue
            placed = keyspace.range_of(shard)
            assert placed is not None
            row: list[object] = [keyspace.name, shard, keyspace.database_of(shard).decode(), placed.master]
            found.append((hotness(one, usually), row + _load(one, usually)))
        await asyncio.sleep(0)
    found.sort(key=lambda pair: pair[0])
    columns = [
        text_column("Keyspace"),
        integer_column("Shard"),
        text_column("Database"),
        text_column("Master"),
        *_LOAD,
    ]
    answer_rows(client, columns, liked(plan, values, [row for _, row in found], 0, 2, 3)[:_HOT])


def hotness(seen: Seen, usually: float) -> tuple[object, ...]:
    """What hot shards are sorted by: the worst come first."""
    return (not seen.failing, not seen.slow(usually), -seen.oldest, -seen.busy)


# -- hosts
# ----------------------------------------------------------------------------------------------------------


def pools_seen(services: Services) -> dict[str, list[Any]]:
    """By host, what this worker's pool has: version, connections busy, idle and opening, clients' statements
    that wait, the limit, failures in a row and what is wrong; then what the host has had to do, as `Seen`.
    """
    services.keep()
    seen = hosts_seen(services)
    return {
        pool.host: [
            pool.version.removeprefix(_FOR_REPLICAS),
            len(pool.state.busy),
            pool.state.idle_count,
            pool.state.opening,
            pool.state.waiting.of_clients,
            pool.state.max_connections,
            pool.failures,
            pool.trouble,
            seen.get(pool.host, NOTHING),
        ]
        for pool in services.backends.pools
    }


def pools(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each host: the connections of all workers to it, and what it has had to do."""
    TaskWork(client).start(_pools(client, plan, values))


async def _pools(client: Exchange, plan: Listing, values: Values) -> None:
    parts, kept = await with_kept(client.services.peers, "pools", pools_seen(client.services))
    of_parts = [{host: one[-1] for host, one in part.items()} for part in parts]
    loads = together([*of_parts, *(earlier(counted["hosts"]) for counted, *_ in kept)])
    rows: list[list[object]] = []
    for host, seen in loads.items():
        mine = [part[host] for part in parts if host in part]
        if not mine:
            continue  # nobody is left who knows it
        counts = [sum(one[place] for one in mine) for place in range(1, 6)]
        troubles = dict.fromkeys(one[7] for one in mine if one[7])
        rows.append(
            [
                host,
                max(one[0] for one in mine),
                *counts,
                max(one[6] for one in mine),
                "; ".join(troubles) or None,
                f"{seen.per_second:.1f}",
                ms(seen.mean),
                ms(seen.within(0.95)),
                seen.errors,
                seen.waits,
                ms(seen.waited / seen.waits if seen.waits else 0.0),
                seen.running,
                ms(seen.oldest),
                *_totals(seen),
            ]
        )
    columns = [
        text_column("Host"),
        text_column("Version"),
        integer_column("Busy"),
        integer_column("Idle"),
        integer_column("Opening"),
        integer_column("Waiting"),
        integer_column("Limit"),
        integer_column("Failures"),
        text_column("Error"),
        text_column("Per_second"),
        text_column("Mean_ms"),
        text_column("P95_ms"),
        integer_column("Errors"),
        integer_column("Waits"),
        text_column("Wait_ms"),
        integer_column("Running"),
        text_column("Oldest_ms"),
        *_TOTALS,
    ]
    answer_rows(client, columns, liked(plan, values, rows))


# -- statements
# -----------------------------------------------------------------------------------------------------


def proxy_queries(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each kind of statement, those that took most time first. Literals are not shown."""
    TaskWork(client).start(_proxy_queries(client, plan, values))


async def _proxy_queries(client: Exchange, plan: Listing, values: Values) -> None:
    like = None if plan.like is None else like_text(plan.like, values)
    own = _queries(client.services, like)
    parts, kept = await with_kept(client.services.peers, "queries", own, like=like)
    left = [_liked_kinds(statements, like) for *_, statements in kept]
    found = queries_together([*parts, *left])
    columns: list[Column] = [
        text_column("Digest"),
        text_column("Db"),
        text_column("Plan"),
        integer_column("Count"),
        integer_column("Errors"),
        text_column("Total_ms"),
        text_column("Mean_ms"),
        text_column("P50_ms"),
        text_column("P95_ms"),
        text_column("P99_ms"),
        text_column("Max_ms"),
        integer_column("Rows"),
        text_column("Shards"),
        text_column("Hosts"),
    ]
    answer_rows(client, columns, [_query(one) for one in found])


def _queries(services: Services, like: str | None) -> list[Any]:
    """What this worker has counted of statements whose digest is `like` the pattern: of all of them, not of
    the costliest only.
    """
    services.keep()
    return queries_seen(services, None if like is None else like_pattern(like))


def _liked_kinds(statements: list[Any], like: str | None) -> list[Any]:
    """The same of what a worker has kept that does not answer."""
    matches = None if like is None else like_pattern(like)
    return [one for one in statements if matches is None or matches(one[0][0])]


def _query(one: Query) -> list[object]:
    """`Shards`: in the mean. `Hosts`: each with how often it was there."""
    use = one.use
    hosts = sorted(use.hosts.items(), key=lambda pair: -pair[1])
    return [
        one.digest,
        one.database or None,
        one.plan,
        use.count,
        use.errors,
        ms(use.seconds),
        ms(use.seconds / use.count),
        *(ms(one.within(share)) for share in (0.5, 0.95, 0.99)),
        ms(use.longest),
        use.rows,
        f"{use.shards / use.count:.2f}",
        ", ".join(f"{host} {count}" for host, count in hosts) or None,
    ]
