"""Definitions of tables, looked at for keys: what cannot hold over shards is refused, an object table's
`local_id` counts by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.definitions import Found, Key, Reference, key_parts, read_column, read_element
from config.keys import ORMS, is_sharded, key_holds, may_count, reference_holds, routes_of
from config.schema import Kind, Table
from config.sqltext import SqlToken
from rewriter.route.context import Statement
from rewriter.route.scope import Refuse, Unsupported
from rewriter.text.edits import Edits
from rewriter.text.facts import Span
from rewriter.text.tokens import HEX, INTEGER, NAME, NUMBER, OPERATOR, STRING, WORD, Source

_KINDS: Final = {
    WORD: "word",
    NAME: "name",
    STRING: "string",
    OPERATOR: "op",
    INTEGER: "number",
    HEX: "number",
    NUMBER: "number",
}
_OF_TYPE: Final = ("UNSIGNED", "SIGNED", "ZEROFILL")
_KEYS: Final = ("PRIMARY", "UNIQUE", "INDEX", "KEY", "CONSTRAINT", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK")


def check_keys(statement: Statement, span: Span, table: Table) -> None:
    """Refuse what the definition of `table`, whose name is `span`, cannot promise. Raises Refuse."""
    for found in _elements(statement.source, span):
        for reference in found.references:
            _check_reference(statement, table, reference)
        for key in found.keys:
            if not key_holds(table, key):
                raise _of_key(table, key)
        if found.counts and found.column is not None and not may_count(table, found.column):
            declared = f"{{{found.column.lower()}: per_shard}}"
            raise Refuse("auto_increment_per_shard", column=found.column, table=table.name, declared=declared)


def _check_reference(statement: Statement, table: Table, reference: Reference) -> None:
    name = reference.table
    database = statement.names.schema.databases.get(reference.database or table.database)
    other = database.tables.get(name) if database is not None else None
    if database is not None and other is None and database.others is not None and not is_sharded(table):
        others = database.others
        other = Table(database.name, name, Kind.SINGLE, others) if others == table.keyspace else None
    if name == table.name and reference.database in (None, table.database):
        other = table
    if not reference_holds(table, other, reference):
        columns, wanted = ", ".join(reference.columns), ", ".join(reference.wanted)
        raise Refuse("foreign_key_over_shards", columns=columns, table=name, wanted=wanted, orms=ORMS)


def _of_key(table: Table, key: Key) -> Refuse:
    routes = ["id" if name == "local_id" else name for name in routes_of(table)]
    listed = ", ".join(name for name in key.columns if name)
    declared = f"{{'{listed}': per_shard}}" if "" not in key.columns else "per_shard"
    return Refuse(
        "unique_per_shard",
        key=str(key),
        table=table.name,
        columns=" or ".join(f"'{one}'" for one in routes),
        declared=declared,
    )


# --- the elements of a definition -----------------------------------------------------------------


def _elements(source: Source, span: Span) -> Iterator[Found]:
    """What CREATE TABLE, ALTER TABLE or CREATE INDEX says of columns and keys."""
    if source.is_word(0, "CREATE") and source.is_word(1, "TABLE"):
        if source.is_op(span.end, "("):
            yield from _listed(source, Span(span.end + 1, source.closing[span.end]))
    elif source.is_word(0, "CREATE"):
        unique = any(source.is_word(at, "UNIQUE") for at in range(1, span.first))
        opens = span.end
        while opens < len(source.tokens) and not source.is_op(opens, "("):
            opens += 1
        if unique and opens < len(source.tokens):
            inside = _tokens(source, Span(opens + 1, source.closing[opens]))
            yield Found(keys=(Key("unique", key_parts(inside)),))
    elif source.is_word(0, "ALTER"):
        for action in parts(source, Span(span.end, len(source.tokens))):
            yield from _action(source, action)


def _action(source: Source, span: Span) -> Iterator[Found]:
    """What one action of ALTER TABLE adds or changes."""
    at = span.first + 1
    if source.is_word(span.first, "ADD"):
        at += source.is_word(at, "COLUMN")
        while source.is_word(at, "IF", "NOT", "EXISTS"):
            at += 1
        if source.is_op(at, "("):
            yield from _listed(source, Span(at + 1, source.closing[at]))
        elif at < span.end:
            yield read_element(_tokens(source, Span(at, span.end)))
    elif source.is_word(span.first, "MODIFY", "CHANGE"):
        at += source.is_word(at, "COLUMN")
        while source.is_word(at, "IF", "EXISTS"):
            at += 1
        at += source.is_word(span.first, "CHANGE")
        if at < span.end:
            yield read_column(source.at(at).name, _tokens(source, Span(at + 1, span.end)))


def _listed(source: Source, span: Span) -> Iterator[Found]:
    for part in parts(source, span):
        if part.first < part.end:
            yield read_element(_tokens(source, part))


def parts(source: Source, span: Span) -> Iterator[Span]:
    """The parts of `span` between the commas that stand in no parentheses."""
    first = at = span.first
    while at < span.end:
        if source.is_op(at, ","):
            yield Span(first, at)
            first = at + 1
        at = source.closing.get(at, at) + 1
    yield Span(first, span.end)


def _tokens(source: Source, span: Span) -> list[SqlToken]:
    """The tokens of `span` as `config` reads them, without IF NOT EXISTS."""
    found = []
    for at in range(*span):
        exists = source.is_word(at, "EXISTS") and source.is_word(at - 1, "IF", "NOT")
        if exists or (source.is_word(at, "IF", "NOT") and source.is_word(at + 1, "EXISTS")):
            continue
        if source.is_word(at, "IF") and source.is_word(at + 1, "NOT") and source.is_word(at + 2, "EXISTS"):
            continue
        token = source.tokens[at]
        found.append(SqlToken(_KINDS.get(token.kind, "string"), token.name or token.text))
    return found


# --- an object table's own column -----------------------------------------------------------------


def count_local_id(statement: Statement, span: Span, table: Table, edits: Edits) -> None:
    """Give `local_id` (the client's `id`) of a CREATE TABLE the AUTO_INCREMENT, and the key, that it
    needs. Raises Refuse when its type has no room for local ids.
    """
    source = statement.source
    listed = list(parts(source, Span(span.end + 1, source.closing[span.end])))
    mine = next((one for one in listed if source.at(one.first).name.lower() in ("id", "local_id")), None)
    if mine is None or source.at(mine.first).text in _KEYS:
        return
    found = read_element(_tokens(source, mine))
    if not source.is_word(mine.first + 1, "BIGINT", "INT8", "SERIAL"):
        raise Unsupported(
            what=f"this CREATE TABLE of {table.database}.{table.name}",
            reason=f"'{source.at(mine.first).name}' is no BIGINT, and a local id has up to 36 bits",
            alternative="Make it BIGINT UNSIGNED (in an ORM: a big integer, BigAutoField).",
        )
    if found.counts:
        return
    at = mine.first + 1
    if source.is_op(at + 1, "("):
        at = source.closing[at + 1]
    while source.is_word(at + 1, *_OF_TYPE):
        at += 1
    keyed = bool(found.keys)
    for other in listed:
        for key in read_element(_tokens(source, other)).keys if other is not mine else ():
            keyed = keyed or key.columns[:1] in (("id",), ("local_id",))
    edits.insert_behind(at, b" AUTO_INCREMENT" if keyed else b" AUTO_INCREMENT PRIMARY KEY")
