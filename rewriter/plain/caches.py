"""FLUSH CACHE FOR table [id, …]."""

from __future__ import annotations

from rewriter.plan import Plan
from rewriter.plans.cached import FlushCache
from rewriter.route.context import Statement
from rewriter.route.scope import Refuse
from rewriter.text.facts import Span, TableRef
from rewriter.touched import CachedTable

from .builtins import Texts, Words


def flush_cache(statement: Statement) -> Plan | None:
    """What writes past the proxies have made old is to be read again. Raises Unreadable and Refuse."""
    words = Words(statement.source)
    if not words.take("FLUSH", "CACHE", "FOR"):
        return None
    database, name = None, words.name()
    if words.op("."):
        database, name = name, words.name()
    target = statement.names.target(TableRef("table", Span(0, 0), name, database))
    cached = CachedTable.of(target.table) if target.table is not None else None
    if cached is None:
        raise Refuse("no_cache", table=f"{target.database}.{name}")
    if words.done:
        return FlushCache(databases=(target.database,), cached=cached)
    texts = Texts(statement)
    opened = words.op("(")
    end = len(statement.source.tokens) - opened
    groups = texts.template(words.at, end)
    return FlushCache(
        databases=(target.database,), cached=cached, groups=groups, session_slots=tuple(texts.slots.names)
    )
