"""Planning ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE of tables in sharded databases."""

from __future__ import annotations

from config.schema import Kind
from rewriter.plan import Access, Plan
from rewriter.plans.maintenance import NO_TABLE, MaintainedTable, TableMaintenance, Where
from rewriter.route.context import Statement
from rewriter.route.scope import Names, Refuse, Target, Unsupported
from rewriter.splice import Part
from rewriter.sql.statements.forms import Kind as StatementKind
from rewriter.sql.statements.table import recognize
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import Source, quote_name

from .single import name_at
from .unsharded import Text

_Found = tuple[Span, TableRef, Target | None]
"""A table's name, and what it stands for: None, the schema does not name it."""


def maintain(statement: Statement) -> Plan | None:
    """The rule for statements that look after tables, one of them in a sharded database; None for others and
    for a CHECKSUM TABLE of what is on shards. Raises Refuse.
    """
    source, form = statement.source, statement.form
    if form.kind is not StatementKind.MAINTENANCE:
        return None
    spans = _listed(source, recognize(source).end)
    found = [_look_up(statement.names, source, span) for span in spans]
    if not any(target is None or target.table is not None for _, _, target in found):
        return None
    on_shards = [target for _, _, target in found if target is not None and target.form == "sharded"]
    if on_shards and form.access < Access.ADMIN:
        return None
    _check(source, found)
    keyspaces = dict.fromkeys(target.keyspace for target in on_shards)
    databases = dict.fromkeys(ref.database or "" for _, ref, _ in found)
    listed = Span(spans[0].first, spans[-1].end)
    maintained = tuple(_maintained(statement, listed, ref, target) for _, ref, target in found)
    return TableMaintenance(
        verb=source.tokens[0].text,
        access=form.access,
        implicit_commit=form.commits_before(statement.names.env.flavour),
        databases=tuple(databases),
        keyspace=next(iter(keyspaces)) if len(keyspaces) == 1 else "",
        table=maintained[0].place,
        template=maintained[0].template,
        maintained=maintained,
    )


def _listed(source: Source, at: int) -> list[Span]:
    """The names of the tables, the first of which is at `at`."""
    spans: list[Span] = []
    span = name_at(source, at)
    while span is not None:
        spans.append(span)
        span = name_at(source, span.end + 1) if source.is_op(span.end, ",") else None
    return spans


def _look_up(names: Names, source: Source, span: Span) -> _Found:
    """What the name `span` stands for. Raises Refuse."""
    database = source.tokens[span.first].name if span.end - span.first > 1 else names.env.database
    ref = TableRef("table", span, source.tokens[span.end - 1].name, database)
    try:
        return span, ref, names.target(ref)
    except Refuse as refusal:
        if refusal.error != "unknown_table":
            raise
        return span, ref, None


def _check(source: Source, found: list[_Found]) -> None:
    """Refuse what names a table twice, and lists that go on behind a table's options. Raises Refuse."""
    seen = set[tuple[str | None, str]]()
    for _, ref, _ in found:
        if (ref.database, ref.name) in seen:
            raise Refuse("not_unique_table", table=ref.name)
        seen.add((ref.database, ref.name))
    at = end = found[-1][0].end
    while at < len(source.tokens) and not source.is_word(end + 1, "HISTOGRAM"):
        if source.is_op(at, ","):
            what, advice = f"this {source.tokens[0].text} TABLE", "Name the tables one by one."
            raise Unsupported(what=what, reason="its tables have options of their own", alternative=advice)
        at = source.closing.get(at, at) + 1


def _maintained(statement: Statement, listed: Span, ref: TableRef, target: Target | None) -> MaintainedTable:
    """One of the tables, whose statement has its name in the place of all names (`listed`)."""
    text, source = Text(statement), statement.source
    name = source.text(ref.span.end - 1, ref.span.end)
    where: Where = "host"
    keyspace, shard, written = "", None, ""
    prefix: tuple[Part, ...]
    if target is None:
        keyspace, shard, database = _some_shard(statement.names)
        prefix, name = (quote_name(database), b"."), NO_TABLE.encode()
    elif target.form == "sharded":
        where, keyspace = "shards", target.keyspace
        prefix = (b"`", text.slots.end, b"`.")
    else:
        keyspace, shard = target.keyspace, target.shard
        physical = target.physical.decode() or target.database
        written = f"{physical}.{ref.name}"
        prefix = (quote_name(physical), b".")
        reference = target.table is not None and target.table.kind is Kind.REFERENCE
        if reference and statement.form.access >= Access.ADMIN:
            where = "hosts"
    text.edits.replace(listed, *prefix, name)
    return MaintainedTable(
        database=ref.database or "",
        name=ref.name,
        template=text.edits.template(),
        where=where,
        keyspace=keyspace,
        shard=shard,
        written=written,
        unknown=target is None,
    )


def _some_shard(names: Names) -> tuple[str, int, str]:
    """A shard, where a server can be asked: its keyspace, number and database. Raises Refuse."""
    for name, keyspace in names.topology.keyspaces.items():
        if keyspace.sharded and keyspace.all_shards:
            shard = keyspace.all_shards[0]
            return name, shard, keyspace.database_of(shard).decode()
    raise Refuse("unknown_database", database="of a shard")
