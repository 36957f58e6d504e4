"""What the demo says when it is up: how to connect, and statements worth trying, with IDs that exist."""

from __future__ import annotations

import shutil

from config.topology import Keyspace
from demo.cluster import Cluster
from demo.documents import PROXY_USERS


def banner(cluster: Cluster) -> str:
    """Lines to print; those to be copied stand alone and are never broken."""
    user = PROXY_USERS[0]
    client = "mysql" if shutil.which("mysql") or not shutil.which("mariadb") else "mariadb"
    proxy = cluster.proxy
    lines = ["", f"{cluster.options.shards} shards on {len(cluster.masters)} hosts, as one database:", ""]
    lines += [f"  {client} -h {proxy.host} -P {proxy.port} -u {user['name']} -p{user['password']} demo", ""]
    lines += ["Worth trying:", "", *(f"  {one}" for one in statements(cluster)), ""]
    if proxy.status_url:
        lines.append(f"Status page     {proxy.status_url}")
    lines.append(f"Files and logs  {cluster.directory}")
    lines.append(f"TLS trusts      {cluster.directory / 'ca.pem'}")
    lines += ["", "Ctrl-C stops and removes everything."]
    return "\n".join(lines)


def statements(cluster: Cluster) -> list[str]:
    """Five statements for a client of the proxy."""
    keyspace = cluster.topology.keyspaces["main"]
    if not cluster.sample:
        return _without_rows(keyspace)
    layout = keyspace.layout
    assert layout is not None
    board = cluster.sample["boards"].rows[0][0]
    by_shard = {layout.shard_of(pin): pin for pin, *_ in cluster.sample["pins"].rows}
    spread = sorted(by_shard)[:: max(1, len(by_shard) // 4)]  # type: ignore[type-var]
    chosen = ", ".join(str(by_shard[shard]) for shard in spread[:4])
    return [
        "SELECT id, JSON_VALUE(data, '$.name') AS name, ts FROM users LIMIT 5;",
        f"SELECT id, JSON_VALUE(data, '$.details') AS details FROM pins WHERE id IN ({chosen});",
        f"SELECT pin_id FROM board_has_pins WHERE board_id = {board} ORDER BY sequence DESC LIMIT 10;",
        f"""INSERT INTO pins (data) VALUES ('{{"details": "Mine", "board_id": {board}}}');"""
        " SELECT LAST_INSERT_ID();",
        f"EXPLAIN ROUTE SELECT COUNT(*) FROM pins WHERE id IN ({chosen});",
    ]


def _without_rows(keyspace: Keyspace) -> list[str]:
    layout = keyspace.layout
    assert layout is not None
    user = layout.compose(shard=keyspace.all_shards[-1], type=3, local=1)
    return [
        """INSERT INTO users (data) VALUES ('{"name": "Ada"}'); SELECT LAST_INSERT_ID();""",
        "SELECT id, data, ts FROM users LIMIT 5;",
        f"""INSERT INTO boards (data) VALUES ('{{"name": "Ideas", "user_id": {user}}}');""",
        f"EXPLAIN ROUTE SELECT * FROM users WHERE id = {user};",
        "SHOW SHARDS;",
    ]
