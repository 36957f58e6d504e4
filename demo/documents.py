"""The demo's configuration: the documents that it writes for the proxy, as plain values.

They are what an operator would write, so they are read back by the same loader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from config.topology import Host

SCHEMA = Path(__file__).with_name("schema.yaml")
ZOOKEEPER_NODE = "/shardgate/topology"

PROXY_USERS: tuple[Mapping[str, Any], ...] = (
    {"name": "demo", "password": "demo", "role": "admin", "scatter": "allow"},
    {"name": "reader", "password": "reader", "role": "read", "scatter": {"limit": 1000}},
)


def topology_document(shards: int, pairs: Sequence[tuple[Host, Host | None]]) -> dict[str, Any]:
    """Shards 0 to `shards` - 1 of each keyspace, spread evenly over `pairs` of master and slave.

    The first pair also holds what is not sharded, and databases that the schema does not name.
    """
    first = _pair(*pairs[0])
    ranges = []
    start = 0
    for index, (master, slave) in enumerate(pairs):
        end = shards * (index + 1) // len(pairs)
        if end > start:
            ranges.append({"range": [start, end - 1], **_pair(master, slave), "open": True})
        start = end
    return {
        "version": 1,
        "default": first,
        "keyspaces": {
            "main": {"layout": "pinterest", "database": "db{shard:05d}", "ranges": ranges},
            "lookup": {"hash": "md5", "shards": shards, "database": "msdb{shard:05d}", "ranges": ranges},
            "media": {
                "layout": "instagram",
                "shards": shards,
                "database": "shard{shard:05d}",
                "ranges": ranges,
            },
            "global": first,
            "legacy": first,
        },
    }


def _pair(master: Host, slave: Host | None) -> dict[str, Any]:
    return {"master": master} | ({"slave": slave} if slave else {})


def backends_document(password: Callable[[], str]) -> dict[str, Any]:
    """The accounts of the demo's servers, one for each role; `password` makes one up."""
    roles = ("read", "write", "admin")
    accounts = [{"user": f"shardgate_{role}", "role": role, "password": password()} for role in roles]
    return {"user": "shardgate", "password": password(), "accounts": accounts}


def settings_document(
    *,
    port: int,
    status_port: int | None,
    workers: int,
    backends: Mapping[str, Any],
    zookeeper: str | None,
    logins: Mapping[Host, str] | None = None,
    certificate: tuple[Path, Path] | None = None,
) -> dict[str, Any]:
    """The settings of the demo's proxy; schema and topology files lie beside the settings file.

    `status_port` None: no metrics, health and status page. `zookeeper`: its address, where the topology then
    is. `logins`: root's password on each host, for the fleet tools. `certificate`: the files of a certificate
    and its key, for TLS.
    """
    if zookeeper:
        topology: dict[str, Any] = {"zookeeper": {"hosts": zookeeper, "path": ZOOKEEPER_NODE}}
    else:
        topology = {"file": "topology.json"}
    root = {host: {"password": text} for host, text in (logins or {}).items()}
    fleet = {"fleet": {"user": "root", "hosts": root}} if root else {}
    tls = {"tls": {"cert": str(certificate[0]), "key": str(certificate[1])}} if certificate else {}
    return {
        "listen": f"127.0.0.1:{port}",
        "workers": workers,
        "users": [dict(user) for user in PROXY_USERS],
        "backends": dict(backends),
        "topology": topology,
        "schema": "schema.yaml",
        "xa": {"enabled": True},
        "status": {"listen": None if status_port is None else f"127.0.0.1:{status_port}"},
        **fleet,
        **tls,
    }
