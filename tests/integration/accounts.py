"""Numbers kept in users, and what a reply says of the transaction."""

from __future__ import annotations

from tests.integration.raw import AUTOCOMMIT, IN_TRANS, Raw, Reply


def flags(reply: Reply) -> tuple[bool, bool]:
    """Autocommit and in transaction, of a reply that is no error."""
    assert reply.kind != "err", reply
    return bool(reply.status & AUTOCOMMIT), bool(reply.status & IN_TRANS)


def number_of(client: Raw, user: int) -> int:
    return int(client.ask(f"SELECT JSON_EXTRACT(data, '$.n') FROM users WHERE id = {user}").value or -1)


def setting(user: int, n: int) -> str:
    return f"UPDATE users SET data = JSON_SET(data, '$.n', {n}) WHERE id = {user}"
