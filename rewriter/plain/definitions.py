"""Definitions of tables, looked at for keys: what cannot hold over shards is refused, an object table's
`local_id` counts by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from config.definitions import Found, Key, Reference, is_column, read_column, read_element
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
    for element in elements(statement.source, span):
        found = element.found
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


class Element(NamedTuple):
    """A column or a key that a definition makes. `column`: the column's name, which stands at the token `at`;
    None for a key. `definition`: the tokens behind the column's name, or all of a key.
    """

    column: str | None
    at: int
    definition: list[SqlToken]

    @property
    def found(self) -> Found:
        """What it says of keys."""
        if self.column is None:
            return read_element(self.definition)
        return read_column(self.column, self.definition)


def elements(source: Source, span: Span, action: Span | None = None) -> Iterator[Element]:
    """What CREATE TABLE, ALTER TABLE or CREATE INDEX of the table that is named at `span` says of columns and
    keys; `action`: only this one of an ALTER TABLE.
    """
    if source.is_word(0, "CREATE") and source.is_word(1, "TABLE"):
        if source.is_op(span.end, "("):
            yield from _listed(source, Span(span.end + 1, source.closing[span.end]))
    elif source.is_word(0, "CREATE"):
        unique = any(source.is_word(at, "UNIQUE") for at in range(1, span.first))
        opens = span.end
        while opens < len(source.tokens) and not source.is_op(opens, "("):
            opens += 1
        if unique and opens < len(source.tokens):
            inside = _tokens(source, Span(opens, source.closing[opens] + 1))
            yield Element(None, opens, [SqlToken("word", "UNIQUE"), *inside])
    elif source.is_word(0, "ALTER"):
        for one in actions(source, span) if action is None else (action,):
            yield from _action(source, one)


def actions(source: Source, span: Span) -> Iterator[Span]:
    """The actions of an ALTER TABLE of the table that is named at `span`."""
    first = span.end
    while source.is_word(first, "WAIT", "NOWAIT"):
        first += 1 + source.is_word(first, "WAIT")
    return parts(source, Span(first, len(source.tokens)))


def _action(source: Source, span: Span) -> Iterator[Element]:
    """What one action of ALTER TABLE adds or changes."""
    at = span.first + 1
    if source.is_word(span.first, "ADD"):
        at += source.is_word(at, "COLUMN")
        at = _behind_exists(source, at)
        if source.is_op(at, "("):
            yield from _listed(source, Span(at + 1, source.closing[at]))
        elif at < span.end:
            yield _element(source, Span(at, span.end))
    elif source.is_word(span.first, "MODIFY", "CHANGE"):
        at += source.is_word(at, "COLUMN")
        at = _behind_exists(source, at)
        at += source.is_word(span.first, "CHANGE")
        if at < span.end:
            yield Element(source.at(at).name, at, _tokens(source, Span(at + 1, span.end)))


def _listed(source: Source, span: Span) -> Iterator[Element]:
    for part in parts(source, span):
        if part.first < part.end:
            yield _element(source, part)


def _element(source: Source, span: Span) -> Element:
    tokens = _tokens(source, span)
    if not is_column(tokens):
        return Element(None, span.first, tokens)
    at = _behind_exists(source, span.first)
    return Element(source.at(at).name, at, tokens[1:])


def _behind_exists(source: Source, at: int) -> int:
    while source.is_word(at, "IF", "NOT", "EXISTS"):
        at += 1
    return at


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


def query_of(source: Source, span: Span) -> int:
    """Where the query of CREATE TABLE … SELECT begins; the end when there is none."""
    at = span.end
    while at < len(source.tokens):
        if source.is_word(at, "SELECT", "WITH", "VALUES", "TABLE") and _begins_query(source, at):
            return at
        if source.is_op(at, "(") and source.is_word(at + 1, "SELECT", "WITH", "VALUES", "TABLE"):
            return at
        at = source.closing.get(at, at) + 1
    return len(source.tokens)


def _begins_query(source: Source, at: int) -> bool:
    """Whether the word there begins a query: WITH SYSTEM VERSIONING and VALUES LESS THAN do not."""
    if source.is_word(at, "WITH"):
        return not source.is_word(at + 1, "SYSTEM", "PARSER")
    return not source.is_word(at + 1, "LESS", "IN")  # of a partition


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
