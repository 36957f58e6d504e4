"""Connections of the fleet tools to hosts, by the settings' ways of encryption."""

from __future__ import annotations

from typing import Any

import pymysql

from config.backends import Backends
from config.topology import Host
from fleet.create import Connect, Connection

CHARSET = "utf8mb4"


def connector(backends: Backends, user: str, password: str) -> Connect:
    """Logs in as `user`, over TLS where `backends.tls` says so: a host that offers none is an error."""

    def connect(host: Host, flags: int) -> Connection:
        tls = backends.tls_for(host)
        options: dict[str, Any] = {
            "user": user,
            "password": password,
            "charset": CHARSET,
            "autocommit": True,
            "client_flag": flags,
            "connect_timeout": max(1, round(backends.connect_timeout)),
            "ssl": None if tls is None else tls.context(),
            "ssl_disabled": tls is None,
        }
        connection: Connection = pymysql.connect(**(options | _where(host)))
        if tls is not None and not getattr(connection, "_secure", False):
            connection.close()
            raise pymysql.err.OperationalError(2026, "the server offers no TLS, which backends.tls asks for")
        return connection

    return connect


def _where(host: Host) -> dict[str, object]:
    if host.startswith("unix:"):
        return {"unix_socket": host.removeprefix("unix:")}
    name, _, port = host.rpartition(":")
    return {"host": name.strip("[]"), "port": int(port)}
