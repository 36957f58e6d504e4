"""Whether the proxies get in where they are to be sent, with the passwords that the settings have."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from config.backends import Backends
from config.topology import Host
from fleet import accounts
from fleet.accounts import accounts_on
from fleet.core.errors import HostError
from fleet.core.hosts import DENIED, Hosts, connector
from fleet.rights import Held, read_grants

_HOW = ". Give it the password of the settings, ALTER USER '{}'@'%' IDENTIFIED BY '…', or name another there"


async def log_ins(backends: Backends, host: Host, unknown: Collection[str] = ()) -> list[str]:
    """What is wrong with the log-ins to a host, a line for each account. `unknown`: user names that are not
    there yet.
    """

    async def log_in(account: str) -> str:
        login = backends.user_for(host, account)
        if login[0] in unknown:
            return ""
        async with Hosts(connector(backends, lambda host: login)) as hosts:
            try:
                await hosts.query(host, "SELECT 1")
            except HostError as error:
                text = f"the proxies cannot log in to {host} as {login[0]}: {error}"
                return text + (_HOW.format(login[0]) if error.code in DENIED else "")
        return ""

    found = await asyncio.gather(*(log_in(one) for one in ("", *(one.user for one in backends.accounts))))
    return [one for one in found if one]


async def new_log_ins(
    backends: Backends, hosts: Hosts, host: Host, old: Host = "", databases: Collection[str] = ()
) -> list[str]:
    """The same of a host that the tool makes accounts on which it lacks. Where one account runs all, that is
    the operator's to make: then it may do on `host` with the databases what it may on `old`. HostError.
    """
    wanted = accounts_on(backends, host)
    if wanted:
        held = await accounts.look(hosts, host, ())
        there = {user for user, _ in held.existing}
        return await log_ins(backends, host, {one.user for one in wanted} - there)
    problems = await log_ins(backends, host)
    if not problems and old:
        before, now = [await _rights(backends, one) for one in (old, host)]
        for database in databases:
            if lacking := sorted(before.of(database) - now.of(database)):
                user = backends.user_for(host)[0]
                listed = ", ".join(lacking)
                problems.append(
                    f"{user} has no {listed} on {host} for {database}, as it has on {old}: GRANT it"
                )
                break
    return problems


async def _rights(backends: Backends, host: Host) -> Held:
    """Those of the proxies' own account."""
    login = backends.user_for(host)
    async with Hosts(connector(backends, lambda host: login)) as hosts, hosts.connection(host) as conn:
        await hosts.rows(conn, host, "SET SESSION sql_mode = ''")  # ANSI_QUOTES changes how grants are shown
        return read_grants(str(line) for (line,) in await hosts.rows(conn, host, "SHOW GRANTS"))
