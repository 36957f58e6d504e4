"""`OwnProxy`: a proxy of the test's own on the servers of a running demo, with other settings, users or
topology. It starts in a third of a second.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from config.backends import Backends, purpose_of
from config.load import load_schema, load_topology
from config.settings import User
from fleet.accounts import accounts_on, make_accounts
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until
from tests.support.zygote import ForkedProxy

Document = dict[str, Any]


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Document:
    """`base` with `changes`, also within nested mappings."""
    out = dict(base)
    for name, value in changes.items():
        old = out.get(name)
        out[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out


def moved(topology: Document, addresses: Mapping[str, str]) -> Document:
    """A copy of a topology document with other addresses for some hosts, and the next version."""
    text = json.dumps(topology)
    for old, new in addresses.items():
        text = text.replace(json.dumps(old), json.dumps(new))
    changed: Document = json.loads(text)
    changed["version"] = topology["version"] + 1
    return changed


def with_accounts(demo: Demo, settings: Document) -> Document:
    """The settings with accounts for users of lists of databases, which the demo has none for. They are made
    on its servers.
    """
    missing = {}
    backends = Backends.model_validate(settings["backends"])
    for user in map(User.model_validate, settings["users"]):
        purpose = purpose_of(user.role, user.databases)
        if backends.accounts and backends.account_for(user.role, user.databases) is None:
            digest = hashlib.sha256(repr((purpose[0], sorted(purpose[1]))).encode()).hexdigest()[:12]
            missing[purpose] = {
                "user": f"sg_{digest}",
                "password": digest,
                "role": str(user.role),
                "databases": list(user.databases),
            }
    if not missing:
        return settings
    changed = merged(settings, {"backends": {}})
    changed["backends"]["accounts"] = [*settings["backends"]["accounts"], *missing.values()]
    made = Backends.model_validate(changed["backends"] | {"accounts": list(missing.values())})
    schema = load_schema(settings["schema"])
    topology = load_topology(demo.directory / "topology.json")

    async def make() -> None:
        async with demo.as_hosts() as hosts:
            for host in demo.hosts:
                wanted = [
                    one
                    for one in accounts_on(made, host.address, distributed=True)
                    if one.account is not None
                ]
                await make_accounts(hosts, host.address, wanted, schema, topology)

    asyncio.run(make())
    return changed


class OwnProxy:
    """A running ``shardgate serve``. `settings` are laid over the demo's; `topology` replaces it."""

    def __init__(
        self,
        demo: Demo,
        directory: Path,
        settings: Mapping[str, Any] | None = None,
        topology: Document | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.demo = demo
        self.topology_file = directory / "topology.json"
        self.topology: Document = topology or json.loads((demo.directory / "topology.json").read_text())
        self.topology_file.write_text(json.dumps(self.topology))
        self.proxy = ForkedProxy(directory, port=0, page=True)
        base = json.loads(demo.settings.read_text()) | {
            "listen": f"127.0.0.1:{self.proxy.port}",
            "schema": str(demo.schema),
            "topology": {"file": str(self.topology_file)},
            "status": {"listen": f"127.0.0.1:{self.proxy.status_port}"},
            "workers": 1,
        }
        self.settings = with_accounts(demo, merged(base, settings or {}))
        self.log = self.proxy.log
        self._connections = ExitStack()

    def __enter__(self) -> Self:
        self.proxy.configure(self.settings)
        try:
            self.proxy.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connections.close()
        self.stop()

    def close_clients(self) -> None:
        self._connections.close()

    def stop(self) -> None:
        self.proxy.stop()
        self.proxy.release()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.proxy.pid, number)

    # -- clients

    def connect(self, **arguments: Any) -> Connection:
        """A PyMySQL connection, closed at the end."""
        mine = {"host": self.proxy.host, "port": self.proxy.port}
        connection = self.demo.connect(**(mine | arguments))
        self._connections.callback(lambda: connection.close() if connection.open else None)
        return connection

    def raw(self, *, login: bool = True, database: str | None = "demo", **arguments: Any) -> Raw:
        """A raw client, logged in as `demo`; closed at the end."""
        raw = self._connections.enter_context(Raw(self.proxy.host, self.proxy.port, **arguments))
        if login:
            reply = raw.login(database=database)
            assert reply.kind == "ok", reply
        return raw

    # -- what it says of itself

    def status(self) -> Document:
        return read_status(self.proxy.status_url)

    def live(self) -> Document:
        """What the page's charts and its map show."""
        return dict(json.loads(_get(self.proxy.status_url, "live.json")))

    def host_state(self, address: str) -> Document:
        """The pool of one host, as /status.json tells."""
        return next(host for host in self.status()["hosts"] if host["host"] == address)

    def metric(self, line: str) -> float:
        """The value of the line of /metrics that begins with `line`."""
        return read_metric(self.proxy.status_url, line)

    def logged(self, event: str, count: int = 1) -> list[Document]:
        """The lines of its log whose event begins so, once there are at least so many: a thread writes."""
        found: list[Document] = []

        def enough() -> bool:
            text = self.log.read_text()
            lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]  # whole ones
            found[:] = [line for line in lines if str(line["event"]).startswith(event)]
            return len(found) >= count

        wait_until(enough, f"{count} lines in the log: {event}")
        return found

    def put_topology(self, document: Document) -> None:
        """Replace the file as an operator's tool would: at once."""
        draft = self.topology_file.with_suffix(".new")
        draft.write_text(json.dumps(document))
        draft.replace(self.topology_file)

    def change_topology(self, document: Document) -> None:
        """`put_topology`, have it read at once, and wait until it is in use."""
        self.put_topology(document)
        self.signal(signal.SIGHUP)
        self.wait_for_version(document["version"])

    def wait_for_version(self, version: int) -> None:
        wait_until(
            lambda: self.status()["topology"]["version"] == version, f"topology version {version} in use"
        )

    def wait_idle(self, *, clients: int | None = None) -> None:
        wait_idle(self.status, clients=clients)


@contextmanager
def patient(demo: Demo, directory: Path) -> Iterator[OwnProxy]:
    """A proxy on the demo's topology whose clients wait as long as a busy machine may take for a change of
    it; the fleet tools know that from the demo's settings.
    """
    document = merged(json.loads(demo.settings.read_text()), {"timeouts": {"buffer": "120s"}})
    demo.settings.write_text(json.dumps(document))
    with OwnProxy(demo, directory, {"topology": {"file": str(demo.directory / "topology.json")}}) as proxy:
        yield proxy


def read_status(url: str | None) -> Document:
    return dict(json.loads(_get(url, "status.json")))


def read_metric(url: str | None, line: str) -> float:
    """The value of the first line of /metrics that begins with `line`; 0 when there is none."""
    found = [one for one in _get(url, "metrics").splitlines() if one.startswith(line)]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


def _get(url: str | None, path: str) -> str:
    assert url is not None
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return str(answer.read().decode())


def busy_hosts(status: Document) -> list[tuple[str, int, int]]:
    """Hosts with connections in use or waited for."""
    return [
        (one["host"], one["busy"], one["waiting"]) for one in status["hosts"] if one["busy"] or one["waiting"]
    ]


def wait_idle(status: Any, *, clients: int | None = None) -> None:
    """Wait until no backend connection is in use or waited for; with `clients`, also for so many clients."""
    seen: list[Document] = []

    def idle() -> bool:
        seen[:] = [status()]
        count = seen[0]["clients"]["connections"]
        return not busy_hosts(seen[0]) and clients in (None, count)

    try:
        wait_until(idle, "an idle proxy")
    except AssertionError:
        raise AssertionError(
            f"not given back: {busy_hosts(seen[0])}, clients: {seen[0]['clients']}"
        ) from None


def log_problems(text: str, expected: Sequence[str] = ()) -> list[str]:
    """Lines of a proxy's log that no client may ever cause: errors, and what is no log (tracebacks)."""
    problems = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            record = {"level": "error", "event": line}
        if record.get("level") in ("error", "critical") and not str(record.get("event")).startswith(
            tuple(expected)
        ):
            problems.append(line)
    return problems


def statements_like(connection: Connection, like: str) -> list[int]:
    """Threads of a database server that run a statement like that."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM information_schema.processlist WHERE info LIKE %s AND id <> CONNECTION_ID()",
            (like,),
        )
        return [row[0] for row in cursor.fetchall()]
