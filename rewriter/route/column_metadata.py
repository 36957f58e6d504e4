"""Where result columns come from, as a client must see it.

A server names its own databases in column definitions, and knows no origin of the virtual `id`, which is an
expression there. Drivers show the origins, and make updates of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rewriter.text.facts import Block, Projection, Query
from rewriter.text.spans import unwrapped
from rewriter.text.written import encoded

from .scope import Scope, chain_at
from .values import slot_at

_VALUES: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "LOCALTIME", "LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP"}
    | {"CURRENT_DATE", "CURRENT_ROLE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER"}
)
"""Words that are expressions by themselves: no columns, unless they are quoted."""


class Virtual(NamedTuple):
    """A result column that is the virtual `id`: its name, and its table's name in the statement, its own name
    and its database.
    """

    label: bytes
    table: bytes
    stored: bytes
    database: bytes


class ColumnMetadata:
    """Tables' logical databases by stored name, and the virtual columns by their number among the result
    columns that have no origin. `headers` is for who runs the plan, to remember what became of definitions:
    by the variant of the connection, as each tells them in its way.
    """

    __slots__ = ("databases", "headers", "virtual")

    def __init__(self, databases: Mapping[bytes, bytes], virtual: Mapping[int, Virtual]) -> None:
        self.databases = databases
        self.virtual = virtual
        self.headers: dict[int, Any] = {}


def column_metadata_of(query: Query, scope: Scope) -> ColumnMetadata:
    """The origins of a query on sharded tables."""
    databases: dict[bytes, bytes] = {}
    for ref in scope.sharded():
        databases.setdefault(_bytes(ref.name), _bytes(scope.targets[ref].database))
    block = query.single()
    if block is None or any(ref.form != "table" for ref in block.tables):
        return ColumnMetadata(databases, {})
    return ColumnMetadata(databases, _virtual(block, scope))


def unsharded_column_metadata(scope: Scope) -> ColumnMetadata | None:
    """The origins of a query on one host; None where its databases have their own names there."""
    targets = [(ref, target) for ref, target in scope.targets.items() if target.form != "inner"]
    if all(target.form != "single" or target.physical == _bytes(target.database) for _, target in targets):
        return None
    databases: dict[bytes, bytes] = {}
    for ref, target in targets:
        if databases.setdefault(_bytes(ref.name), _bytes(target.database)) != _bytes(target.database):
            return None  # tables of one name: a definition does not say which of them it means
    return ColumnMetadata(databases, {})


def _virtual(block: Block, scope: Scope) -> dict[int, Virtual]:
    found: dict[int, Virtual] = {}
    expressions = 0
    for projection in block.projections:
        if projection.star:
            for ref in scope.starred(block, projection):
                if scope.targets[ref].is_object:
                    database = _bytes(scope.targets[ref].database)
                    found[expressions] = Virtual(b"id", _bytes(ref.label), _bytes(ref.name), database)
                    expressions += 1
            continue
        virtual = _virtual_id(projection, block, scope)
        if virtual is not None:
            found[expressions] = virtual
        if virtual is not None or not _is_column(projection, scope):
            expressions += 1
    return found


def _is_column(projection: Projection, scope: Scope) -> bool:
    span = unwrapped(scope.source, projection.span)  # a server forgets parentheses
    chain = chain_at(scope.source, span.first)
    if chain is None or chain.end != span.end or slot_at(scope.source, chain.first) is not None:
        return False
    return not scope.source.is_word(span.first, *_VALUES) or len(chain.parts) > 1


def _virtual_id(projection: Projection, block: Block, scope: Scope) -> Virtual | None:
    span = unwrapped(scope.source, projection.span)
    chain = chain_at(scope.source, span.first)
    if chain is None or chain.end != span.end or chain.column != "ID":
        return None
    ref = scope.table_of(chain, block)
    target = None if ref is None else scope.targets[ref]
    if ref is None or target is None or not target.is_object:
        return None
    label = _bytes(chain.parts[-1] if projection.alias is None else projection.alias)
    return Virtual(label, _bytes(ref.label), _bytes(ref.name), _bytes(target.database))


def _bytes(name: str) -> bytes:
    return encoded(name)
