"""examples/compose: read as docker compose would, and its own commands run on servers of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql
import pytest

from config.load import check, load_topology
from demo.process import free_port, kill_all
from demo.programs import Program, ServerError
from demo.servers import start_all
from demo.zookeeper import LocalZooKeeper
from tests.support.cases import cases_in
from tests.support.programs import need_program
from tests.support.servers import LocalServer
from tests.support.template import template_of
from tests.support.waiting import wait_until
from tests.support.zygote import zygote

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "compose"
COMPOSE: dict[str, Any] = cases_in(EXAMPLE / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
VARIABLES = dict(re.findall(r"(?m)^(\w+)=(.*)$", (EXAMPLE / ".env").read_text()))
HOSTS = [name for name in SERVICES if name.startswith("db")]

#: What the Compose Specification allows, as far as the example uses it.
KEYS = {
    "build", "command", "depends_on", "entrypoint", "environment", "healthcheck", "image", "ports", "restart",
    "stop_grace_period", "volumes",
}  # fmt: skip
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


# -- read
# ----------------------------------------------------------------------------------------------------------


def test_the_file_is_one_of_compose() -> None:
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "volumes"}
    for name, service in SERVICES.items():
        assert set(service) <= KEYS, name
        assert "image" in service
        for one in service.get("volumes", []):
            assert set(one) <= {"type", "source", "target", "read_only"}
            if one["type"] == "bind":
                assert (EXAMPLE / one["source"]).exists(), one
            else:
                assert one["source"] in COMPOSE["volumes"], one
        for key, value in service.get("healthcheck", {}).items():
            assert key in {"test", "interval", "timeout", "retries"}
            assert key not in {"interval", "timeout"} or re.fullmatch(r"\d+s", value)
    used = {one["source"] for service in SERVICES.values() for one in service.get("volumes", [])}
    assert set(COMPOSE["volumes"]) <= used


def test_who_waits_for_whom() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            condition = how["condition"]
            assert condition in CONDITIONS
            assert (condition != "service_healthy") or "healthcheck" in SERVICES[other], (name, other)
            if condition == "service_completed_successfully":
                assert "restart" not in SERVICES[other], f"{other} ends"
    assert set(HOSTS) < set(SERVICES["replication"]["depends_on"]) | {"-"}


def test_every_variable_is_given() -> None:
    asked = set(re.findall(r"(?<!\$)\$\{(\w+):\?\}", (EXAMPLE / "compose.yaml").read_text()))
    assert asked == set(VARIABLES)


def test_the_documents_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mounted is what is started with; ports, hosts and times fit together."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    settings, _, _ = check(EXAMPLE / "etc" / "shardgate.yaml")
    proxy = SERVICES["proxy"]
    assert {one["target"]: one["source"] for one in proxy["volumes"]} == {
        "/etc/shardgate": "./etc",
        "/var/lib/shardgate": "state",
    }
    inner = {int(one.rsplit(":", 1)[1]) for one in proxy["ports"]}
    assert settings.status.listen is not None
    assert inner == {settings.listen[0].address.port, settings.status.listen.port}
    assert int(proxy["stop_grace_period"].removesuffix("s")) > settings.timeouts.drain
    assert set(proxy["environment"]) == set(VARIABLES) - {"REPLICATION_PASSWORD"}
    zookeeper = settings.topology.zookeeper
    assert zookeeper is not None
    assert str(zookeeper.hosts) == "zookeeper:2181"
    assert zookeeper.cache_file.is_relative_to("/var/lib/shardgate")
    topology = load_topology(EXAMPLE / "etc" / "topology.yaml")
    assert SERVICES["replication"]["command"] == [f"{name}:3306" for name in HOSTS]
    assert set(topology.hosts) == {f"{name}:3306" for name in HOSTS if not name.endswith("replica")}
    identities = [SERVICES[name]["command"][0] for name in HOSTS]
    assert len(set(identities)) == len(HOSTS)


# -- run
# ----------------------------------------------------------------------------------------------------------


class Fleet:
    """The example's folder with other addresses, and what its services would be run as."""

    def __init__(self, folder: Path, servers: dict[str, LocalServer], zookeeper: LocalZooKeeper) -> None:
        self.folder, self.servers = folder, servers
        self.port, self.status = free_port(), free_port()
        addresses = {f"{name}:3306": server.address for name, server in servers.items()}
        addresses |= {
            "zookeeper:2181": zookeeper.address,
            "/var/lib/shardgate": str(folder),
            "0.0.0.0:3307": f"127.0.0.1:{self.port}",
            "0.0.0.0:9307": f"127.0.0.1:{self.status}",
        }
        self._addresses = addresses
        shutil.copytree(EXAMPLE / "etc", folder / "etc")
        for path in (folder / "etc").glob("*.yaml"):
            path.write_text(self.here(path.read_text()))
        client = os.environ.get("SHARDGATE_MYSQL9", "")
        self.environment = {
            **VARIABLES,
            "PATH": f"{Path(sys.executable).parent}:{client}:{os.environ['PATH']}",
            "TMPDIR": str(folder),
        }

    def here(self, text: str) -> str:
        """With this machine's addresses and paths."""
        for there, here in self._addresses.items():
            text = text.replace(there, here)
        return text.replace("/etc/shardgate", str(self.folder / "etc")).replace(
            "/replicate.sh", str(EXAMPLE / "replicate.sh")
        )

    def argv(self, name: str) -> list[str]:
        service = SERVICES[name]
        return [self.here(one) for one in [*service.get("entrypoint", ["shardgate"]), *service["command"]]]

    def run(self, name: str) -> str:
        """What a service prints that ends."""
        done = subprocess.run(
            self.argv(name), env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    program: Program = need_program("mysql9")
    template = template_of(program)
    with ExitStack() as stack:
        servers: dict[str, LocalServer] = {}
        for name in HOSTS:
            identity, *options = SERVICES[name]["command"]
            servers[name] = LocalServer(
                program,
                tmp_path / name,
                name=name,
                template=template,
                server_id=int(identity.removeprefix("--server-id=")),
                binlog=True,
                options=options,
            )
            servers[name].password = VARIABLES["ROOT_PASSWORD"]
        start_all(list(servers.values()))
        stack.callback(lambda: kill_all([one.process for one in servers.values() if one.process is not None]))
        try:
            zookeeper = stack.enter_context(LocalZooKeeper(tmp_path / "zookeeper").start())
        except ServerError as error:
            pytest.skip(str(error))
        yield Fleet(tmp_path, servers, zookeeper)


def test_it_is_set_up_and_serves(fleet: Fleet) -> None:
    """The commands of the services, in their order, twice: the second time nothing changes."""
    first = fleet.run("replication")
    assert first.count("replicates from") == 2
    fleet.run("create")
    assert fleet.run("replication").count("replicates already") == 2
    fleet.run("create")

    log = fleet.folder / "proxy.log"
    _, *words = fleet.argv("proxy")
    process = zygote().popen([sys.executable, "-m", "proxy", *words], log, fleet.environment)
    try:
        wait_until(lambda: log.read_text().count('"serving"') == 2, "the workers serve")
        login: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": fleet.port,
            "database": "shop",
            "autocommit": True,
        }
        with pymysql.connect(user="app", password=VARIABLES["APP_PASSWORD"], **login) as client:
            cursor = client.cursor()
            for number in range(20):
                cursor.execute("INSERT INTO users (data) VALUES (%s)", (f'{{"n": {number}}}',))
                cursor.execute("INSERT INTO email_to_user VALUES (%s, %s)", (f"{number}@x", cursor.lastrowid))
            cursor.execute("SELECT COUNT(*) FROM users")
            assert cursor.fetchall() == ((20,),)
        with fleet.servers["db1-replica"].connect() as replica:
            cursor = replica.cursor()
            with fleet.servers["db1"].connect() as master, master.cursor() as asking:
                asking.execute("SELECT @@GLOBAL.gtid_executed")
                cursor.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 60)", asking.fetchall()[0])
            cursor.execute("SELECT @@GLOBAL.super_read_only, COUNT(*) FROM lookup00000.email_to_user")
            assert cursor.fetchall()[0][0] == 1
    finally:
        process.terminate()
        assert process.wait(60) == 0
