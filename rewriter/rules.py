"""The planner's rules for statements that name tables, and for those that no other rule knows."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from dataclasses import replace
from typing import Final

from .connection_state import lock_elsewhere
from .env import Env
from .plain.nowhere import plan_nowhere
from .plain.unsharded import About, Place, Text, on_one_host, only_sharded, plan_confined, plan_unsharded
from .plan import Access, Plan, Reject
from .plans.builtins import CreateExisting, ExplainRoute
from .reads.pieces import or_gather
from .reads.select import plan_select
from .route.context import Statement, not_yet, refused
from .route.outer import strengthen
from .route.scope import Names, Refuse, Scope
from .sql.privileges.beyond import named_as_database
from .sql.privileges.reachable import reached
from .sql.privileges.rights import databases_named
from .sql.statements.effects import defines_routine
from .sql.statements.forms import Inner, Kind, Objects, State, StatementForm
from .sql.statements.functions import as_stored
from .sql.statements.inner import behind_explain
from .sql.statements.table import form_of, name_of, recognize
from .sql.statements.table_places import tables_expected
from .text.crowd import MAX_TABLES, most_tables
from .text.facts import Block, Query, Span, TableRef
from .text.literals import NotPlain, unquote
from .text.opening import opened
from .text.parse import Parser
from .text.parse_write import WriteParser, changes_behind_with
from .text.tokens import STRING, Source, Unreadable, read


def _prepared(statement: Statement) -> Plan | None:
    """PREPARE … FROM and EXECUTE IMMEDIATE of a statement that is written out: it needs what that one needs,
    and may name no sharded database. None for anything else.
    """
    source, names = statement.source, statement.names
    inner = prepared_text(statement)
    if inner is None:
        return None
    outer = plan_confined(statement)
    if outer is None or not outer.on_one_host:
        return None
    prepared = Statement(inner, names)
    if names.env.flavour.prepares_diagnostics and prepared.form.words == "GET DIAGNOSTICS":
        reason = "a server runs the text, on a connection that has not seen the statements before"
        raise Refuse(
            "unsupported",
            what=f"{prepared.form.words} in a prepared text",
            reason=reason,
            alternative="Run it by itself.",
        )
    found = plan_confined(prepared)
    locks = prepared.effects is not None and prepared.effects.locks
    if found is not None and locks and not found.at_lock_host(names.topology):
        return lock_elsewhere(prepared)
    if found is None:
        verb = source.tokens[0].text
        reason = "the statement in it is on sharded tables"
        return not_yet(verb, reason, "Use the binary protocol, or the statement itself.")
    return replace(outer, databases=tuple(dict.fromkeys(outer.databases + found.databases)))


def prepared_text(statement: Statement) -> Source | None:
    """The statement that PREPARE … FROM '…' prepares, or EXECUTE IMMEDIATE '…' runs; None for anything else,
    and where it is not written out or cannot be read. The plan is for this text only then.
    """
    source = statement.source
    last = len(source.tokens) - 1
    if statement.form.inner is not Inner.TEXT or last != (3 if statement.form.words == "PREPARE" else 2):
        return None
    if source.tokens[last].kind != STRING or source.tokens[last].literal < 0:
        return None
    inner = _inner(source.literals[source.tokens[last].literal], statement.names.env)
    if inner is None or not inner.tokens:
        return None
    statement.guard(Span(last, last + 1))
    return inner


def _inner(literal: bytes, env: Env) -> Source | None:
    """The statement in a quoted string; None when it cannot be read."""
    try:
        text = opened(unquote(literal, not env.no_backslash_escapes), env)
        literals = tuple(one for _, one in env.findall(text + b"\0"))
        if literals[-1] or literals.count(b"") != 1:
            return None
        return as_stored(read(text, literals, replace(env, ignore_space=False)))
    except (NotPlain, Unreadable):
        return None


def explain_route(statement: Statement) -> Plan | None:
    """EXPLAIN ROUTE statement."""
    source = statement.source
    if not source.is_word(0, "EXPLAIN") or not source.is_word(1, "ROUTE"):
        return None
    if len(source.tokens) < 3:
        raise Unreadable("expected a statement behind EXPLAIN ROUTE")
    return ExplainRoute(offset=source.tokens[2].start)


def crowded(statement: Statement) -> Plan | None:
    """More tables than a server joins."""
    count = most_tables(statement.source)
    if count <= MAX_TABLES:
        return None
    return Reject(error="too_many_tables", arguments={"count": str(count), "limit": str(MAX_TABLES)})


def too_deep(statement: Statement) -> Plan | None:
    """What nests deeper than the limit is not looked into."""
    depth, limit = statement.source.depth, statement.names.limits.parse_depth
    if depth <= limit:
        return None
    return Reject(error="statement_too_deep", arguments={"depth": str(depth), "limit": str(limit)})


def confined(statement: Statement) -> Plan | None:
    """Anything, while the current database is not sharded and no sharded one is named."""
    found = _prepared(statement) if statement.names.env.database is not None else None
    if found is not None:
        return found
    if statement.form.defines and statement.form.objects is Objects.DATABASE:
        return _database(statement, About())
    return _with_lock(statement, plan_confined(statement))


def _with_lock(statement: Statement, plan: Plan | None) -> Plan | None:
    """`plan`; for a call of GET_LOCK and its kin without tables, the plan of running it on the host of all
    named locks, where the current database need not be.
    """
    effects = statement.effects
    if plan is None or effects is None or not effects.locks or effects.calls:
        return plan
    topology = statement.names.topology
    if plan.at_lock_host(topology):
        return plan
    with suppress(Unreadable, Refuse):
        free = query(statement) or do(statement)
        if free is not None and free.at_lock_host(topology):
            return free
    return plan


def query(statement: Statement) -> Plan | None:
    """SELECT, WITH, VALUES, TABLE and parenthesized queries."""
    if statement.form.kind is not Kind.QUERY:
        return None
    if statement.names.env.flavour.changes_behind_with and changes_behind_with(statement.source):
        return None
    return _query(statement, 0)


def _query(statement: Statement, first: int) -> Plan:
    parser = Parser(statement.source)
    parser.at = first
    found = parser.query(None)
    if parser.at < parser.end:
        raise parser.unreadable("the end")
    scope = Scope(statement.source)
    scope.add_query(statement.names, found)
    if not scope.sharded():
        return _unsharded(statement, found, scope, explain=first > 0)
    strengthen(statement, scope, found.all_blocks())
    if first > 0:
        only_sharded(scope)
        return plan_select(statement, found, scope, explain=True)
    try:
        only_sharded(scope)
        plan: Plan = plan_select(statement, found, scope)
    except Refuse as refusal:
        plan = refused(refusal)
    return or_gather(statement, found, scope, plan)


def _unsharded(statement: Statement, query: Query, scope: Scope, *, explain: bool) -> Plan:
    """Tables that are on one host; those of several are gathered."""
    if explain:
        return plan_unsharded(statement, query.all_blocks(), scope)
    try:
        plan = plan_unsharded(statement, query.all_blocks(), scope)
        return on_one_host(statement, plan, scope)
    except Refuse as refusal:
        return or_gather(statement, query, scope, refused(refusal))


def explain(statement: Statement) -> Plan | None:
    """EXPLAIN of a statement, by the server."""
    source = statement.source
    if statement.form.kind is not Kind.EXPLAIN or statement.form.inner is Inner.NONE:
        return None
    at = behind_explain(source, 0).at
    explained = form_of(source, at).kind
    if explained is Kind.QUERY:
        return _query(statement, at)
    if explained is not Kind.CHANGE:
        return None
    scope, blocks = _write_scope(statement, at)
    if scope.sharded():
        return not_yet("EXPLAIN of a write", "every shard has its own execution plan", "Use EXPLAIN ROUTE.")
    return plan_unsharded(statement, blocks, scope)


def _write_scope(statement: Statement, first: int) -> tuple[Scope, list[Block]]:
    """The tables and blocks of the write that begins at `first`."""
    parser = WriteParser(statement.source)
    parser.at = first
    scope = Scope(statement.source)
    inner: Query | None = None
    if parser.word() in ("INSERT", "REPLACE"):
        insertion = parser.insert()
        block, inner = insertion.block, insertion.query
    else:
        block = (parser.update() if parser.word() == "UPDATE" else parser.delete()).block
    scope.add_block(statement.names, block)
    if inner is not None:
        scope.add_query(statement.names, inner)
    blocks = [*block.all_blocks(), *(inner.all_blocks() if inner is not None else ())]
    return scope, blocks


def do(statement: Statement) -> Plan | None:
    """DO expressions."""
    if not statement.source.is_word(0, "DO"):
        return None
    parser = Parser(statement.source)
    parser.at = 1
    block = Block(1)
    parser.expression(block, lambda: False)
    scope = Scope(statement.source)
    scope.add_block(statement.names, block)
    if scope.sharded():
        return not_yet("DO", "it reads sharded tables", "Use SELECT.")
    return plan_unsharded(statement, block.all_blocks(), scope)


def admin(statement: Statement) -> Plan | None:
    """SHOW of what is no logical table, definitions, and everything else that begins with a known word."""
    source, form = statement.source, statement.form
    if form.kind is Kind.LOCK and form.access < Access.ADMIN and form.ends:
        # where the session holds a connection there may be locks, elsewhere there are none
        return Text(statement).plan(Place(), About())
    if form.kind in (Kind.SHOW, Kind.HELP):
        return _elsewhere(statement) or Text(statement).plan(Place(), About(databases=reached(source)))
    if form.defines and form.objects is Objects.DATABASE:
        return _database(statement, About())
    if form.kind is Kind.COMPOUND:
        reason = "one server runs all of its statements, and none has all shards"
        advice = "USE a database that is not sharded first, or send its statements one by one."
        return replace(not_yet(_BLOCK, reason, advice), probe=True)
    if form.kind is Kind.DIAGNOSTICS and form.of_server:  # SIGNAL names nothing: any server does the same
        return Text(statement).plan(Place(), About())
    if form.kind in _NOT_FOR_SHARDS:
        found = _elsewhere(statement) or plan_nowhere(statement, About()) or _unknown_procedure(statement)
        return found or _not_for_shards(statement)
    return None


_BLOCK: Final = "a block of statements outside of a routine"


def _unknown_procedure(statement: Statement) -> Plan | None:
    """The answer to CALL of a procedure in a sharded database; None for anything else."""
    source, names = statement.source, statement.names
    at = name_of(source, recognize(source))
    if statement.form.kind is not Kind.CALL or not source.is_name(at):
        return None
    database, name = names.env.database or "", source.at(at).name
    if source.is_op(at + 1, "."):
        database, name = name, source.at(at + 2).name
    logical = names.schema.databases.get(database)
    if logical is None or logical.keyspace is not None:
        return None
    arguments = {"procedure": f"{database}.{name}", "place": _some_database(names)}
    return Reject(error="procedure_not_on_shards", arguments=arguments)


_NOT_FOR_SHARDS: Final = frozenset(
    {Kind.DEFINITION, Kind.MAINTENANCE, Kind.ACCOUNT, Kind.SERVER, Kind.LOCK, Kind.LOAD, Kind.CALL}
    | {Kind.HANDLER, Kind.PREPARED, Kind.XA, Kind.EXPLAIN, Kind.DIAGNOSTICS}
)
"""Families of statements that run on one host alone, which a sharded database does not name."""


def _not_for_shards(statement: Statement) -> Reject:
    """The refusal of a statement for which a sharded database has no single host."""
    place = _some_database(statement.names)
    refused = not_yet(statement.form.words, *_why(statement, place))
    return replace(refused, probe=True, place=place, confined=_why(statement, "")[1])


def _why(statement: Statement, place: str) -> tuple[str, str]:
    """The reason why a statement cannot run in a sharded database, and what to do instead. `place`: a shard's
    database; "" if the user has no rights in any.
    """
    source, form = statement.source, statement.form
    if form.words in ("RENAME TABLE", "RENAME TABLES"):
        rename = f" (RENAME TABLE {place}.old TO {place}.new)" if place else ""
        return (
            "a sharded table is called as the schema calls it",
            f"Rename it on each shard{rename}, then in the schema.",
        )
    if form.kind is Kind.ACCOUNT:
        reason = "the proxy's users are in its settings, and accounts are each server's own"
        return reason, "Change the settings, or run it on the servers themselves."
    if form.defines and form.objects is Objects.TRIGGER:
        reason = "a sharded database has the tables that the schema names, and no triggers"
        advice = f"Do it on each shard: USE {place}, then name the table without a database."
        return reason, advice if place else ""
    elsewhere = "Name a database that is not sharded" + (f", or a shard's ({place})." if place else ".")
    if form.defines and form.objects.has_code:
        reason = (
            f"a sharded database has the tables that the schema names, and no {form.objects.name.lower()}s"
        )
        return reason, elsewhere
    if State.TABLE in form.leaves and any(source.is_word(at, "SELECT") for at in range(len(source.tokens))):
        reason = "a temporary table is on one host, and the rows are on many"
        return reason, "Create it in a database that is not sharded, with its columns, then INSERT … SELECT."
    reason = "it does not say which shard it is for"
    if State.TABLE in form.leaves:
        return reason, elsewhere
    if form.kind is Kind.PREPARED:
        advice = (
            "Prepare it by the protocol, as drivers do; or USE a database that is not sharded first, for its"
        )
        return reason, advice + (f" tables, or {place}, for that shard alone." if place else " tables.")
    return reason, f"USE {place} first: then it is for that shard and its host alone." if place else ""


def _some_database(names: Names) -> str:
    """The database of a shard, for an example."""
    for keyspace in names.topology.keyspaces.values():
        if keyspace.sharded and keyspace.all_shards:
            return keyspace.database_of(keyspace.all_shards[0]).decode()
    return "the physical database"


def _elsewhere(statement: Statement) -> Plan | None:
    """The plan of a statement all of whose qualified names are in one database that is not sharded."""
    source, names, form = statement.source, statement.names, statement.form
    ctes = _of_with(statement)
    names_objects = form.defines or form.kind is Kind.MAINTENANCE or State.TABLES in form.leaves
    if names_objects and _names_here(source, ctes):
        return None  # what is not qualified is in the current database
    found: dict[str, None] = {}
    databases = databases_named(source, names)
    for at in range(1, len(source.tokens)):
        if not source.is_name(at):
            continue
        if form.objects is Objects.TRIGGER and source.is_word(at, "NEW", "OLD"):
            continue  # a row, in a trigger's body
        qualifies = source.is_op(at + 1, ".") and not source.is_op(at - 1, ".")
        if qualifies or source.is_word(at - 1, "FROM", "IN"):
            name = source.tokens[at].name
            if name in databases or (qualifies and source.is_op(at + 2, "*")):
                found[name] = None
    if len(found) != 1:
        return None
    database = next(iter(found))
    logical = names.schema.databases.get(database)
    if logical is not None and logical.keyspace is None:
        return None
    bare = _beside(statement, ctes)
    if bare and names.env.database is None:
        return Reject(error="no_database", arguments={})
    if bare:
        return not_yet(
            f"{source.tokens[0].text} of tables in several databases",
            f"'{bare}' is in the current one, which is not {database}",
            "Name the tables of one database at a time.",
        )
    target = names.target(TableRef("table", Span(0, 0), "", database))
    about = About((database,))
    if target.form == "physical":
        return Text(statement).plan(Place(locations=((target.keyspace, target.shard),)), about)
    return Text(statement).plan(Place((target.keyspace,)), about)


def _of_with(statement: Statement) -> frozenset[int]:
    """The places in a definition's query where a name stands for a query of WITH, as far as it can be read.
    Elsewhere the same name is a table's.
    """
    source = statement.source
    starts = (
        at for at in range(len(source.tokens)) if source.is_word(at, "SELECT") or _opens_ctes(source, at)
    )
    first = next(starts, -1) if source.is_word(0, "CREATE", "ALTER") else -1
    if first < 0 or not any(_opens_ctes(source, at) for at in range(first, len(source.tokens))):
        return frozenset()
    while source.is_op(first - 1, "("):
        first -= 1
    parser, scope = Parser(source), Scope(source)
    parser.at = first
    try:
        query = parser.query(None)
        scope.add_query(statement.names, query)
    except (Refuse, Unreadable):
        return frozenset()
    whole = parser.at == parser.end or source.is_word(parser.at, "WITH")  # CHECK OPTION
    inner = (ref.span.first for ref, target in scope.targets.items() if target.form == "inner")
    return frozenset(inner) if whole else frozenset()


def _opens_ctes(source: Source, at: int) -> bool:
    """Whether WITH at `at` gives names to queries."""
    if not source.is_word(at, "WITH"):
        return False
    name = at + 2 if source.is_word(at + 1, "RECURSIVE") else at + 1
    end = source.closing[name + 1] + 1 if source.is_op(name + 1, "(") else name + 1
    return source.is_name(name) and source.is_word(end, "AS") and source.is_op(end + 1, "(")


def _beside(statement: Statement, ctes: Container[int]) -> str:
    """The first name of a table that has no database before it, where another has; "" for none. Which one a
    server takes it for hangs on the connection. The body of a routine is the routine's database's.
    """
    source, form = statement.source, statement.form
    if form.kind in (Kind.SHOW, Kind.HELP, Kind.ACCOUNT) or defines_routine(source):
        return ""
    select = next(
        (at for at in range(len(source.tokens)) if source.is_word(at, "SELECT")), len(source.tokens)
    )
    places = [at for at in tables_expected(source) if at > select]
    if form.objects in (Objects.TABLES, Objects.TABLE, Objects.INDEX, Objects.VIEW) and not _makes(form):
        depth = 0
        for at in range(1, len(source.tokens)):
            depth += source.is_op(at, "(") - source.is_op(at, ")")
            if source.is_word(at, "ON", "FOR"):
                break
            if not depth and source.is_op(at, ","):
                places.append(at + 1)
    for at in sorted(places):
        named = source.is_name(at) and not source.is_op(at + 1, ".", "(") and not _opens_ctes(source, at)
        if named and at not in ctes:
            return source.at(at).name
    return ""


def _makes(form: StatementForm) -> bool:
    """Whether the commas of the statement are those of a table's definition, and not of a list of names."""
    return form.verb in ("CREATE", "ALTER")


_ROUTINES: Final = ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT")
_OBJECTS: Final = ("TABLE", "TABLES", "VIEW", "SEQUENCE", *_ROUTINES)


def _names_here(source: Source, ctes: Container[int]) -> bool:
    """Whether a definition names a table, view or routine without its database. The body of a routine is not
    looked into: its names are of the routine's own database.
    """
    body = any(source.is_word(at, *_ROUTINES) for at in range(1, min(len(source.tokens), 12)))
    at = 1
    while at < len(source.tokens):
        on = source.is_word(at, "ON") and (body or source.is_word(0, "CREATE", "DROP"))
        if source.is_word(at, *_OBJECTS, "FROM", "JOIN", "LIKE", "TO") or on:
            place = at + 1
            while source.is_word(place, "IF", "NOT", "EXISTS", "ONLY", "TABLE"):
                place += 1
            plain = source.is_name(place) and not source.is_op(place + 1, ".", "(") and place not in ctes
            if source.is_word(at, "TO"):  # CONVERT TO CHARACTER SET, RENAME COLUMN a TO b
                plain &= not (
                    source.is_word(place, "CHARACTER") or source.is_word(at - 2, "COLUMN", "INDEX", "KEY")
                )
            if plain and not source.is_word(place, "DELETE", "UPDATE", "SCHEDULE", "COMPLETION"):
                return True
            if body and (on or source.is_word(at, "PROCEDURE", "FUNCTION", "EVENT")):
                return False
        at += 1
    return False


def _database(statement: Statement, about: About) -> Plan:
    """CREATE, ALTER or DROP DATABASE: of one that is not sharded on its host, of one that the schema does not
    name on the default host.
    """
    source, names = statement.source, statement.names
    database = named_as_database(source) or None
    if database is None:
        database = names.env.database
        about = about._replace(database=database)
    if database is None:
        return refused(Refuse("no_database"))
    about = about._replace(databases=(database,))
    logical = names.schema.databases.get(database)
    if logical is not None and logical.keyspace is not None:
        return Text(statement).plan(Place((logical.keyspace,)), about)
    recognized = recognize(source)
    if logical is not None and source.is_word(0, "CREATE"):
        return CreateExisting(
            access=statement.form.access,
            database=database,
            if_not_exists=name_of(source, recognized) > recognized.end,
            databases=(database,),
        )
    if logical is not None or names.physical(database) is not None or names.topology.default is None:
        what = f"{source.tokens[0].text} DATABASE"
        return not_yet(what, f"'{database}' is the topology's business", "Do it on the servers.")
    return Text(statement).plan(Place(("",)), about)
