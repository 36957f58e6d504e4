"""What the demo says when it is up: how to connect, statements worth trying, with IDs that exist, and how a
master changes and shards move while clients work.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from config.topology import Keyspace
from demo.cluster import Cluster
from demo.documents import PROXY_USERS


def banner(cluster: Cluster) -> str:
    """Lines to print; those to be copied stand alone and are never broken."""
    proxy = cluster.proxy
    lines = ["", f"{cluster.options.shards} shards on {len(cluster.masters)} hosts, as one database:", ""]
    lines += [f"  {_client(cluster)}", ""]
    lines += ["Worth trying:", "", *(f"  {one}" for one in statements(cluster)), ""]
    lines += _moves(cluster)
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


def _client(cluster: Cluster, option: str = "") -> str:
    """How to connect."""
    user, proxy = PROXY_USERS[0], cluster.proxy
    client = "mysql" if shutil.which("mysql") or not shutil.which("mariadb") else "mariadb"
    where = f"-h {proxy.host} -P {proxy.port} -u {user['name']} -p{user['password']} demo"
    return f"{client} {option}{where}"


def _moves(cluster: Cluster) -> list[str]:
    """What the fleet tools can show on this cluster, while a client writes."""
    commands = [*_promotion(cluster), *_split(cluster)]
    if not commands:
        return [
            "Started with --slaves --spares 2, the demo shows how a master changes and how shards move.",
            "",
        ]
    insert = "INSERT INTO users (data) VALUES ('{}'); SELECT NOW(3);"
    writer = f'while echo "{insert}"; do sleep 0.1; done | {_client(cluster, "-nN ")}'
    lines = ["Masters change and shards move, and clients only wait for a moment. Let one write:"]
    lines += ["", f"  {writer}", "", "and meanwhile, in another terminal:"]
    for text, words in commands:
        command = shlex.join([_program(), "fleet", *words, "--config", str(cluster.proxy.settings)])
        lines += ["", f"  # {text}", f"  {command}"]
    lines += ["", "Each shows its steps and asks first. SHOW SHARDS; tells where the shards are.", ""]
    return lines


def _promotion(cluster: Cluster) -> list[tuple[str, list[str]]]:
    """What it does, and the words of the command."""
    if not cluster.slaves:
        return []
    old, new = cluster.masters[0], cluster.slaves[0]
    text = f"{new.name} ({new.address}) becomes the master, {old.name} its slave"
    return [(text, ["promote", "--host", old.address])]


def _split(cluster: Cluster) -> list[tuple[str, list[str]]]:
    """The same, of the later half of the first host's shards, and of what is then left over."""
    if not cluster.spares:
        return []
    first = cluster.topology.keyspaces["main"].ranges[0]
    end = first.last
    middle = (first.first + end + 1) // 2
    pair = cluster.spares[:2]
    words = ["split", "--keyspace", "main,lookup,media", "--shards", f"{middle}-{end}"]
    for option, server in zip(("--master", "--slave"), pair, strict=False):
        words += [option, server.address]
    names = " and ".join(one.name for one in pair)
    text = f"shards {middle} to {end} move to {names}, which {'is' if len(pair) == 1 else 'are'} filled first"
    return [(text, [*words, "--provision"]), ("and what they leave behind is dropped", ["cleanup"])]


def _program() -> str:
    """The command by which this was started, as a shell finds it: its name, or its path."""
    beside = Path(sys.executable).with_name("shardgate")
    found = shutil.which("shardgate")
    if not beside.exists() or (found and Path(found).resolve() == beside.resolve()):
        return "shardgate"
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
