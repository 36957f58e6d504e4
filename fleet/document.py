"""Edits of the topology's document, as plain values: what is not touched stays as it was written."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from config.document import parse
from config.ranges import Runs, joined, outside
from fleet.core.errors import Refused

Document = dict[str, Any]

_DROPPED = "dropped_shards"


def read_document(content: bytes) -> Document:
    """The document as plain values. ConfigError, Refused."""
    value = parse(content).value
    if not isinstance(value, dict) or not isinstance(value.get("keyspaces"), dict):
        raise Refused("the topology is no mapping with keyspaces")
    return value


def written(document: Mapping[str, Any]) -> bytes:
    """As it is published: JSON, which is YAML, too."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def with_range(
    document: Document, keyspace: str, first: int, last: int, fields: Mapping[str, Any]
) -> Document:
    """The next version, with a range of its own for the shards `first` to `last`: `fields` over those that it
    had, None for none. Ranges that hold some of the shards are cut.
    """
    made = copy.deepcopy(document)
    made["version"] = int(document["version"]) + 1
    own = made["keyspaces"][keyspace]
    listed = list(own["ranges"].values()) if isinstance(own["ranges"], dict) else own["ranges"]
    ranges: list[Document] = []
    held: Document = {}
    for one in listed:
        start, end = one["range"]
        if end < first or start > last:
            ranges.append(one)
            continue
        held = one
        if start < first:
            ranges.append(one | {"range": [start, first - 1]})
        if end > last:
            ranges.append(one | {"range": [last + 1, end]})
    changed = held | {"range": [first, last]} | dict(fields)
    ranges.append({name: value for name, value in changed.items() if value is not None})
    own["ranges"] = sorted(ranges, key=lambda one: int(one["range"][0]))
    _drop(made, keyspace, outside(_dropped(made, keyspace), ((first, last),)))
    return made


def without_range(document: Document, keyspace: str, first: int, last: int) -> Document:
    """The next version, without the range of just these shards, which are listed as dropped."""
    made = copy.deepcopy(document)
    made["version"] = int(document["version"]) + 1
    own = made["keyspaces"][keyspace]
    listed = list(own["ranges"].values()) if isinstance(own["ranges"], dict) else own["ranges"]
    own["ranges"] = [one for one in listed if one["range"] != [first, last]]
    return with_dropped(made, {keyspace: ((first, last),)})


def with_dropped(document: Document, runs: Mapping[str, Runs]) -> Document:
    """The same version, in which these shards, too, are listed as dropped."""
    made = copy.deepcopy(document)
    for keyspace, some in runs.items():
        _drop(made, keyspace, joined((*_dropped(made, keyspace), *some)))
    return made


def _dropped(document: Document, keyspace: str) -> Runs:
    """The shards of a keyspace that are listed as dropped."""
    return joined((first, last) for first, last in (document.get(_DROPPED) or {}).get(keyspace) or ())


def _drop(document: Document, keyspace: str, runs: Runs) -> None:
    """List just these shards of a keyspace as dropped."""
    listed = dict(document.get(_DROPPED) or {})
    listed[keyspace] = [[first, last] for first, last in runs]
    document[_DROPPED] = {name: some for name, some in listed.items() if some}
    if not document[_DROPPED]:
        del document[_DROPPED]
