"""Queries on information_schema: the views' names give way to what clients shall see of them.

The servers list thousands of physical databases and know nothing of logical ones. So each view in such a
query becomes a derived table with the same columns: the rows of the databases that clients see, and those of
one shard's tables under their logical names. The server evaluates the query itself, whatever it asks.

    FROM information_schema.TABLES t  →  FROM (SELECT … UNION ALL SELECT …) t

The plan only marks the places; `view_sql` writes the derived tables when the query runs, for only then is it
known which databases there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.flavour import Flavour
from config.topology import Host
from rewriter.plan import Access, Plan
from rewriter.plans import SystemViews
from rewriter.plans.limits import Limits
from rewriter.route.context import Statement
from rewriter.route.scope import INFORMATION_SCHEMA, Refuse, Scope
from rewriter.route.values import Slots
from rewriter.splice import Part
from rewriter.sql.statements.forms import Kind as StatementKind
from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser
from rewriter.text.tokens import Source, Unreadable

from .called import NOWHERE, called
from .unsharded import Text
from .view_limits import ViewColumns, limits_of


@dataclass(frozen=True, slots=True)
class View:
    """One view with a row for each thing in a database.

    `schema` names the column with that database's name, `table` the one with the table's, if there is one.
    `same` are columns that always have the same database's name.
    `of_tables`: a sharded database's rows are those of its tables, else it has none. `once`: it has one row.
    `of_users`: servers tell of the connection's account what the proxy must tell of its own users.
    """

    schema: str = "TABLE_SCHEMA"
    table: str = "TABLE_NAME"
    of_tables: bool = True
    once: bool = False
    of_users: bool = False
    same: tuple[str, ...] = ()


_NOT_SHARDED: Final = View(of_tables=False)
_TABLES: Final = View()
_CONSTRAINED: Final = View(same=("CONSTRAINT_SCHEMA",))
_PRIVILEGES: Final = View(of_tables=False, of_users=True)

VIEWS: Final[Mapping[str, View]] = {
    "SCHEMATA": View("SCHEMA_NAME", "", once=True),
    "SCHEMATA_EXTENSIONS": View("SCHEMA_NAME", "", once=True),
    "TABLES": _TABLES,
    "TABLES_EXTENSIONS": _TABLES,
    "COLUMNS": _TABLES,
    "COLUMNS_EXTENSIONS": _TABLES,
    "COLUMN_STATISTICS": View("SCHEMA_NAME"),
    "STATISTICS": View(same=("INDEX_SCHEMA",)),
    "PARTITIONS": _TABLES,
    "KEY_COLUMN_USAGE": _CONSTRAINED,
    "TABLE_CONSTRAINTS": _CONSTRAINED,
    "TABLE_CONSTRAINTS_EXTENSIONS": View("CONSTRAINT_SCHEMA"),
    "REFERENTIAL_CONSTRAINTS": View("CONSTRAINT_SCHEMA"),
    "CHECK_CONSTRAINTS": View("CONSTRAINT_SCHEMA", ""),
    "ST_GEOMETRY_COLUMNS": _TABLES,
    "GEOMETRY_COLUMNS": View("F_TABLE_SCHEMA", "F_TABLE_NAME"),
    "PROCESSLIST": View("", "", of_users=True),
    "VIEWS": _NOT_SHARDED,
    "VIEW_TABLE_USAGE": View("VIEW_SCHEMA", of_tables=False),
    "VIEW_ROUTINE_USAGE": _NOT_SHARDED,
    "TRIGGERS": View("TRIGGER_SCHEMA", "EVENT_OBJECT_TABLE", of_tables=False, same=("EVENT_OBJECT_SCHEMA",)),
    "EVENTS": View("EVENT_SCHEMA", of_tables=False),
    "ROUTINES": View("ROUTINE_SCHEMA", of_tables=False),
    "PARAMETERS": View("SPECIFIC_SCHEMA", of_tables=False),
    "LIBRARIES": View("LIBRARY_SCHEMA", of_tables=False),
    "ROUTINE_LIBRARIES": View("ROUTINE_SCHEMA", of_tables=False),
    "USER_PRIVILEGES": View("", "", of_users=True),
    "SCHEMA_PRIVILEGES": _PRIVILEGES,
    "TABLE_PRIVILEGES": _PRIVILEGES,
    "COLUMN_PRIVILEGES": _PRIVILEGES,
    "TABLE_STATISTICS": _NOT_SHARDED,
    "INDEX_STATISTICS": _NOT_SHARDED,
    "JSON_DUALITY_VIEWS": _NOT_SHARDED,
    "JSON_DUALITY_VIEW_COLUMNS": _NOT_SHARDED,
    "JSON_DUALITY_VIEW_LINKS": _NOT_SHARDED,
    "JSON_DUALITY_VIEW_TABLES": _NOT_SHARDED,
}
"""The views of which the rows depend on who asks. All others of information_schema are the server's.
PROCESSLIST has the proxy's sessions, all of them constants; the views of privileges have those of the
settings, but for administrators without a list.
"""

_SCHEMAS: Final = frozenset(
    {"TABLE_SCHEMA", "CONSTRAINT_SCHEMA", "UNIQUE_CONSTRAINT_SCHEMA", "REFERENCED_TABLE_SCHEMA"}
    | {"INDEX_SCHEMA", "SCHEMA_NAME", "F_TABLE_SCHEMA", "G_TABLE_SCHEMA"}
)
_COLUMNS: Final = frozenset({"COLUMN_NAME", "REFERENCED_COLUMN_NAME"})
_EXPRESSIONS: Final = frozenset(
    {"GENERATION_EXPRESSION", "EXPRESSION", "CHECK_CLAUSE", "PARTITION_EXPRESSION"}
)
ESTIMATES: Final = frozenset({"TABLE_ROWS", "DATA_LENGTH", "INDEX_LENGTH", "CARDINALITY"})
"""What is about as large in each shard: shown for one, multiplied by the number of shards."""


def system_views(statement: Statement) -> Plan | None:
    """The rule for queries on views that show databases, and INSERT of their rows; None for all others, and
    inside a physical one.
    """
    source, names = statement.source, statement.names
    current = names.env.database or ""
    inside = current not in names.schema.databases and names.physical(current) is not None
    inserts = source.is_word(0, "INSERT", "REPLACE")
    if not (inserts or statement.form.kind is StatementKind.QUERY) or inside:
        return None
    if current.lower() != INFORMATION_SCHEMA and not any(
        token.name.lower() == INFORMATION_SCHEMA for token in source.tokens
    ):
        return None
    scope = Scope(source)
    try:
        blocks = _inserted(statement, scope) if inserts else _asked(statement, scope)
    except (Refuse, Unreadable):
        return None  # another rule says what is wrong
    refs = [ref for ref in scope.targets if _view(ref, scope) in VIEWS]
    forms = {target.form for target in scope.targets.values()}
    if not refs or forms & {"sharded", "physical"}:
        return None
    return _plan(statement, blocks, scope, refs, writes=inserts)


def _asked(statement: Statement, scope: Scope) -> list[Block]:
    """The blocks of a query, whose tables `scope` gets. Raises Unreadable and Refuse."""
    parser = Parser(statement.source)
    query = parser.query(None)
    if parser.at < parser.end:
        raise parser.unreadable("the end")
    scope.add_query(statement.names, query)
    return list(query.all_blocks())


def _inserted(statement: Statement, scope: Scope) -> list[Block]:
    """The same of INSERT or REPLACE."""
    insertion = WriteParser(statement.source).insert()
    scope.add_block(statement.names, insertion.block)
    blocks = list(insertion.block.all_blocks())
    if insertion.query is not None:
        scope.add_query(statement.names, insertion.query)
        blocks += insertion.query.all_blocks()
    return blocks


def _view(ref: TableRef, scope: Scope) -> str:
    """The view's name in upper case; '' when it is none."""
    target = scope.targets[ref]
    if target.form == "system" and target.database.lower() == INFORMATION_SCHEMA:
        return ref.name.upper()
    return ""


def _plan(
    statement: Statement, blocks: list[Block], scope: Scope, refs: list[TableRef], *, writes: bool
) -> Plan:
    source = statement.source
    text = Text(statement, parameters=True)
    within = {ref.span.first for ref in scope.targets}
    for at in range(len(source.tokens)):
        # the derived table is in no database: information_schema.t.column is t.column
        named = source.is_name(at) and source.tokens[at].name.lower() == INFORMATION_SCHEMA
        if named and at not in within and source.is_op(at + 1, ".") and source.is_op(at + 3, "."):
            text.edits.replace(Span(at, at + 2), b"")
    limits = [_limits(source, text.slots, blocks, ref, scope) for ref in refs]  # may need slots
    for number, ref in enumerate(refs):
        name = source.text(ref.span.end - 1, ref.span.end)
        parts: tuple[Part, ...] = (b"(", text.slots.end + number, b")")
        text.edits.replace(ref.span, *parts, *((b" AS " + name,) if ref.alias is None else ()))
    text.blocks(blocks, scope)
    targets = [one for one in scope.targets.values() if one.form not in ("inner", "system")]
    keyspaces = dict.fromkeys("" if one.form == "default" else one.keyspace for one in targets)
    calls, current = called(statement), _current(statement, scope)
    unplaced = () if current is not None else calls.unplaced
    return SystemViews(
        access=Access.WRITE if writes else Access.READ,
        session_slots=tuple(text.slots.names),
        databases=tuple(dict.fromkeys(one.database for one in targets)),
        effects=statement.effects,
        template=text.edits.template(),
        unchanged=False,
        database=NOWHERE if unplaced else current or calls.current,
        unplaced=unplaced,
        keyspaces=tuple(dict.fromkeys((*keyspaces, *calls.keyspaces))) or ("",),
        views=tuple(_view(ref, scope) for ref in refs),
        limits=tuple(limits),
        only_views=not (targets or calls.keyspaces or len(refs) < len(scope.targets)),
        writes=writes,
        reads=_names(source),
    )


def _names(source: Source) -> frozenset[str] | None:
    """The names in the statement, in upper case; None when it can read columns without their names."""
    for at in range(len(source.tokens)):
        counted = source.is_op(at - 1, "(") and source.is_op(at + 1, ")")
        if source.is_word(at, "NATURAL", "TABLE") or (source.is_op(at, "*") and not counted):
            return None
    return frozenset(token.name.upper() for token in source.tokens)


def _limits(source: Source, slots: Slots, blocks: list[Block], ref: TableRef, scope: Scope) -> Limits:
    """The conditions on one of the views."""
    block = next((one for one in blocks if ref in one.tables), None)
    if block is None or VIEWS[_view(ref, scope)].of_users:
        return Limits()
    named = [(at, _view(one, scope)) for at, one in enumerate(block.tables) if one in scope.targets]
    views = {at: VIEWS[name] for at, name in named if name in VIEWS and not VIEWS[name].of_users}
    columns = {
        at: ViewColumns((one.schema, *one.same), (one.table,) if one.table else ())
        for at, one in views.items()
    }
    return limits_of(source, slots, block, block.tables.index(ref), columns)


def _current(statement: Statement, scope: Scope) -> str | None:
    """The database that the connection must be in: for unqualified names that stay."""
    for ref, target in scope.targets.items():
        stays = target.form in ("passthrough", "default", "system") and _view(ref, scope) not in VIEWS
        if stays and ref.database is None:
            return statement.names.env.database
    return None


@dataclass(frozen=True, slots=True)
class Shown:
    """A database of one host as clients see it: a whole one, or the tables of a sharded (or single) one.

    `tables`: the names that clients see, None for all; `objects` are those with a virtual `id`. `shards`:
    over how many the rows are spread. `first`: of a logical database's parts, the one that stands for it.
    """

    host: Host
    physical: str
    logical: str
    tables: tuple[str, ...] | None = None
    objects: tuple[str, ...] = ()
    shards: int = 1
    first: bool = True

    @property
    def as_is(self) -> bool:
        """Whether its rows are those of the server."""
        return self.tables is None and self.physical == self.logical


def view_sql(
    name: str,
    columns: Sequence[str],
    shown: Sequence[Shown],
    constants: Sequence[bytes],
    *,
    flavour: Flavour,
    confined: bool = False,
    tables: Sequence[str] | None = None,
) -> bytes:
    """The derived table for view `name` of these `columns`.

    `constants`: the rows that other hosts have given, as lists of values. MariaDB looks a database up for an
    equality only, so there each has a SELECT of its own. MySQL names result columns after the view's: it does
    that for derived tables that it merges, so the UNION is put into one.

    `tables`: rows of others are not wanted.

    `confined`: the user must learn nothing of other rows. MySQL may evaluate the conditions of a query for
    them, too, and warn of their values; a derived table with a LIMIT is read before.
    """
    view = VIEWS[name]
    whole = [one.physical for one in shown if one.as_is]
    parts: list[bytes] = []
    groups = [[one] for one in whole] if flavour.looks_up_schemas and whole else [whole]
    listed = b", ".join(b"`" + column.encode() + b"`" for column in columns)
    table = b"SELECT %b FROM information_schema.`%b` WHERE " % (listed, name.encode())
    only = _among(view, columns, tables)
    for group in groups:
        if not group:
            parts.append(table + b"0")  # the columns, for rows from elsewhere
        else:
            parts.append(table + _is_one_of(view.schema, group) + only)
    parts += [
        part
        for one in shown
        if not one.as_is and (part := shown_sql(name, columns, one, flavour=flavour, tables=tables))
    ]
    if constants:
        row = b"(%b)" if flavour.looks_up_schemas else b"ROW(%b)"
        parts.append(b"VALUES " + b", ".join([row % one for one in constants]))
    if len(parts) == 1 and flavour.looks_up_schemas:
        parts.append(table + b"0")  # MariaDB merges a SELECT alone: its columns get names in upper case
    union = b" UNION ALL ".join(parts)
    if flavour.looks_up_schemas:
        return union
    return b"SELECT %b FROM (%b%b) AS shown" % (listed, union, _ALL if confined else b"")


_ALL: Final = b" LIMIT 18446744073709551615"


def _is_one_of(column: str, names: Sequence[str]) -> bytes:
    """The condition. Only `=` is looked up by MariaDB."""
    listed = b", ".join(map(_quote, names))
    return (b"`%b` = %b" if len(names) == 1 else b"`%b` IN (%b)") % (column.encode(), listed)


def _among(view: View, columns: Sequence[str], tables: Sequence[str] | None) -> bytes:
    """The condition, behind another one, that a row is of one of these tables."""
    if tables is None or view.table not in columns:
        return b""
    return b" AND " + (_is_one_of(view.table, tables) if tables else b"0")


def shown_sql(
    name: str,
    columns: Sequence[str],
    shown: Shown,
    *,
    flavour: Flavour,
    tables: Sequence[str] | None = None,
) -> bytes:
    """The SELECT of one database's rows, of certain `tables`; empty when it has none."""
    view = VIEWS[name]
    if shown.tables is not None and ((not view.of_tables) or (view.once and not shown.first)):
        return b""
    if view.table and shown.tables is not None and not shown.tables:
        return b""
    sql = b"SELECT %b FROM information_schema.`%b` WHERE `%b` = %b" % (
        b", ".join(_column(column, view, shown, flavour=flavour) for column in columns),
        name.encode(),
        view.schema.encode(),
        _quote(shown.physical),
    )
    if shown.tables is not None and view.table:
        sql += b" AND `%b` IN (%b)" % (view.table.encode(), b", ".join(map(_quote, shown.tables)))
    return sql + _among(view, columns, tables)


def introducer(flavour: Flavour) -> bytes:
    """What stands before a string constant in a result column. MariaDB's views are in utf8mb3, and its UNION
    takes the larger character set; MySQL finds that the constant fits.
    """
    return b"_utf8mb3" if flavour.views_in_utf8mb3 else b"_utf8mb4"


def _column(column: str, view: View, shown: Shown, *, flavour: Flavour) -> bytes:
    """One result column, in logical terms."""
    plain = b"`" + column.encode() + b"`"
    if shown.as_is:
        return plain
    objects = b", ".join(map(_quote, shown.objects))
    logical = _quote(shown.logical)
    if logical.startswith(b"'"):
        logical = introducer(flavour) + logical
    expression = b""
    if column == view.schema:
        expression = logical
    elif column in _SCHEMAS:
        expression = b"IF(%b = %b, %b, %b)" % (plain, _quote(shown.physical), logical, plain)
    elif column in _COLUMNS and objects and view.table:
        key = b"`%b` IN (%b) AND %b = 'local_id'" % (view.table.encode(), objects, plain)
        expression = b"IF(%b, 'id', %b)" % (key, plain)
    elif column in _EXPRESSIONS and objects:
        expression = b"REPLACE(%b, '`local_id`', '`id`')" % plain
    elif column in ESTIMATES and shown.shards > 1:
        expression = b"%b * %d" % (plain, shown.shards)
    elif column == "AUTO_INCREMENT" and objects:
        expression = b"IF(`%b` IN (%b), NULL, %b)" % (view.table.encode(), objects, plain)
    return expression + b" AS " + plain if expression else plain


def _quote(name: str) -> bytes:
    """A name as a string, in any character set of statements; the names of databases and tables hold no
    control characters.
    """
    if not name.isascii():
        return b"_utf8mb4 x'" + name.encode("utf-8", "surrogateescape").hex().encode() + b"'"
    return b"'" + name.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
