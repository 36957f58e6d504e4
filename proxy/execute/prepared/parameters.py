"""The parameters of an EXECUTE as SQL literals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from proxy.engine.left_behind import MOST_LITERALS
from proxy.errors import ProxyError
from proxy.session.prepared import Statement
from proxy.wire.binary import Execute, Quoting, literals
from proxy.wire.bulk import BulkExecute, bulk_literals
from proxy.wire.packets import ProtocolError
from rewriter.plans import Values

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def parameter_literals(
    client: Exchange, statement: Statement, request: Execute | BulkExecute, sent: Mapping[int, bytes]
) -> Values:
    """The parameters as SQL literals. Raises ProxyError."""
    session = client.session
    quoting = Quoting(session.env.charset, not session.no_backslash_escapes, session.unsafe_charset)
    types = request.types or statement.types
    try:
        if isinstance(request, BulkExecute):
            return bulk_literals(request, types, statement.parameters, quoting)
        return literals(request.nulls, types, request.values, statement.parameters, sent, quoting)
    except ProtocolError as error:
        raise malformed(client, error) from None


def literals_for_effects(
    client: Exchange, statement: Statement, request: Execute | BulkExecute, sent: Mapping[int, bytes]
) -> Values:
    """The literals that the statement's effects may refer to: its own, and, when they are compared with the
    insert id, its parameters.
    """
    effects = statement.plan.effects
    if effects is None or not effects.compares_insert_id or not statement.parameters:
        return statement.literals
    if statement.parameters > MOST_LITERALS:
        return (*statement.literals, b"?")  # one of them may have any value
    try:
        return statement.literals + parameter_literals(client, statement, request, sent)
    except ProxyError:
        return statement.literals  # the server will say what is wrong with them


def malformed(client: Exchange, problem: ProtocolError) -> ProxyError:
    """The server's error for an EXECUTE packet that cannot be read."""
    if client.session.env.flavour.names_prepared_command:
        return ProxyError("wrong_arguments", command="mysqld_stmt_execute")
    return ProxyError("malformed_packet", reason=str(problem))
