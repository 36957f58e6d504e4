"""The proxy and the plain server that the clients connect to, with the accounts and tables of the checks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.programs import Program
from tests.drivers import matrix
from tests.drivers.catalog import Client
from tests.drivers.matrix import NATIVE, SHA2, Place, Steps
from tests.integration.own import OwnProxy
from tests.support.demo import Demo, running_demo
from tests.support.servers import Connection, LocalServer


class Places:
    """Both sides, and a client's run on both."""

    def __init__(self, flavour: str, proxy: OwnProxy, demo: Demo, plain: LocalServer, folder: Path) -> None:
        self.flavour = flavour
        self.demo, self.plain = demo, plain
        self.direct = Place("127.0.0.1", plain.port, "demo", "demo")
        self.proxy = Place(proxy.proxy.host, proxy.proxy.port, "demo", "demo")
        self.ca = demo.directory / "ca.pem"
        self.truststore = folder / "truststore"
        if shutil.which("keytool"):
            store = ["-keystore", str(self.truststore), "-storetype", "JKS", "-storepass", "changeit"]
            trusted = ["-importcert", "-noprompt", "-alias", "ca", "-file", str(self.ca)]
            subprocess.run(["keytool", *trusted, *store], check=True, capture_output=True)

    def connections(self) -> list[Connection]:
        """Of an administrator, to the servers that hold the tables."""
        return [self.plain.connect(), self.demo.direct(0)]

    def client_program(self) -> str:
        """The command line client that restores dumps."""
        return "mariadb" if self.flavour == "mariadb" else f"{os.environ.get('SHARDGATE_MYSQL9')}/mysql"

    def run(self, client: Client, folder: Path) -> tuple[dict[str, Steps], dict[str, Steps]]:
        """What the client reports of the plain server, and of the proxy."""
        for connection in self.connections():
            matrix.prepare(connection)
            connection.close()
        found = []
        for place in (self.direct, self.proxy):
            size = matrix.size_for(client, self.flavour)
            program = self.client_program()
            what = matrix.description(place, self.ca, self.truststore, client=program, size=size)
            found.append(matrix.run(client, what, folder))
        return found[0], found[1]


def _accounts(connection: Connection, flavour: str) -> None:
    """The users of the checks on a server: with all rights, as `demo` has them through the proxy."""
    plugin = "mysql_native_password" if flavour == "mariadb" else "caching_sha2_password"
    with connection.cursor() as cursor:
        for name, password in (("demo", "demo"), NATIVE, SHA2):
            account = f"'{name}'@'%'"
            cursor.execute(f"CREATE USER {account} IDENTIFIED BY '{password}'")
            cursor.execute(f"GRANT ALL ON *.* TO {account}")
        cursor.execute("SELECT DISTINCT plugin FROM mysql.user WHERE user = 'demo'")
        assert cursor.fetchall() == ((plugin,),)


@pytest.fixture(scope="module")
def places(
    flavour: str, program: Program, plain: LocalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("drivers")
    # nobody expects caching_sha2_password of MariaDB: Connector/J stumbles over it there
    sha2 = matrix.native_hash if flavour == "mariadb" else matrix.sha2_hash
    users = [
        {"name": "demo", "password": "demo", "role": "admin"},
        {"name": NATIVE[0], "password_hash": matrix.native_hash(NATIVE[1]), "role": "admin"},
        {"name": SHA2[0], "password_hash": sha2(SHA2[1]), "role": "admin"},
    ]
    with ExitStack() as stack:
        # of their own: a client that fails leaves rows and tables behind
        demo = stack.enter_context(running_demo(program, tmp_path_factory.mktemp("cluster")))
        proxy = stack.enter_context(OwnProxy(demo, folder / "proxy", {"users": users}))
        places = Places(flavour, proxy, demo, plain, folder)
        connection = plain.connect()
        _accounts(connection, flavour)
        yield places
        with connection.cursor() as cursor:
            for name in ("demo", NATIVE[0], SHA2[0]):
                cursor.execute(f"DROP USER '{name}'@'%'")
        for one in places.connections():
            matrix.clean(one)
