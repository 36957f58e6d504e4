"""What a table's `cache` says: where its rows are kept besides the database, and how long.

    pins:           {kind: object, …, cache: {memcached: "10.0.0.5:11211", ttl: 1h}}
    board_has_pins: {kind: mapping, …, cache: {redis: "10.0.0.6:6379"}}

Object rows are kept by ID, mapping lists by from-ID; other kinds have no such ID in every row. The client
libraries are an extra of the package, `caches`: who asks for a cache without having them is told at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from config.address import parse_address
from config.document import Spot
from config.fields import like
from config.schema import Cache
from config.units import Duration
from config.validation import Part

KINDS: Final = {"memcached": "emcache", "redis": "redis"}
"""Kinds of caches, and the package that speaks to each."""

LEAST_LEASE: Final = 2.0
MOST_LEASE: Final = 60.0
MOST_TTL: Final = 30 * 86400.0
"""Seconds; memcached takes longer ones for dates."""


def _address(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be an address like 127.0.0.1:11211 or unix:/run/memcached.sock")
    return str(parse_address(value, None))


_Address = Annotated[str, BeforeValidator(_address)]


class CacheFields(Part):
    """The field `cache` of a table."""

    memcached: _Address | None = None
    redis: _Address | None = None
    ttl: Annotated[Duration, Field(ge=1, le=MOST_TTL)] = 3600.0
    lease: Annotated[Duration, Field(ge=LEAST_LEASE, le=MOST_LEASE)] = 3.0
    prefix: Annotated[str, like(r"[0-9A-Za-z_.-]{1,40}", "must be 1 to 40 letters, digits, _ . or -")] = (
        "shardgate"
    )


def read_cache(fields: CacheFields | None, spot: Spot) -> Cache | None:
    """The cache of a table, as far as the document gives it; notes what is wrong with it at `spot`."""
    if fields is None:
        return None
    named = [(kind, address) for kind in KINDS if (address := getattr(fields, kind)) is not None]
    given = [kind for kind in KINDS if spot.given(kind) is not None]
    if len(given) != 1:
        spot.refuse("names one cache: memcached: HOST:PORT, or redis: HOST:PORT")
    if len(given) != 1 or not named:
        return None
    kind, address = named[0]
    package = KINDS[kind]
    if find_spec(package) is None:
        spot.inner(kind).refuse(
            f"needs the Python package {package}, which is not installed: pip install 'shardgate[caches]'"
        )
    return Cache(kind, address, fields.ttl, fields.lease, fields.prefix)


def check_leases(caches: Iterable[tuple[Cache, Spot]]) -> None:
    """Note tables of one cache that say different leases: it is the cache's."""
    first: dict[tuple[str, str, str], Cache] = {}
    for cache, spot in caches:
        other = first.setdefault(cache.server, cache)
        if other.lease != cache.lease:
            told = f"is {cache.lease:g} s, and {other.lease:g} s for another table of this cache"
            spot.field("lease").refuse(told)
