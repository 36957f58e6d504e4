"""The IDs of timed tables: made at INSERT, from a sequence in the shard's own database.

A shard's `shardgate_sequences` keeps, for each table, the last number that an ID was made of: the time in
milliseconds and the sequence number behind it, as one integer. It only grows, by one statement of its own
that commits at once: so IDs of a shard are unique and ascending whatever proxies, clocks and transactions do,
and no INSERT waits for another one's COMMIT. The time is the server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from config.layout import Layout
from config.schema import SEQUENCES, quote
from config.topology import Keyspace
from proxy.backends.collect import Collector
from proxy.backends.own import own_connection
from proxy.errors import ProxyError
from proxy.wire.packets import query_packet

if TYPE_CHECKING:
    from proxy.backends import Backends


async def make_ids(
    backends: Backends, keyspace: Keyspace, table: str, wanted: Mapping[int, int]
) -> dict[int, list[int]]:
    """For each shard as many new IDs as `wanted` says, ascending. `table` is `database.table`.

    Raises ProxyError: a host cannot be reached, or refuses.
    """
    layout = keyspace.layout
    assert layout is not None  # timed tables are in keyspaces with a layout
    name = table.partition(".")[2]
    made: dict[int, list[int]] = {}
    for shard, count in wanted.items():
        host = keyspace.host_of(shard)
        if host is None:
            raise ProxyError("unknown_shard", keyspace=keyspace.name, shard=shard)
        async with own_connection(backends, host) as conn:
            sql = _next(keyspace.database_of(shard).decode(), name, layout, count)
            reply = await Collector().run(conn, query_packet(sql))
        if reply.ok is None:
            reason = reply.err.text() if reply.err is not None else "the server answered with rows"
            raise ProxyError("no_sequence", table=table, shard=shard, host=host, reason=reason)
        made[shard] = _ids(layout, shard, reply.ok.insert_id, count)
    return made


def _next(database: str, table: str, layout: Layout, count: int) -> bytes:
    """Takes `count` numbers at once; the OK packet's insert id is the last of them."""
    now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
    first = f"(({now}) - {layout.epoch_ms}) * {layout.sequence_mask + 1}"
    name = table.replace("'", "''")
    return (
        f"INSERT INTO {quote(database)}.{quote(SEQUENCES.name)} (name, value)"
        f" VALUES ('{name}', LAST_INSERT_ID({first} + {count - 1}))"
        f" ON DUPLICATE KEY UPDATE value = LAST_INSERT_ID(GREATEST(value + {count}, {first} + {count - 1}))"
    ).encode()


def _ids(layout: Layout, shard: int, last: int, count: int) -> list[int]:
    """The IDs made of the numbers `last` - `count` + 1 to `last`."""
    sequence_bits = layout.sequence_mask.bit_length()
    return [
        (number >> sequence_bits & layout.time_mask) << layout.time_shift
        | shard << layout.shard_shift
        | (number & layout.sequence_mask) << layout.sequence_shift
        for number in range(last - count + 1, last + 1)
    ]
