"""What statements are served by: one topology, the schema that goes with it, and the rewriter for both."""

from __future__ import annotations

from dataclasses import dataclass, field

from config.schema import Schema
from config.topology import Host, Topology
from rewriter.planner import Rewriter


@dataclass(frozen=True)
class Snapshot:
    """A statement takes the one of its time and keeps it to its end, so that it is planned, bound and sent by
    the same map, whatever changes meanwhile. `Services.snapshot` is the one of now.
    """

    topology: Topology
    schema: Schema
    rewriter: Rewriter
    all_serving: bool
    """Every shard takes reads and writes: the usual case, in which no state is asked for."""
    masters: dict[tuple[str, ...], Host] = field(init=False, repr=False, default_factory=dict)
    """The one host of each group of unsharded keyspaces that was asked for (`Passthrough.keyspaces`)."""

    @classmethod
    def of(cls, rewriter: Rewriter) -> Snapshot:
        """That of the rewriter's topology and schema."""
        serving = all(one.columns.all_serving for one in rewriter.topology.keyspaces.values())
        return cls(rewriter.topology, rewriter.schema, rewriter, serving)
