"""SET: what a session changes is tried on a server, remembered, and put on every connection it uses later.

A server is the judge of every system variable: the SET runs there, with the session's settings, and the
values are read back (`CONCAT(@@sql_mode, …)` becomes the resulting text). What the proxy knows by itself
(autocommit, NAMES, its own variables) needs no round trip. User variables are settings like the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import RESULTS, TRACK, TRACKING, TYPED_NULL, variable_name
from proxy.catalog.facts import ask_defaults
from proxy.engine.admission import admit_assignment
from proxy.engine.lease import borrowed, end_transaction
from proxy.engine.left_behind import (
    ask_after_code,
    ask_after_routine,
    ask_left_behind,
    ask_next_transaction,
    effects_on,
    knows_code,
    pin,
    read_variables,
    used_up,
)
from proxy.engine.read_back import read_back, shown_by
from proxy.engine.task import TaskWork
from proxy.engine.transactions import commit_then, xa_host
from proxy.errors import ProxyError, in_parts
from proxy.session.outcome import Diagnostic, Outcome
from proxy.session.reading import charset_of, connection_of, sql_modes
from proxy.session.state import Session
from proxy.session.tracking import Tracker, shown
from proxy.session.transaction import HIDDEN
from proxy.wire.packets import Err
from rewriter.plan import Access
from rewriter.plans import BindError, Values, is_one_host, lock_host
from rewriter.plans.builtins import FOR_ALL, Assignment, SetScope, SetVariables
from rewriter.plans.characteristics import Characteristics
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.found_rows import PRIMED
from rewriter.text.tokens import quote_name

from .own_variables import OWN, characteristic, check_own, check_setting, set_own, switch, word
from .run_set import counts_rows, run_set

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_CHARACTER_SETS = (
    "character_set_client",
    "character_set_results",
    "character_set_connection",
    "collation_connection",
)
#: What SET TRANSACTION sets for one transaction, and whether it is the isolation level.
_MODES = {
    "transaction_isolation": True, "tx_isolation": True,
    "transaction_read_only": False, "tx_read_only": False,
}  # fmt: skip
_CHARSETS = (SetScope.NAMES, SetScope.CHARSET)
_RESULTS_CHARSET = "character_set_results"
_OLD_NAMES = {"transaction_isolation": "tx_isolation", "transaction_read_only": "tx_read_only"}

#: Literals that mean the same whatever the session sets later: its character set, or what a backslash is.
_PORTABLE = re.compile(
    rb"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)|NULL|TRUE|FALSE|(?P<text>'(?:[^'\\\x00\x80-\xff]|'')*')",
    re.IGNORECASE,
)
_SMALL = re.compile(rb"[-+]?[0-9]{1,18}")
#: User variables' values as a session keeps them.
_KEPT = re.compile(rb"(?:_\w+ ?)?(?:(?P<text>'[^'\\]*'|[0-9]+)|x'(?P<digits>[0-9A-Fa-f]*)')(?: COLLATE \w+)?")
#: Connection character sets in which a text's bytes are not those of the statement.
_WIDE = (b"ucs2", b"utf16", b"utf16le", b"utf32")


#: Set to DEFAULT they keep the value that a server has told. MySQL's own DEFAULT of the first two is none
#: (see `settings`), and hosts may differ in the others: by sql_mode statements are read.
_HELD = frozenset({"autocommit", "foreign_key_checks", "unique_checks", "sql_mode"})


def set_variables(client: Exchange, plan: SetVariables, values: Values) -> None:
    """All assignments of one SET, or none of them when one is refused."""
    for assignment in plan.assignments:
        _check(client.session, assignment, values)
    simple = _Simple(client, values)
    if all(simple.takes(assignment) for assignment in plan.assignments):
        active = xa_host(client)
        if active is not None and simple.autocommit and not client.session.autocommit:
            client.relay.run(active, client.sql, facts=plan.facts)  # which refuses it in its own words
            return
        simple.apply()
    else:
        TaskWork(client).start(_set_on_server(client, plan, values))


class _Simple:
    """Assignments that need no server: collected first, applied when all of a SET are of this kind."""

    def __init__(self, client: Exchange, values: Values) -> None:
        self.client = client
        self.values = values
        self.settings: dict[str, bytes] = {}
        self.own: list[tuple[str, str]] = []
        self.next: Characteristics | None = None
        self.autocommit: bool | None = None

    def takes(self, assignment: Assignment) -> bool:
        """Whether no server is needed; ProxyError when the value is wrong."""
        scope, name = assignment.scope, assignment.name
        if scope in FOR_ALL:
            return False
        text = assignment.value.render(self.values) if assignment.value is not None else None
        if scope is SetScope.NAMES:
            return self._names(assignment, text)
        if scope is SetScope.NEXT:
            said = characteristic(self.client, name, word(text))
            self.next = said if self.next is None else said.over(self.next)
            return True
        if scope is SetScope.USER:
            if not name or not name.isascii():  # @`` is a syntax error
                return False
            value = self._portable(text) if assignment.constant and text is not None else None
            if value is not None and value.upper() == b"NULL":
                value = self._null(f"@{name}")
            if value is None:
                return False
            self.settings[f"@{name}"] = value
            return True
        if name == "autocommit" and assignment.constant and (text or b"")[:1] != b"@":
            self.autocommit = self.client.session.default_autocommit if text is None else switch(name, text)
            self.settings["autocommit"] = b"1" if self.autocommit else b"0"
            return True
        if name in OWN:
            asked = word(self._kept(text) if text is not None and text[:1] == b"@" else text)
            check_own(self.client, name, asked)
            self.own.append((name, asked))
            return True
        if name == "character_set_results" and assignment.constant and text is not None:
            return self._results(text)
        if name in ("last_insert_id", "identity") and text is not None and text.isdigit():
            self.own.append(("last_insert_id", text.decode()))
            return True
        return False

    def _kept(self, text: bytes) -> bytes:
        """A user variable's value, if `text` names one whose value is a plain text or a number here."""
        name = "@" + word(text[1:]).lower()
        kept = self.settings.get(name) or self.client.session.settings.get(name)
        found = None if kept is None else _KEPT.fullmatch(kept)
        if found is None:
            return text
        digits = found["digits"]
        return found["text"] if digits is None else bytes.fromhex(digits.decode())

    def _null(self, name: str) -> bytes | None:
        """NULL for a user variable, of the type that it has; None when a server must say which that is."""
        before = self.settings.get(name) or self.client.session.settings.get(name) or b"NULL"
        if _SMALL.fullmatch(before):
            before = TYPED_NULL + b"SIGNED)"
        typed = before != b"NULL" and not before.startswith(TYPED_NULL)
        return None if typed or self._hides_variables() else before

    def _hides_variables(self) -> bool:
        """Whether a routine may have left variables that only the connection has."""
        return any(HIDDEN in kept for kept in self.client.session.transaction.pins.values())

    def _portable(self, text: bytes) -> bytes | None:
        """A literal as one that gives the same value under any settings; None when a server must say."""
        found = _PORTABLE.fullmatch(text)
        if found is None or not found["text"]:
            return None if found is None else text
        charset, collation = (
            self.client.session.settings.get(name)
            for name in ("character_set_connection", "collation_connection")
        )
        if charset is None or collation is None or charset in _WIDE or not charset.isalnum():
            return None
        if collation == b"binary":
            return b"_binary" + text  # which has no other; MariaDB takes no COLLATE binary
        return b"_%s%s COLLATE %s" % (charset, text, collation)

    def _known(self, charset: str, collate: str | None = None) -> dict[str, bytes] | None:
        """The settings of SET NAMES; None where the server knows more, or refuses it (or warns) in its own
        words.
        """
        warned = self.client.session.env.flavour.warns_of_utf8mb3
        if charset in ("utf8", "utf8mb3") and warned:
            return None
        return self.client.services.collations.names(charset, collate)

    def _names(self, assignment: Assignment, text: bytes | None) -> bool:
        collate = assignment.collate
        found = self._known(
            word(text).lower(), None if collate is None else word(collate.render(self.values)).lower()
        )
        if found is None or text is None:
            return False
        charset_of(found["character_set_client"])
        self.settings.update(found)
        return True

    def _results(self, text: bytes) -> bool:
        found = self._known(word(text).lower())
        if found is None or text[:1] == b"@":
            return False
        self.settings.update({name: found[name] for name in ("character_set_results", RESULTS)})
        return True

    def _track(self, tracker: Tracker) -> None:
        """Have the OK packet tell what was set."""
        names = [name for name in self.settings if name[0] not in "@(" and name != "collation_connection"]
        tracker.variables |= shown(self.settings, names)
        tracker.changed = tracker.changed or bool(self.settings) or self.next is None

    def apply(
        self, warnings: list[Diagnostic] | None = None, *, read_back: bool = False, tables: bool = False
    ) -> None:
        """Change the session and answer. `read_back`: its settings are a server's, known already; `warnings`
        are what that server had to say. `tables`: it has read some, which ends the warnings from before.
        """
        client, session = self.client, self.client.session
        if self.autocommit and not session.autocommit and session.transaction.lost:
            error = session.transaction.loss  # it would be its COMMIT
            end_transaction(session)
            raise error
        if self.settings:
            session.take_settings(session.settings.with_values(self.settings))
        for name, value in self.own:
            set_own(client, name, value)
        if self.next is not None:
            session.set_next(self.next)
        if session.tracker is not None:
            self._track(session.tracker)
        was = session.autocommit
        if self.settings or self.own or read_back:
            session.refresh_env()
        count = max(len(warnings or ()), getattr(warnings, "total", 0))
        shown = warnings or [] if count or tables else session.without_tables()
        session.apply(Outcome(0, diagnostics=shown))
        if self.autocommit and not was and (session.transaction.held or session.transaction.explicit):
            commit_then(client, lambda: client.reply_ok(warnings=count))
        else:
            client.reply_ok(warnings=count)


async def _set_on_server(client: Exchange, plan: SetVariables, values: Values) -> None:
    """Let a server judge: run the SET, read the values back, remember them. Of what fails behind that the
    session has nothing: it reads statements as it did, and servers are told so.
    """
    session = client.session
    statement, names, variables, everywhere = _statement(client, plan, values)
    host, database = _judge(client, plan)
    admit_assignment(client, host, write=plan.access > Access.READ)
    tables = plan.reads_tables
    before = session.settings
    try:
        async with borrowed(client, host, database, joins=True) as conn:
            touched = [name.removeprefix("@@session.") for name in names] + [f"@{one}" for one in variables]
            touched += [RESULTS] if "character_set_results" in touched else []
            uses_up = tables and before is not before.base
            was = conn.unclean
            found = await run_set(client, conn, plan, statement, touched)
            if isinstance(found, Err):
                client.fail(found)
                return
            if uses_up and not used_up(session, conn):
                await ask_next_transaction(session, conn)
            try:
                simple = await _remember(client, plan, values, conn, names, was=was)
                await read_variables(session, conn, variables)
            except BaseException:  # a KILL, too
                conn.settings = before.base.unsure_of(touched)
                raise
        if everywhere:
            await _set_elsewhere(client, host, b"SET " + everywhere)
    except BaseException:
        session.settings = before
        raise
    simple.apply(found, read_back=True, tables=not plan.facts.keeps_warnings)


async def _remember(
    client: Exchange,
    plan: SetVariables,
    values: Values,
    conn: BackendConnection,
    names: list[str],
    *,
    was: bool,
) -> _Simple:
    """Read back what `conn` has been told: the session's settings from now on. Returns what else there is to
    be applied. `was`: whether it was unclean before.
    """
    session, tables = client.session, plan.reads_tables
    if counts_rows(client, plan):
        await ask_left_behind(session, conn, Effects(found_rows=PRIMED), counted=False)
    changed = await read_back(conn, names)
    _check_reading(changed)
    effects = effects_on(client, conn.host, plan)
    others = tables or (effects is not None and (bool(effects.calls) or effects.routine))
    read = {name.removeprefix("@@session.") for name in names}
    conn.changes = conn.changes.without(read)  # the next statement in a transaction must not tell them again
    if not TRACKING.isdisjoint(read):
        conn.unclean = True  # the server may tell nothing more
    elif not others:
        conn.unclean = was  # what it has changed is read back
    if effects is not None:
        if effects.pins or effects.unpins:
            pin(session, conn, effects, values)
        await ask_left_behind(session, conn, effects, asks=bool(effects.insert_id))
        if effects.routine:
            await ask_after_routine(client, conn, effects, failed=False)
        elif not knows_code(client, conn.host, effects):
            # the server has told of the SET's own changes as well: nobody knows whether it told of more
            await ask_after_code(client, conn, effects._replace(changed=True), failed=False)
    simple = _Simple(client, values)
    for assignment in plan.assignments:
        if assignment.name in OWN or assignment.scope is SetScope.NEXT:
            simple.takes(assignment)
    if "@@session.autocommit" in changed:
        simple.autocommit = changed["@@session.autocommit"] == b"1"
    own = [one for one in plan.assignments if one.scope is SetScope.SESSION]
    defaults = {one.name for one in own if one.value is None} - _HELD
    kept = {name: value for name, value in session.settings.values.items() if name not in defaults}
    for name in ("@@session.last_insert_id", "@@session.identity"):
        if name in changed:
            session.apply(Outcome(insert_id=int(changed.pop(name))))
    kept.update({name.removeprefix("@@session."): value for name, value in changed.items()})
    if "character_set_results" in read:
        kept[RESULTS] = _results(client, plan, changed)
    for name in defaults:
        kept.pop(name, None)
    session.settings = type(session.settings).of(kept)
    if session.tracker is not None:
        session.tracker.variables = await shown_by(conn, session, _told(plan, names))
        if tables:
            session.tracker.touched.add("R")
    if not TRACKING.isdisjoint(read):
        await Collector().query(conn, TRACK)  # the session's own settings are for what its client is told
    for assignment in own:
        if assignment.name in _MODES:
            session.drop_next(isolation=_MODES[assignment.name])
    conn.has(session.settings.base)
    return simple


def _check_reading(changed: Mapping[str, bytes]) -> None:
    """Raise ProxyError for values under which the proxy could not read statements, or servers read what other
    sessions left: the session keeps those that it had, and so do its connections, which are told them anew.
    """
    if changed.get("@@session.sql_auto_is_null", b"0") != b"0":
        raise ProxyError("auto_is_null")
    if "@@session.sql_mode" in changed:
        sql_modes(changed["@@session.sql_mode"])
    if "@@session.character_set_client" in changed:
        charset_of(changed["@@session.character_set_client"])
    if "@@session.character_set_connection" in changed:
        connection_of(changed["@@session.character_set_connection"])


async def _set_elsewhere(client: Exchange, first: str, statement: bytes) -> None:
    """What is set for all sessions is set on every host. Connections opened before do not have it: they go,
    also when one host could not be told.
    """
    hosts, done = client.snapshot.topology.hosts, [first]
    failure: ProxyError | Err | None = None
    for host in hosts:
        if host == first:
            continue
        try:
            async with borrowed(client, host) as conn:
                failure = (await Collector().query(conn, statement)).err
        except ProxyError as error:
            failure = error
        if failure is not None:
            break
        done.append(host)
    try:
        await _renew(client, first)
    except ProxyError as error:
        failure = failure or error
    if failure is None:
        return
    reason = failure.text() if isinstance(failure, Err) else failure.text
    unsure = [host] if isinstance(failure, ProxyError) and failure.unsure else []
    left = [one for one in hosts if one not in (*done, *unsure)]
    outcome = in_parts(*map(", ".join, (done, left, unsure)))
    raise ProxyError("partial_write", outcome=outcome, reason=reason, advice="See to that, then repeat it.")


async def _renew(client: Exchange, host: str) -> None:
    """Have connections opened with the defaults that this host has now."""
    services = client.services
    async with borrowed(client, host) as conn:
        defaults = await ask_defaults(conn)
    services.renew(defaults)
    if services.peers is not None:
        told = {name: value.decode("latin-1") for name, value in defaults.items()}
        await services.peers.ask_others("renew", defaults=told)


def _told(plan: SetVariables, names: list[str]) -> list[str]:
    """Of what was read back, what was set by name: a collation is told as such, or not at all."""
    own = {f"@@session.{one.name}" for one in plan.assignments if one.scope is SetScope.SESSION}
    names_set = any(one.scope in _CHARSETS for one in plan.assignments)
    coupled = {f"@@session.{one}" for one in _CHARACTER_SETS[2:]}
    return [
        name
        for name in names
        if name not in coupled or name in own or (names_set and not name.endswith("collation_connection"))
    ]


def _results(client: Exchange, plan: SetVariables, changed: Mapping[str, bytes]) -> bytes:
    """The collation of results that a SET has left: a named one, or else their character set's default."""
    last = [one for one in plan.assignments if one.scope in _CHARSETS or one.name == _RESULTS_CHARSET][-1]
    if last.scope is not SetScope.NAMES or last.collate is None:
        return b""
    charset, collation = (
        word(changed.get(f"@@session.{name}")) for name in (_RESULTS_CHARSET, "collation_connection")
    )
    return client.services.collations.results(charset, collation)


def _judge(client: Exchange, plan: SetVariables) -> tuple[str, str | None]:
    """The host that shall run the SET, and in which current database."""
    topology, database = client.snapshot.topology, None
    if plan.home is not None and is_one_host(plan.home):
        try:
            host = plan.home.host(topology)
        except BindError as error:
            raise ProxyError(error.name, **error.arguments) from None
        if not plan.home.at_any_host:
            return host, plan.home.database
        database = plan.home.database
    if plan.effects is not None and plan.effects.locks:
        return lock_host(topology), database
    held = next(iter(client.session.transaction.held), None)
    return held or topology.default or topology.hosts[0], database


def _in_current(client: Exchange, plan: SetVariables) -> bool:
    """Whether the SET runs in the session's current database."""
    return plan.home is not None and _judge(client, plan)[1] == client.session.database


def _statement(
    client: Exchange, plan: SetVariables, values: Values
) -> tuple[bytes, list[str], list[str], bytes]:
    """The assignments for a server, the names of the system and user variables to read back, and those of the
    assignments that are for all servers.
    """
    parts: list[bytes] = []
    everywhere: list[bytes] = []
    names: list[str] = []
    variables: list[str] = []
    for assignment in plan.assignments:
        value = assignment.value.render(values) if assignment.value is not None else b"DEFAULT"
        name = _server_name(client, assignment.name)
        if name in OWN or assignment.scope is SetScope.NEXT:
            continue
        if assignment.scope in FOR_ALL:
            everywhere.append(b"%s %s = %s" % (assignment.scope.upper().encode(), _quoted(name), value))
            parts.append(everywhere[-1])
        elif assignment.scope is SetScope.NAMES:
            collate = assignment.collate.render(values) if assignment.collate is not None else None
            parts.append(b"NAMES " + value + (b" COLLATE " + collate if collate else b""))
            names += [f"@@session.{one}" for one in _CHARACTER_SETS]
        elif assignment.scope is SetScope.CHARSET:
            parts.append(b"CHARACTER SET " + value)
            if not _in_current(client, plan):  # not the collation of the connection's database
                parts.append(b"SESSION `collation_connection` = @@collation_server")
            names += [f"@@session.{one}" for one in _CHARACTER_SETS]
        elif assignment.scope is SetScope.USER:
            parts.append(variable_name(name) + b" := " + value)
            variables.append(name)
        else:
            parts.append(b"SESSION " + _quoted(name) + b" = " + value)
            names.append(f"@@session.{name}")
            if name in ("character_set_connection", "collation_connection"):
                names += [f"@@session.{one}" for one in _CHARACTER_SETS[2:]]
    reads = list(dict.fromkeys(names)), list(dict.fromkeys(variables))
    return b", ".join(parts), *reads, b", ".join(everywhere)


def _check(session: Session, assignment: Assignment, values: Values) -> None:
    """Raise ProxyError for what the session may not set, wherever in the list it stands."""
    scope, name = assignment.scope, assignment.name
    if scope in FOR_ALL and not session.user.sees_others:
        raise ProxyError("global_variable")
    if scope in FOR_ALL and name in OWN:
        raise ProxyError("session_variable", variable=name)
    if scope is SetScope.USER:
        check_name(session, name)
    elif scope not in _CHARSETS and not name.isascii():  # MySQL takes an s for `ſ`: it would be another name
        raise ProxyError("unknown_variable", variable=name)
    if scope is SetScope.SESSION or scope in FOR_ALL:
        check_setting(name, assignment.value.render(values) if assignment.value is not None else None)


def check_name(session: Session, name: str) -> None:
    """Raise ProxyError for a user variable whose name is outside ASCII, but in UTF-8."""
    if not session.names(name):
        raise ProxyError(
            "variable_name",
            name=name if name.isprintable() else ascii(name)[1:-1],
            charset=session.env.charset,
        )


def _quoted(name: str) -> bytes:
    """A variable's name; a key cache's (`hot.key_buffer_size`) has two parts."""
    return b".".join(quote_name(part) for part in name.split("."))


def _server_name(client: Exchange, name: str) -> str:
    """The server's name for a variable: those of SET TRANSACTION have others in MariaDB before 11.1."""
    env = client.session.env
    old = env.flavour.old_transaction_names(env.server_version)
    return _OLD_NAMES.get(name, name) if old else name
