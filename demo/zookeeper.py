"""`LocalZooKeeper`: one throw-away ZooKeeper on loopback, from Debian's package or $ZOOKEEPER_HOME."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from demo.certificates import LocalAuthority
from demo.child import Child
from demo.process import free_port, spawn
from demo.programs import ServerError

JAR = Path("/usr/share/java/zookeeper.jar")
LOGGER = JAR.with_name("slf4j-simple.jar")  # comes with the package; without it nothing is logged
NETTY = ("codec", "resolver")  # for TLS; those that the package's own list lacks
TICK_MS = 500  # sessions may be as short as two ticks
LONGEST_SESSION_MS = 60_000

_JAVA = (
    "-Xmx96m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",  # its file would stay in /tmp
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.preAllocSize=512",
)


class LocalZooKeeper(Child):
    """A ZooKeeper whose files are under `directory`. It can be stopped and started again on the same port.

    With `authority` it has a second port for TLS, `secure_address`, and takes there only clients with a
    certificate of that authority.
    """

    def __init__(self, directory: Path, authority: LocalAuthority | None = None) -> None:
        self.directory = directory.absolute()
        self.authority = authority
        self.secure_port = 0
        super().__init__("ZooKeeper", self.directory / "zookeeper.log")

    @property
    def address(self) -> str:
        """For kazoo: ``127.0.0.1:2181``."""
        return f"{self.host}:{self.port}"

    @property
    def secure_address(self) -> str:
        """Where TLS is spoken."""
        return f"{self.host}:{self.secure_port}"

    def spawn(self) -> None:
        if self.alive:
            return
        java, classpath = shutil.which("java"), _classpath()
        if java is None or classpath is None:
            raise ServerError(
                "ZooKeeper needs java and /usr/share/java/zookeeper.jar: install it"
                " (Debian: apt-get install zookeeper), or set ZOOKEEPER_HOME to an unpacked release"
            )
        (self.directory / "data").mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_port()
        configuration = self.directory / "zoo.cfg"
        configuration.write_text(
            f"dataDir={self.directory / 'data'}\n"
            f"clientPort={self.port}\n"
            f"clientPortAddress={self.host}\n"
            f"tickTime={TICK_MS}\n"
            f"maxSessionTimeout={LONGEST_SESSION_MS}\n"
            "maxClientCnxns=0\n"
            "admin.enableServer=false\n"
            "4lw.commands.whitelist=ruok,srvr\n"
            "forceSync=no\n" + self._secure()
        )
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self.log.write_bytes(b"")
        self._process = spawn(
            [java, *_JAVA, "-cp", classpath, main, str(configuration)], self.log, cwd=self.directory
        )

    def _secure(self) -> str:
        """The lines for TLS."""
        if self.authority is None:
            return ""
        if not self._settled:  # or it moves on to others, as one of the two was taken
            self.secure_port = free_port()
        pem = self.directory / "server.pem"
        cert, key = self.authority.issue(file="zookeeper")
        pem.write_bytes(key.read_bytes() + cert.read_bytes())
        return (
            f"secureClientPort={self.secure_port}\n"
            f"secureClientPortAddress={self.host}\n"
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
            f"ssl.keyStore.location={pem}\n"
            "ssl.keyStore.type=PEM\n"
            f"ssl.trustStore.location={self.authority.ca}\n"
            "ssl.trustStore.type=PEM\n"
            "ssl.clientAuth=need\n"
        )

    def _unready(self) -> str:
        if b"Mode:" not in self._ask(b"srvr"):
            return "no answer"
        # which it binds later, and ends when it cannot
        return "" if self.authority is None or self._listens(self.secure_port) else "no TLS"

    def _listens(self, port: int) -> bool:
        try:
            socket.create_connection((self.host, port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def _ask(self, word: bytes) -> bytes:
        """The answer to a four-letter word; empty while there is none."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1.0) as connection:
                connection.sendall(word)
                return connection.recv(4096)
        except OSError:
            return b""

    def client(self, **arguments: Any) -> KazooClient:
        """A kazoo client, not started; `arguments` are KazooClient's."""
        # not backoff 1: kazoo multiplies the last delay, jitter and all, which would wander down to nothing
        quick = {"max_tries": -1, "delay": 0.02, "backoff": 2, "max_delay": 0.1}
        return KazooClient(**{"hosts": self.address, "connection_retry": quick} | arguments)

    def put(self, path: str, content: bytes) -> None:
        """Set the node `path`, made with its parents when missing."""
        client = self.client()
        client.start(timeout=10.0)
        try:
            if client.exists(path):
                client.set(path, content)
            else:
                client.create(path, content, makepath=True)
        finally:
            client.stop()
            client.close()


def _classpath() -> str | None:
    """Debian's jar, whose manifest names the others; or those of an unpacked release."""
    home = os.environ.get("ZOOKEEPER_HOME")
    if home and (Path(home) / "lib").is_dir():
        return f"{home}/lib/*"
    netty = ":".join(str(JAR.with_name(f"netty-{one}.jar")) for one in NETTY)
    return f"{JAR}:{LOGGER}:{netty}" if JAR.exists() else None
