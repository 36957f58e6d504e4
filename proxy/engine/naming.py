"""What servers say of their databases and accounts, as a client must hear it: with the proxy's names.

A server names the shard's database in many an error and warning: that of a foreign key, and with MariaDB of
a CHECK and of a value that does not fit.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from proxy.backends import OWN_ACCOUNT
from proxy.session.outcome import Diagnostic
from proxy.wire.packets import Err
from rewriter.plans.gather import SCRATCH

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
_SCRATCH: Final = SCRATCH.strip(b"`").decode()


def logical(client: AtWork, text: str) -> str:
    """A server's message. The databases in it stay when the client itself has named the shard's."""
    plan = client.plan
    if "denied " in text:
        text = _of_user(client, text)
    if plan is None or not plan.databases or plan.names_physical:
        return text
    databases, topology = plan.databases, client.snapshot.topology

    def shown(found: re.Match[str]) -> str:
        name = found[0]
        own = name in databases or (name != _SCRATCH and topology.physical(name) is None)
        return name if own else databases[0]

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


def logical_error(client: AtWork, error: Err) -> Err:
    """The same of an error."""
    codec = client.session.results_codec
    text = error.text(codec)
    told = logical(client, text)
    if told == text:
        return error
    return replace(error, message=told.encode(codec, "replace"), own=error.own or error.message)


def logical_rows(client: AtWork, rows: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same of what SHOW WARNINGS shows."""
    return [replace(one, message=logical(client, one.message)) for one in rows]
