"""Documents that are wrong anywhere: only placed problems, in this program's own words."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.document import Document, Problem, dotted, from_value, parse
from config.load import ConfigError, load_settings
from config.read_schema import read_schema
from config.read_topology import read_topology
from tests.config.test_read_schema import DEMO
from tests.config.test_settings import LEAST

TOPOLOGY = """
version: 1
default: {master: a, slave: b}
layouts: {own: {fields: [{shard: 28}, {local: 36}]}}
keyspaces:
  a: {layout: own, database: "a{shard}", ranges: {one: {range: [0, 1], master: a, slave: b}}}
  b: {hash: md5, shards: 4, database: "b{shard}", ranges: [{range: [0, 3], master: a, state: frozen}]}
  c: {master: a, slave: b}
"""


def settings(document: Document) -> None:
    try:
        load_settings(document.value, base=Path("/base"))  # type: ignore[arg-type]
    except ConfigError as error:
        document.problems += error.problems


WRONG: list[Any] = [
    None,
    [],
    {},
    [None],
    [{}],
    {"a": 1},
    {"[key]": {}},
    "",
    "x",
    "a b",
    -1,
    1.5,
    10**30,
    True,
]
DOCUMENTS = [(DEMO, read_schema), (TOPOLOGY, read_topology), (LEAST, settings)]
FOREIGN = re.compile(r"Input|String should|valid|dictionary|union|discriminator|\(list\)|\(mapping\)|ctx")


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@pytest.mark.parametrize(("text", "read"), DOCUMENTS, ids=["schema", "topology", "settings"])
def test_any_node_may_be_wrong(text: Any, read: Any) -> None:
    good = text if isinstance(text, dict) else parse(text).value
    read(found := from_value(good))
    assert found.problems == []
    for *outer, last in paths(good):
        for wrong in WRONG:
            value: Any = copy.deepcopy(good)
            holder = value
            for part in outer:
                holder = holder[part]
            holder[last] = wrong
            read(document := from_value(value))
            texts = [str(one) for one in document.problems]
            assert not any(FOREIGN.search(one.message) for one in document.problems), texts
            assert all(one.place for one in document.problems), texts


def test_a_wrong_value_is_told_once_and_keeps_nothing_else_from_being_found() -> None:
    document = parse(
        """
        databases:
          "a b":
            tables:
              t: {kind: object, keyspace: 5, type: many, columns: {data: JSON, c: INT AUTO_INCREMENT}}
              "u v": {kind: hashed, keyspace: l, colums: 1, columns: {c: 5, "d d": VARCHR(2)}}
        """
    )
    assert read_schema(document) is None
    inside = "databases.a b.tables"
    assert sorted(one.place.partition(" (line")[0] for one in document.problems) == sorted(
        [
            "databases.a b",
            f"{inside}.t.columns.c",
            f"{inside}.t.keyspace",
            f"{inside}.t.type",
            f"{inside}.u v",
            f"{inside}.u v",
            f"{inside}.u v.colums",
            f"{inside}.u v.columns.c",
            f"{inside}.u v.columns.d d",
            f"{inside}.u v.columns.d d",
        ]
    ), list(map(str, document.problems))


def test_anchors_are_what_they_stand_for_and_double_keys_are_told() -> None:
    document = parse("databases: {a: &a {keyspace: g}, b: *a, b: {keyspace: h}, c: {<<: *a}}")
    read_schema(document)
    assert document.problems[0] == Problem("databases.b (line 1)", "is already given in line 1")
    assert [one.place for one in document.problems[1:]] == ["databases.c.<< (line 1)", "databases.c (line 1)"]
    assert dotted(("databases", "c")) in str(document.problems[2])


def test_many_wrong_values_are_all_told() -> None:
    tables = {f"t{number}": {"kind": "x", "keyspace": number, "more": 1} for number in range(300)}
    document = parse(yaml.safe_dump({"databases": {"d": {"tables": tables}}}))
    assert read_schema(document) is None
    assert len(document.problems) == 900
