"""Which statements a cache may answer, and which must invalidate what is in it.

Called for each plan that was made, while the schema has tables with a cache. A read is only taken from a
cache when it is proved that the answer depends on the rows of one ID and on nothing else; of a write, when it
is not seen which rows it changes, the shards or the whole table are taken for changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from config.schema import Kind, Table

from .plan import Access, Plan
from .plans import (
    Ddl,
    Everywhere,
    Gather,
    Insert,
    LoadLocal,
    MultiStatement,
    OneHost,
    Opened,
    Physical,
    ReadThenWrite,
    Reject,
    Reorder,
    SetStatement,
    ShardSelect,
    ShardWrite,
    SystemViews,
)
from .plans.builtins import Builtin, SetVariables
from .plans.cached import as_cached, as_touching
from .plans.variants import by_variant
from .reads.pure import NARROWING
from .route.context import Statement
from .route.routing import Comparison, Route
from .sql.statements.effects import Effects
from .text.aggregates import AGGREGATES
from .text.facts import Block
from .text.parse import Parser
from .text.tokens import HINT, SYSTEM, VARIABLE, WORD, Source
from .touched import CachedTable

_PURE: Final = (NARROWING | AGGREGATES) - {"DATE", "DAY", "DAYOFMONTH", "MONTH", "YEAR"}
"""What may stand before a parenthesis: each gives the same for the same rows, today and tomorrow. (The date
of a TIME is today's.)
"""

_VARYING: Final = frozenset(
    {"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_USER", "CURRENT_ROLE", "LOCALTIME"}
    | {"LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "NEXT", "PREVIOUS", "SYSDATE"}
    | {"ROWNUM", "NEXTVAL", "CURRVAL", "TIME", "ROLLUP", "SQL_NO_CACHE"}
)
"""Words that give something else each time, without a parenthesis, too. And ROLLUP, which makes rows of which
each is taken for an ID's.
"""


def with_caches(statement: Statement, plan: Plan) -> Plan:
    """The plan, as one that a cache may answer, or that touches what is in caches."""
    return _WITH_CACHES[plan.__class__](statement, plan)


def _named(cached: tuple[Table, ...], names: tuple[str, ...]) -> tuple[CachedTable, ...]:
    found = (CachedTable.of(table) for table in cached)
    return tuple(one for one in found if one is not None and one.name in names)


def _runs_code(effects: Effects | None) -> bool:
    """Whether a statement may run what the proxy does not read: a procedure, a prepared text, a function."""
    return effects is not None and (effects.routine or bool(effects.calls))


def _changes(plan: Plan) -> bool:
    return plan.access > Access.READ or plan.listed_access > Access.READ or plan.implicit_commit


def _has_word(source: Source, *words: str) -> bool:
    return any(token.kind == WORD and token.text in words for token in source.tokens)


def _unseen(statement: Statement) -> bool:
    """DROP DATABASE and its like, wherever it is; XA COMMIT, of what another session may have written; and
    CREATE TABLE … SELECT, which may call functions.
    """
    source = statement.source
    if source.is_word(0, "XA"):
        return source.is_word(1, "COMMIT")
    if source.is_word(0, "CREATE"):
        return _has_word(source, "SELECT") and not source.is_word(1, "VIEW")
    return source.is_word(0, "DROP", "ALTER") and source.is_word(1, "DATABASE", "SCHEMA")


# -- writes


def _as_it_is(statement: Statement, plan: Plan) -> Plan:
    """The plan, which changes nothing, or runs further statements that come here by themselves."""
    del statement
    return plan


def _other(statement: Statement, plan: Plan) -> Plan:
    """The plan of a statement that changes rows in caches only by code that it runs."""
    if _runs_code(plan.effects) or _unseen(statement):
        return as_touching(plan, _every(statement))
    return plan


def _load(statement: Statement, plan: LoadLocal) -> Plan:
    found = _other(statement, plan)
    if found is not plan:
        return found
    keyspaces = {keyspace for keyspace, _ in plan.statement.named_places}
    touched = tuple(table for table in _every(statement) if table.keyspace in keyspaces)
    return as_touching(plan, touched) if touched else plan


def _physical(statement: Statement, plan: Physical) -> Plan:
    found = _other(statement, plan)
    if found is not plan or not _changes(plan):
        return found
    keyspaces = {keyspace for keyspace, shard in plan.locations if shard is not None}
    touched = tuple(table for table in _every(statement) if table.keyspace in keyspaces)
    return as_touching(plan, touched, "places") if touched else plan


def _define(statement: Statement, plan: Ddl) -> Plan:
    touched = _named(statement.names.schema.cached, plan.tables)
    return as_touching(plan, touched) if touched else plan


def _every(statement: Statement) -> tuple[CachedTable, ...]:
    """All tables with a cache."""
    tables = map(CachedTable.of, statement.names.schema.cached)
    return tuple(table for table in tables if table is not None)


def _change(statement: Statement, plan: ShardWrite) -> Plan:
    touched = _named(statement.names.schema.cached, plan.tables)
    if not touched:
        return plan
    if plan.unrouted:
        return as_touching(plan, touched)
    comparison = _own_comparison(statement, plan) if len(plan.tables) == 1 else None
    by_groups = comparison is not None and not _has_word(statement.source, "SELECT", "JOIN")
    return as_touching(plan, touched, "groups" if by_groups else "shards", comparison)


def _own_comparison(statement: Statement, plan: ShardSelect | ShardWrite) -> Comparison | None:
    """The comparison that the IDs of all rows are in which the statement is about; None: it is not seen. The
    table is the only one.
    """
    routing = plan.routing
    if len(routing.routes) != 1 or routing.routes[0].kind != "in":
        return None
    comparison = routing.comparisons[routing.routes[0].index]
    table = _table(statement, plan.tables[0])
    if table is None or comparison.key.takes_text:
        return None
    if table.kind is Kind.OBJECT:
        own = comparison.key.rule == "object" and comparison.key.type == table.type
    else:
        own = table.kind is Kind.MAPPING and comparison.key.rule == "id"
    return comparison if own else None


def _table(statement: Statement, name: str) -> Table | None:
    return statement.names.schema.table(*name.split(".", 1))


def _insert(statement: Statement, plan: Insert) -> Plan:
    """A new object has an ID of its own, of which nothing is kept: answers without rows are not. A new row of
    a list changes the list.
    """
    touched = _named(statement.names.schema.cached, plan.tables)
    table = _table(statement, plan.table)
    if not touched or table is None:
        return plan
    replaces = statement.source.is_word(0, "REPLACE") or _has_word(statement.source, "DUPLICATE")
    if table.kind is Kind.OBJECT:
        return as_touching(plan, touched) if replaces else plan
    if table.per_shard and replaces:  # a row of another list may be the one that is in the way
        return as_touching(plan, touched)
    return as_touching(plan, touched, "rows")


# -- reads


def _read(statement: Statement, plan: ShardSelect) -> Plan:
    """The plan as one that a cache may answer, if it may."""
    if plan.effects is not None or plan.sample or any(slot[0] != "?" for slot in plan.session_slots):
        return plan
    if len(plan.tables) != 1 or plan.access is not Access.READ or plan.routing.routes != (Route("in", 0),):
        return plan
    table = _table(statement, plan.tables[0])
    found = CachedTable.of(table) if table is not None else None
    comparison = _own_comparison(statement, plan)
    if table is None or found is None or comparison is None:
        return plan
    source = statement.source
    aggregates = any(token.kind == WORD and token.text in AGGREGATES for token in source.tokens)
    objects = table.kind is Kind.OBJECT
    if (objects and aggregates) or not _fixed(source) or not _one_table(source):
        return plan
    if any(column.type.kind == "time" for column in table.columns):
        return plan  # compared with a date, a time is today's
    columns = repr([(column.name, column.definition) for column in table.columns]).encode()
    return as_cached(plan, found, comparison, empty=not objects, columns=columns)


def _one_table(source: Source) -> bool:
    """Whether the query is one SELECT of one table."""
    parser = Parser(source)
    query = parser.query(None)
    block: Block | None = query.single()
    if block is None or len(block.tables) != 1 or block.queries or block.tables[0].form != "table":
        return False
    return block.lock is None and block.into is None and block.odd is None and query.tail is None


def _fixed(source: Source) -> bool:
    """Whether the answer depends on the rows, and on nothing else but the session's settings."""
    for at, token in enumerate(source.tokens):
        if token.kind in (VARIABLE, SYSTEM, HINT) or token.text == "{":
            return False
        if token.text == "?" and at not in source.marks:
            return False
        if token.kind == WORD and token.text in _VARYING:
            return False
        if source.is_op(at + 1, "(") and source.is_name(at) and not source.is_word(at, *_PURE):
            return False
    return True


_WITH_CACHES: Final[Mapping[type[Plan], Callable[[Statement, Any], Plan]]] = by_variant(
    {
        ShardSelect: _read,
        ShardWrite: _change,
        Insert: _insert,
        Ddl: _define,
        LoadLocal: _load,
        Physical: _physical,
        OneHost: _other,
        SystemViews: _as_it_is,
        Everywhere: _other,
        SetVariables: _other,
        Builtin: _as_it_is,
        Gather: _as_it_is,
        ReadThenWrite: _as_it_is,
        Reorder: _as_it_is,
        Opened: _as_it_is,
        SetStatement: _as_it_is,
        MultiStatement: _as_it_is,
        Reject: _as_it_is,
    }
)
