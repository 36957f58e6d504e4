"""Changes that were begun and not finished, and the shards that clients wait for meanwhile: what `status`,
`verify` and `check --connect` say of them, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from config.topology import State, Topology
from fleet.core.journal import Journal, Operation
from fleet.core.store import Holder, Store
from fleet.faults import Fault

_MEANS: Final = {State.FROZEN: ", clients wait", State.READ_ONLY: ", writes are refused"}


def not_serving(topology: Topology, *states: State) -> list[Fault]:
    """Each range of shards that clients wait for, or are refused; of these states only, if any are given."""
    return [
        Fault("state", one.master, f"{keyspace.name} {one.first}-{one.last} is {one.state}{means}")
        for keyspace in topology.keyspaces.values()
        for one in keyspace.ranges
        if one.state is not State.SERVING and (not states or one.state in states)
        for means in [_MEANS.get(one.state, "")]
    ]


def unfinished(operations: Sequence[Operation], holder: Holder | None, options: str) -> list[Fault]:
    """The operations that keep other tools from beginning, or have left hosts half way. `options`: what
    belongs to a command, too, as ` --config FILE`.
    """
    return [
        Fault(
            "unfinished",
            str(one.arguments.get("host") or one.arguments.get("master") or ""),
            f"operation {one.number}, {one.tool}, is unfinished ({one.progress})",
            how_to_go_on(one, holder, options),
        )
        for one in operations
        if one.blocks and not one.outcome
    ]


def how_to_go_on(operation: Operation, holder: Holder | None, options: str) -> str:
    """What to do about an unfinished operation."""
    if holder is not None:
        return f"wait for who is at work: {holder}"
    back = "" if operation.final else "; or take it back: the same with --undo"
    return f"finish it: {operation.command}{options}{back}"


def faults(store: Store, topology: Topology, options: str = "") -> list[Fault]:
    """What `verify` and `check --connect` say. Failed when the store does not answer."""
    holder = store.holder()
    changes = unfinished(Journal(store).unfinished(), holder, options)
    frozen = not_serving(topology, State.FROZEN)
    if changes:
        remedy = "see the unfinished operation below"
    elif holder is not None:
        remedy = f"wait for who is at work: {holder}"
    else:
        remedy = "no tool has left it so: see why, then publish it as serving, shardgate topology put"
    return [*(Fault(one.kind, one.host, one.text, remedy) for one in frozen), *changes]
