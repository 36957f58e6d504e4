"""Planning statements that reach no sharded table: one host runs them as the client wrote them.

Only names of single tables (when their physical database has another name), session values and
shardgate's own functions and hints are written into the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypedDict

from config.schema import Kind
from rewriter.bound import BindError, NotSupported
from rewriter.plan import Plan
from rewriter.plans import AnyHost, Passthrough, Physical, find_host, is_one_host
from rewriter.route.column_metadata import unsharded_column_metadata
from rewriter.route.columns import Columns, Extras
from rewriter.route.context import Statement
from rewriter.route.id_layouts import IdLayouts
from rewriter.route.scope import INFORMATION_SCHEMA, SYSTEM_DATABASES, Refuse, Scope, Target, Unsupported
from rewriter.route.slot_filling import (
    fill_database_facts,
    fill_functions,
    fill_lock_holders,
    fill_slots,
    take_hints,
)
from rewriter.route.values import Slots
from rewriter.splice import Template
from rewriter.sql.privileges.reachable import reached, tells_of_others
from rewriter.sql.privileges.rights import databases_named
from rewriter.sql.statements.effects import Effects, assigns_insert_id, defines_routine, may_read_views
from rewriter.sql.statements.forms import Kind as FormKind
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.parse import Parser
from rewriter.text.tokens import Source, Unreadable

from .called import NOWHERE, Called, called


class _Common(TypedDict):
    session_slots: tuple[str, ...]
    databases: tuple[str, ...]
    effects: Effects | None
    template: Template
    unchanged: bool
    database: str | None
    unplaced: tuple[str, ...]


class Place(NamedTuple):
    """Where a statement runs: unsharded keyspaces ("" for the default host), or physical locations, or,
    with neither, on any host.
    """

    keyspaces: tuple[str, ...] = ()
    locations: tuple[tuple[str, int | None], ...] = ()

    def joined(self, calls: Called) -> Place:
        """The place that has these functions, too."""
        if not (self.locations or calls.locations):
            return self._replace(keyspaces=tuple(dict.fromkeys(self.keyspaces + calls.keyspaces)))
        whole = [(keyspace, None) for keyspace in self.keyspaces + calls.keyspaces]
        return Place((), tuple(dict.fromkeys((*self.locations, *calls.locations, *whole))))


class About(NamedTuple):
    """What else a plan says of a statement; see the attributes of the plans."""

    databases: tuple[str, ...] = ()
    database: str | None = None
    tables: bool = False
    """Whether all that is read is known to be tables, by the schema document."""


class Text:
    """A statement's text with the session's values in it, and the names of these values. `parameters`: also
    with those of a prepared statement, which a server takes by itself. `on_shards`: see `fill_slots`.
    `layouts`: those of its IDs, when the tables are known.
    """

    def __init__(
        self,
        statement: Statement,
        *,
        parameters: bool = False,
        on_shards: bool = False,
        layouts: IdLayouts | None = None,
    ) -> None:
        source = statement.source
        self._statement = statement
        self.source = source
        self.flavour = statement.names.env.flavour
        self._spaces = statement.spaces
        self.slots = Slots(len(source.literals))
        self.edits = Edits(source)
        if not defines(source):
            fill_slots(
                source,
                self.slots,
                self.edits,
                variables=False,
                parameters=parameters,
                warned=self.flavour.warned_in_statement,
                numbered=self.flavour.numbers_in_statement,
                own_id=not assigns_insert_id(source),
                on_shards=on_shards,
            )
            fill_lock_holders(source, self.slots, self.edits)
        take_hints(source, self.edits)
        layouts = layouts or IdLayouts(statement.layout([]), source, statement.names, None)
        fill_functions(source, self.edits, layouts)
        self.extras = Extras(self.slots.end)

    def blocks(self, blocks: Iterable[Block], scope: Scope) -> None:
        """Edit the tables and result names of query blocks."""
        Columns(self.source, scope, self.edits, self.extras, spaces=self._spaces).blocks(blocks)

    def plan(self, place: Place, about: About) -> Plan:
        """The plan of this text."""
        unchanged = not self.edits
        template = whole(self.source) if unchanged else self.edits.template()
        effects = self._statement.effects
        # MariaDB says at once what a view's functions have changed
        if not (self.flavour.tells_changes_at_once or about.tables) and may_read_views(self.source):
            effects = (effects or Effects())._replace(reads=True)
        unplaced = () if about.database is not None else called(self._statement).bare
        common = _Common(
            session_slots=tuple(self.slots.names),
            databases=about.databases,
            effects=effects,
            template=template,
            unchanged=unchanged,
            database=NOWHERE if unplaced else about.database,
            unplaced=unplaced,
        )
        if place.locations:
            return Physical(locations=place.locations, **common)
        if place.keyspaces:
            return Passthrough(keyspaces=place.keyspaces, **common)
        return AnyHost(**common)


def whole(source: Source) -> Template:
    """The statement's very bytes."""
    parts = (literal if literal >= 0 else source.sql[start:end] for start, end, literal in source.pieces)
    return Template(parts)


def defines(source: Source) -> bool:
    """Whether the statement has a text that runs another time, with the values of that time: the body of a
    routine, a view, the defaults and conditions of a table (but the query that fills it). LOAD assigns its
    user variables by itself.
    """
    if defines_routine(source) or not source.is_word(0, "CREATE", "ALTER"):
        return defines_routine(source)
    for at in range(1, len(source.tokens)):
        if source.is_word(at, "DATABASE", "USER", "SERVER"):
            return False
        if source.is_word(at, "TABLE"):
            return _first(source, "SELECT") == len(source.tokens)
        if source.is_word(at, "VIEW", "INDEX"):
            return True
    return False


def _first(source: Source, word: str) -> int:
    """Where `word` stands first, or else the end."""
    return next((at for at in range(len(source.tokens)) if source.is_word(at, word)), len(source.tokens))


def plan_unsharded(
    statement: Statement,
    blocks: Iterable[Block],
    scope: Scope,
    deleted: Iterable[tuple[TableRef, TableRef]] = (),
) -> Plan:
    """The plan of a statement none of whose tables is sharded. `deleted`: the targets of a DELETE of several
    tables, as named there and where they stand for tables. Raises Refuse.
    """
    text = Text(statement)
    targets = {ref: target for ref, target in scope.targets.items() if target.form != "inner"}
    forms = {target.form for target in targets.values()}
    if not forms:
        fill_database_facts(statement.source, text.edits)
    text.blocks(blocks, scope)
    databases = tuple(
        dict.fromkeys(
            target.database
            for ref, target in targets.items()
            if target.database.lower() != INFORMATION_SCHEMA or tells_of_others(ref.name)
        )
    )
    calls = called(statement)
    if not forms or forms == {"system"}:
        about = About(databases, system(targets) or calls.current)
        return text.plan(_system_place(statement, databases).joined(calls), about)
    current = name_targets(text, scope, deleted)
    if _unqualified(targets):
        current = statement.names.env.database
    elif calls.bare:
        current = calls.current
    about = About(databases, current)
    locations = [(one.keyspace, one.shard) for one in targets.values() if one.form == "physical"]
    placed = [one for one in targets.values() if one.form != "system" and not _everywhere(one)]
    if locations and any(one.form != "physical" for one in placed):
        raise mixed(scope)
    placed = placed or [one for one in targets.values() if _everywhere(one)][:1]
    keyspaces = ["" if one.form == "default" else one.keyspace for one in placed]
    if locations:
        return text.plan(Place(locations=tuple(dict.fromkeys(locations))).joined(calls), about)
    tables = all(one.table is not None for one in targets.values())
    return text.plan(Place(tuple(dict.fromkeys(keyspaces))).joined(calls), about._replace(tables=tables))


def by_calls(statement: Statement) -> Plan:
    """The plan of a statement without tables, on the host that has the functions that it calls."""
    calls = called(statement)
    return Text(statement).plan(Place().joined(calls), About(database=calls.current))


def name_targets(text: Text, scope: Scope, deleted: Iterable[tuple[TableRef, TableRef]]) -> str | None:
    """Qualify the targets of a DELETE of several tables as the tables themselves. Returns a database for the
    connection to be in, where one is an alias: servers want a current one for it, whichever.
    """
    current = None
    for written, ref in deleted:
        target = scope.targets[ref]
        if target.form != "single":
            continue
        if ref.alias is not None:
            current = target.physical.decode("utf-8", "surrogateescape")
            continue
        text.edits.replace(written.span, target.qualified(text.source.text(ref.span.end - 1, ref.span.end)))
    return current


def on_one_host(statement: Statement, plan: Plan, scope: Scope) -> Plan:
    """`plan`, if its tables are on one host, with the origins of its columns (of SELECT and RETURNING).

    Raises Refuse.
    """
    if not is_one_host(plan):
        return plan
    try:
        plan.host(statement.names.topology)
    except NotSupported as error:
        raise Unsupported(**error.arguments) from None
    except BindError:
        pass  # which hosts there are, is known when it is run
    column_metadata = unsharded_column_metadata(scope)
    return plan if column_metadata is None else plan.with_column_metadata(column_metadata)


def _everywhere(target: Target) -> bool:
    """Whether every host has the table."""
    return target.table is not None and target.table.kind is Kind.REFERENCE


def _system_place(statement: Statement, databases: Iterable[str]) -> Place:
    """mysql, performance_schema and sys are the default host's; information_schema is like on any host."""
    own = any(database.lower() != "information_schema" for database in databases)
    return Place(("",)) if own and statement.names.topology.default is not None else Place()


def system(targets: dict[TableRef, Target]) -> str | None:
    """The system database that unqualified names are in."""
    for ref, target in targets.items():
        if ref.database is None:
            return target.database
    return None


def _unqualified(targets: dict[TableRef, Target]) -> bool:
    """Whether the current database matters on the backend: the schema's single tables get qualified."""
    return any(ref.database is None and target.form != "single" for ref, target in targets.items())


def mixed(scope: Scope) -> Refuse:
    """The refusal of a statement whose tables are in places that one host does not have."""
    names = dict.fromkeys(
        f"{target.database}.{ref.name}" for ref, target in scope.targets.items() if target.form != "inner"
    )
    return Unsupported(
        what="this statement",
        reason=f"its tables are kept in different ways ({', '.join(names)})",
        alternative="Read the tables one by one.",
    )


def plan_confined(statement: Statement) -> Plan | None:
    """The plan of any statement while the current database is not a sharded one, and no other is named.

    None when the statement's tables have to be looked at.
    """
    names, source = statement.names, statement.source
    database = names.env.database
    if database is None:
        return None
    try:
        home = names.target(TableRef("table", Span(0, 0), "", database))
    except Refuse:
        return None
    others = _named_databases(statement)
    if others is None or not _with_home(statement, home, others):
        return None
    text = Text(statement)
    if text.edits and source.is_word(0, "SELECT", "WITH"):
        _label(statement, text)
    elif text.edits and source.is_word(0, "CREATE"):
        _label(statement, text, _first(source, "SELECT"))
    about = About(_asked_for(statement, database, others), database)
    if home.form == "physical":
        return text.plan(Place(locations=((home.keyspace, home.shard),)), about)
    if home.form == "system":
        return text.plan(_system_place(statement, about.databases or (database,)), about)
    keyspaces = (home.keyspace, *others.values())
    return text.plan(Place(tuple(dict.fromkeys(keyspaces))), about)


def _with_home(statement: Statement, home: Target, others: Mapping[str, str]) -> bool:
    """Whether the host of the current database has the other databases that a statement names, too. Else the
    names of its tables say where it runs.
    """
    names = statement.names
    if home.form == "physical":
        return not others and not _names_default(statement)
    if home.form == "system":
        return not others
    try:
        hosts = {find_host(names.topology, keyspace, None) for keyspace in (home.keyspace, *others.values())}
    except BindError:
        return True  # it is told when it runs
    return len(hosts) == 1


def _asked_for(statement: Statement, database: str, others: Iterable[str]) -> tuple[str, ...]:
    """The databases that the user must be allowed."""
    source = statement.source
    everybody_s = database.lower() == INFORMATION_SCHEMA
    if everybody_s and any(
        source.is_name(at) and tells_of_others(one.name) for at, one in enumerate(source.tokens)
    ):
        everybody_s = False
    current = () if everybody_s else (database,)
    return tuple(dict.fromkeys((*current, *others, *reached(source))))


def _named_databases(statement: Statement) -> dict[str, str] | None:
    """The other databases that a statement names and that are not sharded, with their keyspaces ("" for the
    default host); None when it may name a sharded one. An alias may have a database's name.
    """
    names, source = statement.names, statement.source
    found: dict[str, str] = {}
    named: frozenset[str] | None = None
    shows = statement.form.kind is FormKind.SHOW
    for at, token in enumerate(source.tokens):
        if token.kind not in ("word", "name") or source.is_op(at - 1, "."):
            continue
        if not (source.is_op(at + 1, ".") or (shows and source.is_word(at - 1, "FROM", "IN"))):
            continue
        if token.name == names.env.database:
            continue
        named = databases_named(source, names) if named is None else named
        if token.name not in named:
            continue
        logical = names.schema.databases.get(token.name)
        if logical is not None and logical.keyspace is None:
            return None
        if logical is not None:
            found[token.name] = logical.keyspace or ""
        elif names.physical(token.name) is not None:
            return None
        elif token.name.lower() not in SYSTEM_DATABASES and names.topology.default is not None:
            found[token.name] = ""
    return found


_BEFORE_TABLE: Final = (
    "FROM",
    "JOIN",
    "STRAIGHT_JOIN",
    "INTO",
    "UPDATE",
    "TABLE",
    "EXISTS",
    "DESCRIBE",
    "DESC",
)


def _names_default(statement: Statement) -> bool:
    """Whether a table of a database may be named that only the default host has: the statement has to be
    read to tell it from a column.
    """
    names, source = statement.names, statement.source
    if names.topology.default is None:
        return False
    for at in range(1, len(source.tokens)):
        if source.is_word(at - 1, *_BEFORE_TABLE) and source.is_name(at) and source.is_op(at + 1, "."):
            database = source.tokens[at].name
            known = database == names.env.database or database.lower() in SYSTEM_DATABASES
            if not known and names.physical(database) is None:
                return True
    return False


def _label(statement: Statement, text: Text, first: int = 0) -> None:
    """Keep the result names of a query with session values in it, if it can be read."""
    parser = Parser(statement.source)
    parser.at = first
    try:
        query: Query = parser.query(None)
    except Unreadable:
        return
    if parser.at == parser.end:
        scope = Scope(statement.source)
        for block in query.all_blocks():
            for ref in block.tables:
                scope.targets[ref] = Target("inner")
        text.blocks(query.all_blocks(), scope)


def only_sharded(scope: Scope) -> None:
    """Refuse a statement with other tables than sharded ones, and reference tables, which are everywhere."""
    for target in scope.targets.values():
        everywhere = target.table is not None and target.table.kind is Kind.REFERENCE
        if target.form not in ("sharded", "inner") and not everywhere:
            raise mixed(scope)
