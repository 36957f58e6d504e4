"""A small world for the rewriter: the demo's schema over four shards on two hosts, a and b."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from rewriter.planner import Rewriter
from rewriter.plans import Bound, Env, Plan

SHARDS = 4
SCHEMA_MODEL = load_schema(SCHEMA)
TOPOLOGY = load_topology(topology_document(SHARDS, [("a:3306", None), ("b:3306", None)]), schema=SCHEMA_MODEL)
LAYOUT = TOPOLOGY.keyspaces["main"].layout
TYPES = {"pins": 1, "boards": 2, "users": 3, "comments": 4}

SLOTS: Mapping[str, bytes] = {
    "LAST_INSERT_ID()": b"70437463654407",
    "DATABASE()": b"'demo'",
    "CONNECTION_ID()": b"11",
    "USER()": b"'demo@localhost'",
    "CURRENT_USER()": b"'demo@%'",
    "@pin": b"70437463654407",
    "@word": b"'word'",
    "@nothing": b"NULL",
}


def new_id(table: str, shard: int, local: int) -> int:
    """The ID of a row of one of the demo's object tables."""
    assert LAYOUT is not None
    return LAYOUT.compose(shard=shard, type=TYPES[table], local=local)


def expand(text: str) -> str:
    """`<pins 2 77>` becomes the ID of row 77 of pins on shard 2."""
    return re.sub(
        r"<(\w+) (\d+) (\d+)>", lambda found: str(new_id(found[1], int(found[2]), int(found[3]))), text
    )


def contract(text: str) -> str:
    """IDs and Ks in `text` as in `expand`; a K is `<K pins 2>`."""

    def name(found: re.Match[str]) -> str:
        number = int(found[0])
        assert LAYOUT is not None
        shard = LAYOUT.shard_of(number)
        table = {type_: table for table, type_ in TYPES.items()}.get(number >> 36 & 0x3FF)
        if shard is None or table is None or number >> 62 or shard >= SHARDS:
            return found[0]
        local = number & LAYOUT.local_mask
        return f"<{table} {shard} {local}>" if local else f"<K {table} {shard}>"

    return re.sub(r"(?<![\w.-])\d{11,19}(?!\w)", name, text)


def first(shards: Sequence[int]) -> int:
    return shards[0]


def rewriter() -> Rewriter:
    return Rewriter(SCHEMA_MODEL, TOPOLOGY)


def values_of(
    plan: Plan, literals: tuple[bytes, ...], slots: Mapping[str, bytes] = SLOTS
) -> tuple[bytes, ...]:
    return literals + tuple(slots.get(name, b"NULL") for name in plan.session_slots)


def bind(sql: str | bytes, env: Env | None = None, **changes: Any) -> Bound:
    """Plan and bind one statement in database demo."""
    text = sql.encode() if isinstance(sql, str) else sql
    plan, literals = rewriter().plan(text, env or Env(database="demo", **changes))
    return plan.bind(values_of(plan, literals), TOPOLOGY, first)


def shards_of(bound: Bound) -> list[int]:
    return sorted(shard for statement in bound.statements for shard in statement.shards)
