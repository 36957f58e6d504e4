"""`LocalServer` as tests use it: with connections of PyMySQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
import pymysql.connections

from demo import servers

Connection = pymysql.connections.Connection
Connect = Callable[..., Connection]


class LocalServer(servers.LocalServer):
    """Started, stopped and described like the demo's."""

    def connect(self, **arguments: Any) -> Connection:
        """A PyMySQL connection as root over the socket; `arguments` are PyMySQL's and win.

        Autocommit is on.
        """
        settings: dict[str, Any] = {
            "unix_socket": str(self.socket),
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 5,
            "ssl_disabled": True,  # a handshake takes as much CPU time as a dozen statements
        }
        if "host" in arguments or "port" in arguments:
            del settings["unix_socket"], settings["ssl_disabled"]
            settings |= {"host": self.host, "port": self.port}
        return pymysql.connect(**(settings | arguments))
