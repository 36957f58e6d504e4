"""Planning definitions of the schema's tables, which all shards run: ALTER TABLE, indexes, TRUNCATE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.schema import Kind
from rewriter.plan import Access, Plan
from rewriter.plans import Ddl
from rewriter.plans.builtins import DropUnknown
from rewriter.route.context import Statement, not_yet
from rewriter.route.scope import Refuse, Target
from rewriter.splice import Part
from rewriter.sql.statements.forms import Objects
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import Source, quote_name

from .definitions import check_keys, count_local_id
from .routing_columns import check_altered, check_created, refused
from .single import define_single, rename
from .unsharded import Text

_BEFORE_INDEX: Final = ("OR", "REPLACE", "UNIQUE", "FULLTEXT", "SPATIAL")


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
        found = _unknown(statement, refusal)
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
        raise refused(source, target.table, "it names several tables", "Name them one by one.")
    if source.is_word(0, "CREATE") and source.is_word(1, "TABLE"):
        check_created(source, span, target.table)
    else:
        check_altered(source, span, target.table)
    return _everywhere(statement, span, target, verb)


def _unknown(statement: Statement, refusal: Refuse) -> Plan | None:
    """The plan of CREATE or DROP of a table that the schema does not name; None for anything else."""
    source = statement.source
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
        tables = tuple(_dropped(statement))
        if "" in tables:
            return not_yet(
                "DROP TABLE of several tables", "one is not in the schema", "Name them one by one."
            )
        found = source.is_word(2, "IF")
        return DropUnknown(tables=tables, if_exists=found, access=Access.ADMIN, implicit_commit=True)
    return None


def _dropped(statement: Statement) -> Iterator[str]:
    """The tables of DROP TABLE with their databases; "" in the place of a table that may exist."""
    source = statement.source
    at = _behind_exists(source, 2)
    while source.is_name(at):
        database = None
        if source.is_op(at + 1, "."):
            database, at = source.at(at).name, at + 2
        try:
            statement.names.target(TableRef("table", Span(at, at + 1), source.at(at).name, database))
        except Refuse as refusal:
            known = refusal.error != "unknown_table"
            yield "" if known else ".".join((refusal.arguments["database"], refusal.arguments["table"]))
        else:
            yield ""
        if not source.is_op(at + 1, ","):
            return
        at += 2


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
