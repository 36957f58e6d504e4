"""What servers say of their databases and accounts, as a client must hear it: with the proxy's names.

A server names the shard's database in many an error and warning: that of a foreign key, and with MariaDB of
a CHECK and of a value that does not fit.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from proxy.backends import OWN_ACCOUNT
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic
from proxy.wire.packets import Err
from rewriter.plain.called import NOWHERE
from rewriter.plans.gather import SCRATCH
from rewriter.sql.statements.forms import Kind
from rewriter.sql.statements.functions import is_native

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .at_work import AtWork

#: A database before a table: `db00017`.`pins`, "db00017"."pins" (ANSI_QUOTES), Table 'db00017.pins',
#: 'db00017.pins.ts'.
_BEFORE_TABLE: Final = re.compile(
    r"""(?<=[`"])[\w$]+(?=`\.`|"\.")|(?<=[Tt]able ')[\w$]+(?=\.)|(?<=')[\w$]+(?=\.[\w$]+\.[\w$]+')"""
)
#: The virtual `id` of an object table, as MariaDB and MySQL print the expression that stands for it.
_ID: Final = re.compile(r"(\()?((?:`[^`]+`\.){0,2})`local_id` \+ \d+(?(1)\))")
#: SELECT command denied to user 'shardgate_read'@'10.0.0.7' for table …; Access denied for user ….
_DENIED: Final = re.compile(r"(denied (?:to|for) user )'((?:[^']|'')*)'@'[^']*'")
#: … to database 'db00017'.
_TO_DATABASE: Final = re.compile(r"(?<= to database ')[\w$]+(?=')")
_OF_COMPONENT: Final = re.compile(
    r"^(?=FUNCTION .+?\.(md5|sha1?) does)FUNCTION (.+?)\.\w+ does not exist", re.IGNORECASE | re.DOTALL
)
"""In MySQL 9.6 and later these come with a component; without it the server looks for a stored function."""
#: FUNCTION information_schema.calm does not exist; … denied … to database 'information_schema'.
_IN_NOWHERE: Final = re.compile(
    rf"^FUNCTION {NOWHERE}\.(.+?) does not exist|denied .* to database '{NOWHERE}'$", re.DOTALL
)
_UNKNOWN_DATABASE: Final = re.compile(r"Unknown database '(.+)'$")
_HIDING: Final = frozenset({Kind.PREPARED, Kind.COMPOUND})
"""Statements with others in them that only a server reads."""
_SCRATCH: Final = SCRATCH.strip(b"`").decode()


def logical(client: AtWork, text: str, database: str | None = None) -> str:
    """A server's message. The databases in it stay when the client itself has named the shard's. `database`:
    whose shards it is about, where that is not the statement's first one.
    """
    plan = client.plan
    if "denied " in text:
        text = _of_user(client, text)
    if plan is None or not plan.databases or plan.names_physical:
        return text
    databases, topology = plan.databases, client.snapshot.topology

    def shown(found: re.Match[str]) -> str:
        name = found[0]
        own = name in databases or (name != _SCRATCH and topology.physical(name) is None)
        return name if own else database or databases[0]

    text = _TO_DATABASE.sub(shown, text)
    text = _ID.sub(r"\2`id`", _BEFORE_TABLE.sub(shown, text))
    return text.replace(".local_id'", ".id'")


def _of_user(client: AtWork, text: str) -> str:
    """The message with the user in the place of the account that the user's statements run under."""
    session = client.session
    account = client.services.backends.account_of(session.capability_set)

    def shown(found: re.Match[str]) -> str:
        ours = account in (OWN_ACCOUNT, found[2].replace("''", "'"))
        return f"{found[1]}'{session.user.name}'@'%'" if ours else found[0]

    return _DENIED.sub(shown, text)


def _unplaced(client: AtWork, text: str) -> ProxyError | None:
    """The error of a function that no database of the session's has. The server has looked for it in
    `NOWHERE`; to accounts with few privileges it says nothing of functions, but denies that database.
    """
    calls = () if client.plan is None else client.plan.unplaced_calls
    found = _IN_NOWHERE.search(text) if calls else None
    if found is None or (found[1] is not None and found[1].lower() not in map(str.lower, calls)):
        found, calls = _OF_COMPONENT.match(text), ()
        named = () if client.plan is None else client.plan.databases
        if found is None or found[2] in named:
            return None
    session = client.session
    flavour = session.env.flavour
    prepared = client.prepared_env
    database = session.database if prepared is None else prepared.database
    if database is None and flavour.functions_need_database:
        return ProxyError("no_database")
    name = found[1] or calls[0]
    kind = "unknown_function"
    if calls and flavour.functions_need_database and is_native(name.upper(), flavour=flavour):
        kind = "native_function_name"
    return ProxyError(kind, function=name if database is None else f"{database}.{name}")


def _of_sharded(client: AtWork, text: str) -> ProxyError | None:
    """The error of a text that only a server has read, and that names a sharded database."""
    found = _UNKNOWN_DATABASE.match(text)
    if found is None or client.plan is None or client.plan.facts.form.kind not in _HIDING:
        return None
    logical = client.snapshot.schema.databases.get(found[1])
    if logical is None or logical.keyspace is not None:
        return None
    reason = f"the server that runs it does not have the sharded database '{logical.name}'"
    what, advice = client.plan.facts.form.words, "Send the statement in it by itself."
    return ProxyError("not_supported_yet", what=what, reason=reason, alternative=advice)


def logical_error(client: AtWork, error: Err) -> Err:
    """The same of an error."""
    codec = client.session.results_codec
    text = error.text(codec)
    nowhere = _unplaced(client, text) or _of_sharded(client, text)
    if nowhere is not None:
        message, own = str(nowhere).encode(codec, "replace"), error.own or error.message
        return replace(error, code=nowhere.code, sqlstate=nowhere.sqlstate, message=message, own=own)
    told = logical(client, text)
    if told == text:
        return error
    return replace(error, message=told.encode(codec, "replace"), own=error.own or error.message)


def logical_rows(client: AtWork, rows: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same of what SHOW WARNINGS shows."""
    return [_logical_row(client, one) for one in rows]


def _logical_row(client: AtWork, row: Diagnostic) -> Diagnostic:
    nowhere = None
    if row.level == "Error":
        nowhere = _unplaced(client, row.message) or _of_sharded(client, row.message)
    if nowhere is not None:
        return replace(row, code=nowhere.code, message=str(nowhere))
    return replace(row, message=logical(client, row.message))
