"""What a statement has left behind on its connection: asked for while the connection is still the session's.

User variables, LAST_INSERT_ID() and FOUND_ROWS() live on the server's connection, which another client may
use next. They are read back, and kept in the session; user variables among its settings, so that they are
put on whatever connection it uses later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import TYPED_NULL, variable_name
from proxy.engine.session_changes import follow
from proxy.engine.session_sync import (
    NEVER_FOUND,
    PRIMING_VARIABLE,
    TELL_TRANSACTION_NO_MORE,
    asks_for_warnings,
)
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.session.transaction import HIDDEN, PLAINLY, XA, modes_of
from proxy.wire.constants import ColumnFlag, ColumnType, Status
from proxy.wire.packets import Ok, frame
from proxy.wire.resultset import NUMERIC, Column, decode_column
from rewriter.plans import Plan, Values
from rewriter.plans.characteristics import PLAIN, Characteristics
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.found_rows import ASK, ONE, PRIMED
from rewriter.sql.statements.routines import Left

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.state import Session

_NUMBER = re.compile(rb"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
#: Quotes, and what servers skip in front of a number.
_AROUND_NUMBER = b"'\" \t\n\v\f\r"
#: So many literals are looked at for an insert id; with more of them the server is asked.
MOST_LITERALS = 2000

_READ_ONLY = int(Status.IN_TRANS_READONLY)
#: Whatever the session's sql_select_limit is.
_ONE = b" LIMIT 1"
_ALL = b" LIMIT 18446744073709551615"
#: The names of a connection's user variables: statements of MariaDB and of MySQL.
_NAMES = {
    "mariadb": b"SELECT variable_name FROM information_schema.user_variables" + _ALL,
    "mysql": b"SELECT variable_name FROM performance_schema.user_variables_by_thread "
    b"WHERE thread_id = PS_CURRENT_THREAD_ID()" + _ALL,
}


def ends_one_part(session: Session, conn: BackendConnection, effects: Effects | None) -> bool:
    """Whether code that the host has run has ended its part of a transaction that is on others, too."""
    if effects is None or not (effects.routine or effects.changed or effects.calls):
        return False
    if conn.scanner.err is not None or conn.in_transaction:
        return False
    transaction = session.transaction
    return transaction.held.get(conn.host) is conn and transaction.elsewhere(conn.host)


def pin(session: Session, conn: BackendConnection, effects: Effects, literals: Values) -> None:
    """Note what keeps the session on `conn` from now on, and what no longer does."""
    kept = session.transaction.pins.setdefault(conn.host, [])
    database = conn.database or session.database or ""
    for kind, name in effects.unpins:
        what = (kind, _written(kind, name, literals, database))
        if not what[1]:
            kept[:] = [one for one in kept if one[0] != kind]
        elif what in kept:
            kept.remove(what)
    for kind, name in effects.pins:
        conn.unclean = conn.unclean or kind == "prepare"  # `session_sync.preparing` does it too, by name
        what = (kind, _written(kind, name, literals, database))
        if kind == "lock" or what not in kept:
            kept.append(what)
    if kept:
        conn.pinned, conn.for_cursors = True, conn.for_cursors and not effects.pins
        # at once, not when all is asked: other sessions may ask for the holder of a lock
        session.transaction.held.setdefault(conn.host, conn)
    else:
        del session.transaction.pins[conn.host]


def _written(kind: str, name: str | int, literals: Values, database: str) -> str:
    """The name of what a statement leaves or ends; of a table with its database."""
    if isinstance(name, int):
        return literals[name][:-1].decode("utf-8", "replace").lower()
    if kind == "table" and name and "\0" not in name:
        name = f"{database}\0{name}"
    return name.lower()


def generated(client: Exchange, effects: Effects, ok: Ok | None, literals: Values) -> bool | None:
    """Whether the insert id of a reply is one that the server made; None when only the server knows."""
    if not effects.insert_id:
        return True
    if effects.insert_id == "given":
        return False
    if effects.asks_insert_id or ok is None:
        return None
    if not ok.insert_id:
        return False
    if len(literals) > MOST_LITERALS or any(_means(literal, ok.insert_id) for literal in literals):
        return (
            False if client.services.given_ids.gives(client.plan, effects, literals, ok.insert_id) else None
        )
    return True


def _means(literal: bytes, number: int) -> bool:
    """Whether a literal may have this value in an integer column."""
    if literal == b"NULL":
        return False
    text = literal.strip(_AROUND_NUMBER)
    found = _NUMBER.match(text)
    if found is None or text[:2].lower() in (b"0x", b"0b"):
        return b"\\" in text or (literal[:1] not in (b"'", b'"') and bool(literal))
    if len(text) < 19 and found[0].isdigit():
        return int(found[0]) == number
    return abs(float(found[0]) - number) <= max(1.0, number * 1e-12)


_PING = frame(b"\x0e")
_TEMPORARY = b"SELECT 1 FROM information_schema.routines WHERE routine_definition LIKE '%TEMPORARY%' LIMIT 1"


def counts(session: Session, effects: Effects, ok: Ok | None, rows: int, literals: Values) -> bool:
    """Note what a reply of so many `rows` tells of FOUND_ROWS(); whether only the server knows it."""
    found = effects.found_rows
    if isinstance(found, int):
        session.apply(Outcome(found=rows + int(literals[found])))
        return not rows
    if found == ONE:
        session.apply(Outcome(found=1))
    return found in (ASK, PRIMED)


def effects_on(client: Exchange, host: str, plan: Plan) -> Effects | None:
    """The effects of a statement that one host runs, with those of its triggers and functions there."""
    services = client.services
    routines, effects = services.routines.leaving.get(host), plan.effects
    if routines is not None:
        effects = routines.added(effects, plan.names)
    if effects is not None and effects.calls:
        bodies = services.routines.bodies.get(host)
        if bodies is not None and bodies.harmless(effects.calls):
            # should one have become another since: MariaDB tells at once, MySQL in its next OK
            effects = effects._replace(
                calls=(), reads=effects.reads or not client.session.env.flavour.tells_changes_at_once
            )
    return effects


def left_behind(client: Exchange, conn: BackendConnection, effects: Effects, literals: Values) -> bool:
    """Note the effects that a complete reply tells of; whether there is more to ask the server for."""
    session, ok = client.session, conn.scanner.ok
    asks_next = effects.transaction and not used_up(session, conn)
    if effects.pins or effects.unpins:
        pin(session, conn, effects, literals)
    if effects.database:
        conn.owner.database_changed()
        if session.database == effects.database:  # it is dropped: there is no current one then
            session.database = None
            session.refresh_env()
    if effects.routine or effects.calls:
        conn.unclean = True
    if effects.reads:
        conn.unread = True
    made = generated(client, effects, ok, literals)
    if made and ok is not None and ok.insert_id:
        session.apply(Outcome(insert_id=ok.insert_id))
    counted = not counts(session, effects, ok, conn.scanner.rows, literals)
    asks = effects.routine or effects.changed or effects.defines or effects.tables
    asks = asks or asks_next or asks_for_warnings(session, effects)
    return made is None or not counted or asks or bool(effects.calls or effects.variables)


def used_up(session: Session, conn: BackendConnection) -> bool:
    """Note that the statement has used up what SET TRANSACTION has set; False if only the server knows. It
    tells of READ ONLY and READ WRITE; an isolation level alone is taken for used up.
    """
    said = session.transaction.next
    if not session.autocommit or said is None:
        return True
    if said.read_only is None or conn.in_transaction or session.transaction.locks_tables:
        session.use_up()
        return True
    return False


async def ask_next_transaction(session: Session, conn: BackendConnection) -> None:
    """Ask whether the last statement on `conn` has used up SET TRANSACTION READ ONLY or READ WRITE: a
    transaction that begins now has what is still set, or else the session's own access mode.
    """
    said, own = session.transaction.next, bool(modes_of(session.settings).read_only)
    if said is None or said.read_only is None or not session.autocommit or conn.in_transaction:
        return
    if session.transaction.locks_tables:  # START TRANSACTION would end LOCK TABLES, which uses it up
        session.use_up()
        return
    begun = await Collector.after_statement(conn, b"START TRANSACTION")
    if begun.ok is None:
        return
    await Collector.after_statement(conn, b"ROLLBACK" + PLAINLY)
    if said.read_only is own or bool(begun.ok.status & _READ_ONLY) is own:
        session.use_up()


async def _adopt_next_transaction(
    session: Session, conn: BackendConnection, effects: Effects, told: str | None
) -> None:
    """Make the session's what code has set for the next transaction; with autocommit the connection has it no
    more. `told`: what session tracking says of it, None if nothing has changed.
    """
    said = Characteristics.told(told or "")
    if told is None and session.transaction.next is not None:
        if effects.transaction:
            await ask_next_transaction(session, conn)
    elif conn.in_transaction or session.transaction.locks_tables:
        pass  # what is told is the open one's; and START TRANSACTION would end LOCK TABLES
    elif not session.autocommit:  # the connection keeps it for what follows there
        if said != PLAIN:
            session.set_next(said)
    elif said != PLAIN or (told is None and conn.tracked_before):
        begun = await Collector.after_statement(conn, b"START TRANSACTION")
        await Collector.after_statement(conn, b"ROLLBACK" + PLAINLY)
        read_only = begun.ok is not None and bool(begun.ok.status & _READ_ONLY)
        if said == PLAIN and read_only is not bool(modes_of(session.settings).read_only):
            said = Characteristics(read_only=read_only)  # the same as tracking knew of another one
        if said != PLAIN:
            session.set_next(said)
    elif told is not None and session.transaction.next is not None:
        session.use_up()
    if effects.routine or effects.calls:  # behind all else, so that tracking knows of nothing any more
        await Collector.after_statement(conn, TELL_TRANSACTION_NO_MORE)


async def ask_left_behind(
    session: Session,
    conn: BackendConnection,
    effects: Effects,
    ok: Ok | None = None,
    *,
    asks: bool = False,
    counted: bool = True,
) -> bool:
    """Ask the server that has just run a statement with these effects. `asks`: for LAST_INSERT_ID() too, when
    `ok`, its reply, does not tell. `counted`: it need not be asked for FOUND_ROWS(). Returns whether it has
    said that the insert id of `ok` is the client's own.

    The statement's warnings are read before: on MySQL any further statement but SHOW ends them.
    """
    if effects.transaction and not (effects.routine or effects.calls or effects.changed):
        await ask_next_transaction(session, conn)
    given = False
    asked = [b"LAST_INSERT_ID()"] if asks else []
    asked += [] if counted else [b"FOUND_ROWS()"]
    if asked:
        reply = await Collector.after_statement(conn, b"SELECT " + b", ".join(asked) + _ONE)
        if reply.err is None:
            row = reply.values()[0]
            id = int(row[0] or 0) if asks else 0
            if asks and (effects.asks_insert_id or ok is None or ok.insert_id == id):
                session.apply(Outcome(insert_id=id))
            given = asks and ok is not None and ok.insert_id != id
            found = int(row[-1] or 0)
            if not counted and not (effects.found_rows == PRIMED and found == NEVER_FOUND):
                session.apply(Outcome(found=found))
    if effects.variables:
        await _take_over(session, conn, effects.variables)
    return given


async def _adopt(client: Exchange, conn: BackendConnection, effects: Effects, *, changed: bool) -> None:
    """What code has set is the session's. `changed`: the server has said that it has set something, or may
    say so when it is asked.
    """
    session = client.session
    told = (await follow(client, conn) if changed else conn.changes).transaction
    await _adopt_next_transaction(session, conn, effects, told)
    now = conn.settings.get("autocommit")
    if now in (b"0", b"1") and (now == b"1") is not session.autocommit:
        session.settings = session.settings.with_values({"autocommit": now})
        session.refresh_env()
    transaction = session.transaction
    if not (effects.routine and conn.in_transaction):
        return
    transaction.code = True
    if session.autocommit and not (transaction.explicit or XA in transaction.pins.get(conn.host, ())):
        identities = session.identities if session.distributes else None
        transaction.go_on_from(conn, modes_of(session.settings), identities)


async def ask_after_code(
    client: Exchange, conn: BackendConnection, effects: Effects, *, failed: bool
) -> None:
    """After a statement that has run code, or may have, of which the proxy did not know that it changes
    something: what it has set is the session's. `failed`: an error tells nothing of what was done before it.
    """
    session = client.session
    changed = effects.changed
    if not changed and not session.env.flavour.tells_changes_at_once:
        was, conn.unclean = conn.unclean, False
        await Collector(own=False).run(conn, _PING)
        changed, conn.unclean = conn.unclean, conn.unclean or was
    await _adopt(client, conn, effects, changed=changed or failed)
    if not changed and not failed:
        return
    # the statement's own words say what it changes, or the catalogs what it runs: that is read back already
    known = effects.variables or effects.pins or effects.unpins or effects.database
    defines = client.plan is not None and client.plan.implicit_commit
    if not changed or (known and knows_code(client, conn.host, effects)) or defines:
        return
    client.services.routines.doubted(client.services.serving.topology, conn.host)
    await _read_all(client, conn, effects, changed=True)


def knows_code(client: Exchange, host: str, effects: Effects) -> bool:
    """Whether the host's catalogs have told of all functions that the statement calls."""
    bodies = client.services.routines.bodies.get(host)
    return not effects.calls or (bodies is not None and bodies.knows(effects.calls))


async def ask_after_routine(
    client: Exchange, conn: BackendConnection, effects: Effects, *, failed: bool
) -> None:
    """After a statement that may have run anything. `failed`: as for `ask_after_code`."""
    await _adopt(client, conn, effects, changed=effects.changed or failed)
    routines = client.services.routines
    if effects.procedure and conn.in_transaction and not failed:
        known = routines.bodies.get(conn.host)
        if known is None or not known.has(effects.procedure):  # it may set savepoints
            await routines.learn(client.services.serving.topology, (conn.host,))
    await _read_all(client, conn, effects, changed=effects.changed)


async def _read_all(client: Exchange, conn: BackendConnection, effects: Effects, *, changed: bool) -> None:
    """Read all user variables back: a routine may have assigned any. `changed`: the server has said that
    something of the session was, so it keeps the connection, unless it is known what.
    """
    session, plan = client.session, client.plan
    words = frozenset[str]() if plan is None else plan.names
    names_sql = _NAMES[session.env.flavour.name]
    reply = await Collector.after_statement(conn, names_sql)
    known = client.services.routines.bodies.get(conn.host)
    left = known.called(effects.procedure, words) if known is not None and effects.procedure else None
    if reply.err is not None and left is None:
        left = await _learnt(client, conn, effects, words)
    if left is not None and left.pins:
        pin(session, conn, Effects(pins=tuple(left.pins)), ())
    elif changed and (left is None or not left.variables):
        pin(session, conn, Effects(pins=(("settings", ""),)), ())
    if reply.err is not None:
        # MySQL without its performance schema, or no right to look
        if left is None:  # the session stays where its variables are
            conn.pinned = True
            session.transaction.pins.setdefault(conn.host, []).append(HIDDEN)
            return
        await _take_over(session, conn, sorted(left.variables))
        return
    variables = [(row[0] or b"").decode("utf-8", "replace").lower() for row in reply.values()]
    await _take_over(session, conn, [name for name in variables if name != PRIMING_VARIABLE])
    if await _has_temporary_tables(session, conn, executes=effects.executes):
        pin(session, conn, Effects(pins=(("table", ""),)), ())


async def _learnt(
    client: Exchange, conn: BackendConnection, effects: Effects, words: frozenset[str]
) -> Left | None:
    """Read the host's catalogs again to learn the effects of code that was just created without the proxy.
    Returns None if they do not show the effects.
    """
    routines, procedure = client.services.routines, effects.procedure
    known = routines.bodies.get(conn.host)
    if known is not None and (known.has(procedure) if procedure else known.knows(effects.calls)):
        return None
    await routines.learn(client.services.serving.topology, (conn.host,))
    known = routines.bodies.get(conn.host)
    if known is None:
        return None
    if procedure:
        return known.called(procedure, words)
    found = known.added(None, words) or Effects()
    if found.routine or not (effects.calls and known.knows(effects.calls)):
        return None
    return Left(frozenset(found.variables), frozenset(found.pins))


async def _has_temporary_tables(session: Session, conn: BackendConnection, *, executes: bool) -> bool:
    """Whether a routine may have left temporary tables, or a prepared text if the statement `executes` one.
    MariaDB counts their making for each connection, MySQL that of all tables; both begin anew with a reset,
    which each connection gets that had some.
    """
    reply = await Collector.after_statement(conn, b"SHOW SESSION STATUS LIKE 'Com_create%table'")
    counted = session.env.flavour.counts_temporary_tables
    name = b"Com_create_temporary_table" if counted else b"Com_create_table"
    if reply.err is not None or [name, b"0"] in reply.values():
        return False
    if counted or executes:  # of which nobody knows the text
        return True
    reply = await Collector.after_statement(conn, _TEMPORARY)
    return reply.err is None and bool(reply.rows)


async def _take_over(session: Session, conn: BackendConnection, names: Iterable[str]) -> None:
    """`read_variables` after a statement that is answered already: if they cannot be kept the next ones are
    refused, since they may read them.
    """
    try:
        await read_variables(session, conn, names)
    except ProxyError as error:
        if error.kind.name in ("variables_too_large", "session_memory", "client_memory"):
            session.transaction.refuse(error.kind.name, str(error.details.get("limit", "")))
        raise


async def read_variables(session: Session, conn: BackendConnection, names: Iterable[str]) -> None:
    """Take over the values that user variables have on `conn`, which has the session's settings otherwise.

    ProxyError when they cannot be read, or are more than the session may keep: then it has its old ones.
    """
    wanted = list(dict.fromkeys(names))
    if not all(map(session.names, wanted)):  # the others stay where they are
        pin(session, conn, Effects(pins=(("settings", ""),)), ())
        wanted = list(filter(session.names, wanted))
    if not wanted:
        return
    parts: list[bytes] = []
    for name in wanted:
        variable = variable_name(name)
        digits = b"CASE WHEN LENGTH(%s) <= %d THEN HEX(%s) END" % (
            variable, session.variables_limit, variable,
        )  # fmt: skip
        parts.append(b"%s, %s, COLLATION(%s)" % (variable, digits, variable))
    reply = await Collector.after_statement(conn, b"SELECT " + b", ".join(parts) + _ONE)
    if reply.err is not None:
        conn.close()
        reason = f"cannot read user variables back: {reply.err.text()}"
        raise ProxyError("internal", reason=reason)
    row = reply.values()[0]
    columns = [decode_column(payload) for payload in reply.columns[::3]]
    if any(value is not None and digits is None for value, digits in zip(row[::3], row[1::3], strict=True)):
        conn.has(session.settings.base.unsure_of(f"@{name}" for name in wanted))
        raise ProxyError("variables_too_large", limit=session.variables_limit)
    changed = {
        f"@{name}": variable_literal(columns[index], *row[3 * index : 3 * index + 3])
        for index, name in enumerate(wanted)
    }
    try:
        session.take_settings(session.settings.with_values(changed))
    except ProxyError:
        conn.has(session.settings.base.unsure_of(changed))
        raise
    conn.has(session.settings.base)


def _typed_null(column: Column, collation: bytes) -> bytes:
    """NULL of a variable's type; without one for what may never have been set."""
    if column.type in (ColumnType.FLOAT, ColumnType.DOUBLE):
        return TYPED_NULL + b"DOUBLE)"
    if column.type in (ColumnType.NEWDECIMAL, ColumnType.DECIMAL):
        return TYPED_NULL + b"DECIMAL(65,30))"
    if column.type in NUMERIC:
        return TYPED_NULL + (b"UNSIGNED)" if column.flags & ColumnFlag.UNSIGNED else b"SIGNED)")
    if collation == b"binary":
        return b"NULL"
    return TYPED_NULL + b"CHAR CHARACTER SET %s) COLLATE %s" % (collation.partition(b"_")[0], collation)


def variable_literal(
    column: Column, value: bytes | None, digits: bytes | None, collation: bytes | None
) -> bytes:
    """A user variable's value as SQL that gives it again, with its type and collation, under any settings.

    `digits`: its bytes in hexadecimal, for text.
    """
    if value is None:
        return _typed_null(column, collation or b"binary")
    if column.type in (ColumnType.FLOAT, ColumnType.DOUBLE):
        return value if b"e" in value.lower() else value + b"e0"
    if column.type in (ColumnType.NEWDECIMAL, ColumnType.DECIMAL):
        return value if b"." in value else value + b"."
    if column.type in NUMERIC:
        return b"CAST(%s AS UNSIGNED)" % value if column.flags & ColumnFlag.UNSIGNED else value
    if not collation or collation == b"binary":
        return b"_binary x'%s'" % (digits or b"")  # without _binary MySQL takes it for a number, too
    return b"_%s x'%s' COLLATE %s" % (collation.partition(b"_")[0], digits or b"", collation)
