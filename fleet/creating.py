"""`shardgate fleet create`: the databases and tables of `create`, then the accounts of `accounts`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Topology
from fleet import accounts, create, distributed
from fleet.accounts import Accounts, accounts_on
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts
from fleet.core.journal import Operation
from fleet.core.run import Report, Tool
from fleet.core.steps import Step
from fleet.create import Actual, Plan


class Creating:
    """One run. `client`: where the accounts may log in from."""

    def __init__(
        self, settings: Settings, schema: Schema, topology: Topology, hosts: Hosts, client: str = "%"
    ) -> None:
        self._settings, self._schema, self._topology, self._hosts = settings, schema, topology, hosts
        self._client = client
        self._plan: Plan = create.wanted(schema, topology)
        self._actual = Actual({})
        self._accounts: Mapping[Host, Accounts] = {}
        self._problems: list[str] = []

    def _wanted(self, host: Host) -> list[accounts.Wanted]:
        return accounts_on(self._settings.backends, host, distributed=self._settings.xa.enabled)

    def tool(self) -> Tool:
        """For the runner."""
        arguments = {} if self._client == "%" else {"from": self._client}
        return Tool("create", arguments, self._steps, self._undo, problems=self._problems)

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        self._actual = await create.look(self._schema, self._topology, self._hosts, self._plan)
        self._accounts = await self._look_at_accounts()
        self._problems[:] = [*self._problems, *self._actual.problems, *create.left_over(self._actual)]
        steps = create.steps(self._plan, self._actual)
        if self._settings.xa.enabled:
            masters = self._topology.hosts
            steps += distributed.steps(
                {host: self._actual.found[host] for host in masters if host in self._actual.found}
            )
        for host, found in self._accounts.items():
            steps += accounts.steps(
                self._wanted(host),
                self._schema,
                self._topology,
                host,
                found,
                client=self._client,
                databases=[one.name for one in self._plan[host]],
                stage=1,
            )
        return steps

    async def _look_at_accounts(self) -> dict[Host, Accounts]:
        """Of the hosts that could be asked what databases they have."""

        async def of(host: Host) -> tuple[Host, Accounts | None]:
            users = [one.user for one in self._wanted(host)]
            try:
                return host, await accounts.look(self._hosts, host, users, self._client)
            except HostError as error:
                self._problems.append(f"{host}: the accounts cannot be read: {error}")
                return host, None

        if not self._settings.backends.accounts:
            return {}
        answers = await asyncio.gather(
            *(of(host) for host in self._topology.hosts if host in self._actual.found)
        )
        return {host: found for host, found in answers if found is not None}

    async def _undo(self, operation: Operation) -> Sequence[Step]:
        return create.undo_steps(operation, *await create.with_rows(self._hosts, operation))

    async def unsound(self) -> list[str]:
        """Keys that call different bytes equal."""
        return await create.unsound_keys(self._hosts, self._plan, self._actual.found)

    def told(self, report: Report, *, dry_run: bool) -> Iterator[str]:
        """What was done on each host, or would be."""
        verb = "would make" if dry_run else "made"
        for host, found in self._actual.found.items():
            mine = [one for one in report.done if one.host == host]
            databases, tables = create.made(mine)
            there = sum(one.name in found for one in self._plan[host])
            held = sum(
                table.name in found.get(one.name, ()) for one in self._plan[host] for table in one.tables
            )
            yield (
                f"{host}: {verb} {databases} databases and {tables} tables; "
                f"{there} databases and {held} tables are there"
            )
        for host, having in self._accounts.items():
            mine = [one for one in report.done if one.host == host and one.key.startswith("account\t")]
            new = sum(one.text.startswith("make") for one in mine)
            wanted = self._wanted(host)
            there = sum((one.user, self._client) in having.existing for one in wanted)
            mended = len(mine) - new
            lacked = f", {mended} of them {'would get' if dry_run else 'got'} rights" if mended else ""
            yield f"{host}: {verb} {new} accounts with their rights; {there} are there{lacked}"
            for account in having.anonymous(self._client):
                yield (
                    f"{host}: {account} goes before the accounts made for '{self._client}' when they log in "
                    f"from there, and refuses them: DROP USER {account}"
                )
