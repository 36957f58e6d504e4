"""Planning definitions of the schema's tables, which all shards run: ALTER TABLE, indexes, TRUNCATE."""

from __future__ import annotations

from typing import Final

from config.schema import KeyType, Kind, Table
from rewriter.plan import Access, Plan, Reject
from rewriter.plans import Ddl
from rewriter.plans.builtins import Empty
from rewriter.route.context import Statement, not_yet
from rewriter.route.scope import Refuse, Target, Unsupported
from rewriter.splice import Part
from rewriter.sql.statements.forms import Objects
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import Source, quote_name

from .definitions import check_keys, count_local_id
from .single import define_single, rename
from .unsharded import Text

_BEFORE_INDEX: Final = ("OR", "REPLACE", "UNIQUE", "FULLTEXT", "SPATIAL")
_EXACT: Final = ("UTF8MB4_0900_BIN", "UTF8MB4_NOPAD_BIN")
_RENAMING: Final = "Rename it shard by shard, by their databases' names, and then in the schema."
_MOVING: Final = ("DROP", "CHANGE", "MODIFY", "RENAME", "ALTER", "COLUMN", "TO")


def define(statement: Statement) -> Plan | None:
    """The rule for definitions of one table that the schema names. Raises Refuse."""
    source = statement.source
    span = _table(source)
    if span is None:
        return rename(statement)
    database = source.tokens[span.first].name if span.end - span.first > 1 else None
    ref = TableRef("table", span, source.tokens[span.end - 1].name, database)
    try:
        target = statement.names.target(ref)
    except Refuse as refusal:
        found = _unknown(source, refusal)
        if found is None:
            raise
        return found
    if target.table is None:
        return None
    verb = source.tokens[0].text
    check_keys(statement, span, target.table)
    if target.table.kind is Kind.SINGLE:
        return define_single(statement, span, target)
    if statement.form.objects is Objects.TABLES and source.is_op(span.end, ","):
        raise _refused(source, target.table, "it names several tables", "Name them one by one.")
    if source.is_word(0, "CREATE") and source.is_word(1, "TABLE"):
        _check_created(source, span, target.table)
    else:
        _check(source, span, target.table)
    return _everywhere(statement, span, target, verb)


def _unknown(source: Source, refusal: Refuse) -> Plan | None:
    """The plan of CREATE or DROP of a table that the schema does not name; None for anything else."""
    if refusal.error != "unknown_table" or not source.is_word(1, "TABLE", "TABLES"):
        return None
    if source.is_word(0, "CREATE"):
        name = ".".join(refusal.arguments.values())
        database = refusal.arguments["database"]
        alternative = (
            f"Add it to the schema, or give the database {database} `others: {{keyspace: …}}` there."
        )
        return not_yet("CREATE TABLE", f"the schema does not name {name}", alternative)
    if source.is_word(0, "DROP"):
        if any(token.text == "," for token in source.tokens):  # others of them may be there
            return not_yet(
                "DROP TABLE of several tables", "one is not in the schema", "Name them one by one."
            )
        if source.is_word(2, "IF"):
            return Empty(access=Access.ADMIN)
        return Reject(error="unknown_dropped", arguments=refusal.arguments)
    return None


def _everywhere(statement: Statement, span: Span, target: Target, verb: str) -> Plan:
    source = statement.source
    table = target.table
    assert table is not None
    text = Text(statement)
    sharded = table.kind is not Kind.REFERENCE
    name = source.text(span.end - 1, span.end)
    prefix: tuple[Part, ...] = (b"`", text.slots.end, b"`.")
    text.edits.replace(span, *(prefix if sharded else (quote_name(target.physical.decode()), b".")), name)
    if table.kind is Kind.OBJECT and source.is_word(0, "CREATE") and source.is_word(1, "TABLE"):
        for at in range(span.end, len(source.tokens)):  # where a column's definition begins, or in a key
            named = source.is_name(at) and source.at(at).name.lower() == "id"
            if named and source.is_op(at - 1, "(", ",") and not source.is_op(at + 1, "("):
                text.edits.replace(Span(at, at + 1), b"`local_id`")
        count_local_id(statement, span, table, text.edits)
    elif table.kind is Kind.OBJECT:
        for at in range(span.end, len(source.tokens)):
            if source.is_word(at, "AFTER") and source.at(at + 1).name.lower() == "id":
                text.edits.replace(Span(at + 1, at + 2), b"local_id")
    return Ddl(
        verb=verb,
        session_slots=tuple(text.slots.names),
        databases=(target.database,),
        keyspace=table.keyspace if sharded else "",
        table=f"{target.database}.{table.name}",
        template=text.edits.template(),
    )


def _table(source: Source) -> Span | None:
    """The name of the table that is defined; None for other statements."""
    at = 1
    if source.is_word(0, "TRUNCATE"):
        at += source.is_word(1, "TABLE")
    elif (source.is_word(0, "DROP") and source.is_word(1, "TABLE", "TABLES")) or (
        source.is_word(0, "CREATE") and source.is_word(1, "TABLE")
    ):
        at = _behind_exists(source, 2)
    elif source.is_word(0, "ALTER"):
        while source.is_word(at, "ONLINE", "IGNORE"):
            at += 1
        if not source.is_word(at, "TABLE"):
            return None
        at = _behind_exists(source, at + 1)
    elif source.is_word(0, "CREATE", "DROP"):
        while source.is_word(at, *_BEFORE_INDEX):
            at += 1
        if not source.is_word(at, "INDEX"):
            return None
        at = _behind_exists(source, at + 1)
        while at < len(source.tokens) and not source.is_word(at, "ON"):
            at += 1
        at += 1
    else:
        return None
    if not source.is_name(at):
        return None
    qualified = source.is_op(at + 1, ".") and source.is_name(at + 2)
    return Span(at, at + 3 if qualified else at + 1)


def _behind_exists(source: Source, at: int) -> int:
    while source.is_word(at, "IF", "NOT", "EXISTS"):
        at += 1
    return at


def _check(source: Source, span: Span, table: Table) -> None:
    """Refuse what would take a table's rows or its routing away. Raises Refuse."""
    routes = (table.routing, table.shard_key, table.to_column, table.strict)
    fixed = {name.lower() for name in routes if name}
    if table.kind is Kind.OBJECT:
        fixed |= {"id", "local_id"}
    for at in range(span.end, len(source.tokens)):
        if source.is_word(at, "RENAME") and not source.is_word(at + 1, "COLUMN", "INDEX", "KEY"):
            raise _refused(source, table, "the schema names the table", _RENAMING)
        if not source.is_name(at) or source.at(at).name.lower() not in fixed:
            continue
        if source.is_word(at - 1, *_MOVING) or source.is_word(at - 1, "EXISTS"):
            reason = f"'{source.at(at).name}' says on which shard a row is"
            raise _refused(source, table, reason, "Leave that column as it is.")
        virtual = table.kind is Kind.OBJECT and source.at(at).name.lower() == "id"
        if virtual and not source.is_word(at - 1, "AFTER"):
            raise _refused(source, table, "`id` is not stored", "Write local_id.")


def _check_created(source: Source, span: Span, table: Table) -> None:
    """Refuse a CREATE TABLE without the columns that route, or that is none of columns. Raises Refuse."""
    if not source.is_op(span.end, "("):
        raise _refused(source, table, "its columns are not written out", "Write them.")
    close = source.closing[span.end]
    names = {source.at(span.end + 1).name.lower()}
    at = span.end + 1
    while at < close:
        if source.is_op(at, ","):
            names.add(source.at(at + 1).name.lower())
        at = source.closing.get(at, at) + 1
    strict = {table.strict.lower()} if table.strict is not None else set()
    wanted = {name.lower() for name in (table.routing, table.shard_key, table.to_column) if name} | strict
    if table.kind is Kind.OBJECT and "local_id" in names:
        wanted = {"local_id"} | strict
    if wanted - names:
        missing = ", ".join(sorted(wanted - names))
        raise _refused(source, table, f"the schema's column {missing} is missing", "Give it that column.")
    text_key = table.kind is Kind.HASHED and table.key_type is KeyType.TEXT
    if text_key and not any(source.is_word(at, *_EXACT) for at in range(span.end, close)):
        reason = f"texts in '{table.routing}' must be equal only when their bytes are"
        raise _refused(source, table, reason, "Give it the collation utf8mb4_0900_bin or utf8mb4_nopad_bin.")
    if any(source.is_word(at, "SELECT", "LIKE") for at in range(close, len(source.tokens))):
        raise _refused(source, table, "its rows come from a SELECT", "CREATE it, then INSERT … SELECT.")


def _refused(source: Source, table: Table, reason: str, alternative: str) -> Refuse:
    what = f"this {source.tokens[0].text} of {table.database}.{table.name}"
    return Unsupported(what=what, reason=reason, alternative=alternative)
