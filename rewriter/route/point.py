"""One ID to the text of its shard: how a statement is bound that one literal or parameter routes."""

from __future__ import annotations

from dataclasses import dataclass

from config.topology import Host, Topology
from rewriter.plan import Values
from rewriter.splice import Template

from .by_id import text_by_id
from .id_lists import Bits


@dataclass(frozen=True)
class Point:
    """A statement routed by one ID that is one literal or parameter: bound without further ado.

    `template` has holes for three values behind the literals: the shard's database, the local id, and K.
    `parameter`: the ID is one, which may be any literal.
    """

    keyspace: str
    literal: int
    bits: Bits
    template: Template
    parameter: bool

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle."""
        return Point, (self.keyspace, self.literal, self.bits, self.template, self.parameter)


def at_point(
    point: Point | None, values: Values, topology: Topology
) -> tuple[Host, int, bytes, bytes] | None:
    """Host, shard, SQL and the shard's database, if `point` leads to a shard that exists."""
    if point is None:
        return None
    places = topology.keyspaces[point.keyspace].places
    return text_by_id(values[point.literal], values, point.bits, places, point.template)
