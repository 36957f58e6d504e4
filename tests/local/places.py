"""A small topology and schema, and a way to run a built-in statement in a world without sockets."""

from __future__ import annotations

from typing import Any

from config.layout import BUILTIN
from config.schema import Column, Database, Kind, Schema, Table
from config.topology import Keyspace, Range, State, Topology
from proxy.catalog.facts import Collations
from proxy.frontend.connection import ClientConnection
from proxy.local import run_builtin
from rewriter.plans.builtins import Assignment, Builtin, SetScope, SetVariables
from rewriter.splice import Template
from tests.execute.world import World

PINS = Table(
    "demo", "pins", Kind.OBJECT, "main", type=1, routing="id",
    columns=(Column("local_id", "BIGINT"), Column("data", "JSON")),
)  # fmt: skip
NAMES = Table("demo", "names", Kind.SINGLE, "global", columns=(Column("name", "VARCHAR(9)"),))


def topology(version: int = 7) -> Topology:
    return Topology(
        version,
        {
            "main": Keyspace(
                "main", BUILTIN["pinterest"], pattern="db{shard:05d}",
                ranges=(Range(0, 1, "h1", "s1"), Range(2, 3, "h2", None, False, State.READ_ONLY)),
            ),
            "global": Keyspace("global", master="h1"),
            "legacy": Keyspace("legacy", master="h1"),
        },
        default="h1",
    )  # fmt: skip


SCHEMA = Schema(
    1,
    {"demo": Database("demo", tables={"pins": PINS, "names": NAMES}), "legacy": Database("legacy", "legacy")},
)

COLLATIONS = Collations(
    {
        45: ("utf8mb4", "utf8mb4_general_ci"),
        46: ("utf8mb4", "utf8mb4_bin"),
        8: ("latin1", "latin1_swedish_ci"),
    },
    {"utf8mb4": "utf8mb4_general_ci", "latin1": "latin1_swedish_ci"},
)


def place() -> World:
    """A world with all that built-in statements ask for."""
    return World(topology=topology(), schema=SCHEMA, collations=COLLATIONS)


def text(sql: str) -> Template:
    return Template((sql.encode(),))


def assign(
    scope: str, name: str, value: str | None, *, collate: str | None = None, constant: bool = True
) -> Assignment:
    return Assignment(
        scope=SetScope(scope), name=name, value=None if value is None else text(value),
        collate=None if collate is None else text(collate), constant=constant,
    )  # fmt: skip


def run(plan: Builtin) -> Any:
    """What the proxy makes of a built-in statement, for `Client.ask`."""

    def runs(client: ClientConnection) -> None:
        run_builtin(client, plan, ())

    return runs


def set_variables(*assignments: Assignment) -> Any:
    """SET, for `Client.ask`."""
    return run(SetVariables(assignments=assignments))
