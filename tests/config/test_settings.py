"""Settings: defaults, secrets, paths, and what is refused with which problems (cases/settings.yaml)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.address import Address
from config.credentials import Role
from config.doubts import doubts
from config.load import ConfigError, load_schema, load_settings, load_topology
from config.settings import Scatter, Settings
from tests.support.cases import cases_in

REFUSED = cases_in(Path(__file__).parent / "cases" / "settings.yaml")

LEAST: dict[str, Any] = {
    "users": [{"name": "app", "password": "secret"}],
    "backends": {"user": "proxy", "password": "hidden"},
    "topology": {"file": "topology.yaml"},
    "schema": "schema.yaml",
}


def settings(**change: Any) -> Settings:
    return load_settings(LEAST | change, base=Path("/base"))


def user(**fields: Any) -> Any:
    return settings(users=[{"name": "u", **fields}]).users[0]


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_refused(case: dict[str, Any]) -> None:
    source = LEAST | case["change"] if "change" in case else case["document"].encode()
    with pytest.raises(ConfigError) as caught:
        load_settings(source, base=Path("/base"))
    assert sorted(map(str, caught.value.problems)) == sorted(case["problems"])


def test_problems_have_lines_and_show_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "shardgate.yaml"
    path.write_text("users:\n  - name: a\n    role: boss\n    password: 12345678\nworkers: x\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    text = str(caught.value)
    assert f"{path}: users[0].role (line 3): must be 'read', 'write' or 'admin'" in text
    assert f"{path}: users[0].password (line 4): must be a text" in text
    assert f"{path}: workers (line 5): must be a whole number" in text
    assert "12345678" not in text


def test_a_mode_that_needs_xa_is_told_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "shardgate.yaml"
    path.write_text(
        "users:\n  - name: a\n    password: p\n  - name: b\n    transaction_mode: xa\nworkers: 2\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert f"{path}: users[1].transaction_mode (line 5): xa needs xa: {{enabled: true}}" in str(caught.value)


def test_defaults() -> None:
    made = settings()
    assert [one.address for one in made.listen] == [Address("127.0.0.1", 3307)]
    assert made.status.listen == Address("127.0.0.1", 9307)
    assert made.workers == len(os.sched_getaffinity(0))
    assert made.topology.file == Path("/base/topology.yaml")
    assert made.schema_file == Path("/base/schema.yaml")
    assert made.users[0].role is Role.WRITE
    assert made.users[0].scatter == Scatter(allowed=True, limit=None)
    assert made.users[0].may_use("anything")
    assert sorted(made.all_layouts) == ["instagram", "pinterest"]


def test_units_and_forms() -> None:
    made = settings(
        listen=["0.0.0.0:3306", {"address": "unix:/run/shardgate.sock"}, "[::]:0"],
        workers=4,
        limits={"max_packet": "1GB", "max_statement": "1KB"},
        timeouts={"statement": "30s", "drain": "1m30s", "buffer": 2.5},
        logging={"slow_query_ms": None},
        status={"listen": None},
        server_version="8.0.36-shardgate",
    )
    assert [str(one.address) for one in made.listen] == ["0.0.0.0:3306", "unix:/run/shardgate.sock", "[::]:0"]
    assert made.workers == 4
    assert (made.limits.max_packet, made.limits.max_statement) == (1 << 30, 1024)
    assert (made.timeouts.statement, made.timeouts.drain, made.timeouts.buffer) == (30, 90, 2.5)
    assert made.logging.slow_query_ms is None
    assert made.status.listen is None
    assert settings(listen="127.0.0.1:1").listen[0].address.port == 1
    assert settings(workers="auto").workers == settings().workers
    assert settings().compression == ("zlib", "zstd")
    assert [settings(compression=off).compression for off in ("off", False)] == [(), ()]
    assert settings(compression=["zstd"]).compression == ("zstd",)


def test_paths_start_at_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "secret").write_text("from file\n")
    document = LEAST | {
        "users": [{"name": "a", "password_file": "secret"}],
        "topology": {"zookeeper": {"hosts": ["a:2181", "b:2181"]}},
        "schema": "/elsewhere/schema.yaml",
    }
    (folder / "shardgate.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.chdir(tmp_path)
    made = load_settings("etc/shardgate.yaml")
    assert made.users[0].secret == "from file"
    assert made.schema_file == Path("/elsewhere/schema.yaml")
    zookeeper = made.topology.zookeeper
    assert zookeeper is not None
    assert zookeeper.hosts == "a:2181,b:2181"
    assert zookeeper.path == "/shardgate/topology"
    assert zookeeper.cache_file == folder / "topology.cache.json"
    assert zookeeper.registry == "/shardgate/topology-proxies"


def test_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASSWORD", "from environment")
    assert user(password="a b").secret == "a b"
    assert user(password="").secret == ""
    assert user(password_env="APP_PASSWORD").secret == "from environment"


def test_stored_passwords() -> None:
    stage2 = hashlib.sha1(hashlib.sha1(b"secret").digest()).digest()
    native = user(password_hash=f"*{stage2.hex().upper()}")
    assert native.secret is None
    assert native.native_hash == stage2
    assert native.sha2_hash is None
    stored = "$A$005$" + "\x01\x7f'\"abcdefghijklmnop" + "./" + "a" * 41
    for text in (stored, "0x" + stored.encode("latin-1").hex()):
        sha2 = user(password_hash=text)
        assert sha2.sha2_hash == stored
        assert sha2.native_hash is None


def test_secrets_do_not_show() -> None:
    made = settings(
        users=[{"name": "a", "password": "s3cr3t"}, {"name": "b", "password_hash": "*" + "AB" * 20}]
    )
    for text in (repr(made), str(made), repr(made.users), made.model_dump_json(exclude={"listen", "status"})):
        assert "s3cr3t" not in text
        assert "ABABAB" not in text
        assert "hidden" not in text


def test_scatter_and_databases() -> None:
    assert user(password="", scatter="deny").scatter == Scatter(allowed=False)
    assert user(password="", scatter="allow").scatter == Scatter()
    assert user(password="", scatter={"limit": 1000}).scatter == Scatter(limit=1000)
    limited = user(password="", databases=["demo"])
    assert limited.may_use("demo")
    assert not limited.may_use("Demo")
    assert user(password="", databases="*").may_use("demo")


def test_backends_per_host() -> None:
    backends = settings(
        backends={
            "user": "proxy",
            "password": "hidden",
            "max_connections": 50,
            "hosts": {"db1": {"max_connections": 5}, "unix:/a.sock": {"user": "other", "password": ""}},
        }
    ).backends
    assert backends.max_connections_for("db1:3306") == 5
    assert backends.max_connections_for("db2:3306") == 50
    assert backends.user_for("db1:3306") == ("proxy", "hidden")
    assert backends.user_for("unix:/a.sock") == ("other", "")


def test_layouts() -> None:
    fields = {"reserved": 1, "time": 41, "shard": 10, "sequence": 12}
    made = settings(layouts={"snowflake": {"fields": fields, "epoch_ms": 1288834974657}})
    snowflake = made.all_layouts["snowflake"]
    assert snowflake.name == "snowflake"
    assert snowflake.shard_of(5 << 12) == 5


def test_users_by_name() -> None:
    made = settings()
    assert made.user("app") is made.users[0]
    assert made.user("App") is None


def test_accounts_of_users() -> None:
    """The one with the same role and the same databases, in whatever order these are written."""
    accounts = [
        {"user": "r", "role": "read", "password": "1"},
        {"user": "w", "role": "write", "databases": ["b", "a"], "password": "2"},
    ]
    hosts = {"db9:3306": {"accounts": {"w": {"password": "9"}}, "user": "local", "password": "l"}}
    users = [
        {"name": "one", "password": "x", "role": "read", "databases": ["*"]},
        {"name": "two", "password": "x", "databases": ["a", "b"]},
    ]
    backends = settings(
        users=users, backends={"user": "own", "password": "0", "accounts": accounts, "hosts": hosts}
    ).backends
    found = [backends.account_for(role, of) for role, of in ((Role.READ, ("*",)), (Role.WRITE, ("a", "b")))]
    assert [one.user for one in found if one is not None] == ["r", "w"]
    assert backends.account_for(Role.READ, ("a", "b")) is None
    assert [backends.user_for("db1:3306", name) for name in ("", "r", "w")] == [
        ("own", "0"),
        ("r", "1"),
        ("w", "2"),
    ]
    assert [backends.user_for("db9:3306", name) for name in ("", "r", "w")] == [
        ("local", "l"),
        ("r", "1"),
        ("w", "9"),
    ]


@pytest.mark.parametrize(
    ("listen", "status"),
    [
        (["127.0.0.1:0", "127.0.0.1:0"], "127.0.0.1:0"),
        (["127.0.0.1:3307", "127.0.0.2:3307", "unix:/a", "unix:/b"], "127.0.0.1:3308"),
        (["0.0.0.0:3307", "[::]:3307"], "0.0.0.0:9307"),
        (["127.0.0.1:9307"], None),
        (["127.0.0.1:3307", "[::1]:3307"], "[fe80::1]:3307"),
        (["0.0.0.0:3307", "[::1]:3307"], "[fe80::1]:3307"),
    ],
)
def test_addresses_beside_each_other(listen: list[str], status: str | None) -> None:
    assert len(settings(listen=listen, status={"listen": status}).listen) == len(listen)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"limits": {"session_memory": "1M"}}, []),
        ({"limits": {"client_memory": "64M"}}, []),
        (
            {"limits": {"user_variables": "1G", "session_memory": "1M"}},
            [("limits.user_variables", "1GB is never reached: limits.session_memory ends it at 1MB")],
        ),
        (
            {"limits": {"session_memory": "2G"}},
            [("limits.session_memory", "2GB is never reached: limits.client_memory ends it at 1GB")],
        ),
        ({"backends": {"user": "own", "hang_timeout": 0, "connect_timeout": "1h"}}, []),
        (
            {"backends": {"user": "own", "hang_timeout": "2s", "connect_timeout": "1h"}},
            [
                (
                    "backends.connect_timeout",
                    "a host that hangs is waited for as long as 1h when it is connected to, though after 2s"
                    " (backends.hang_timeout) it is taken to hang",
                )
            ],
        ),
        ({"xa": {"resolve_after": "100d", "keep": "1h"}}, []),
        ({"xa": {"enabled": True, "resolve_after": "1h", "keep": "1h"}}, []),
        (
            {"xa": {"enabled": True, "resolve_after": "100d", "keep": "1h"}},
            [
                (
                    "xa.resolve_after",
                    "what a proxy that is gone has left prepared keeps its rows locked for 100d before it is"
                    " finished; its decision is kept as long, though xa.keep is 1h",
                )
            ],
        ),
    ],
)
def test_doubts(change: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert list(doubts(settings(**change))) == expected


SCHEMA = load_schema({"databases": {"demo": {"tables": {}}, "shop": {"tables": {}}}})
KEYSPACES: dict[str, Any] = {
    "main": {
        "layout": "pinterest",
        "database": "db{shard:05d}",
        "ranges": [{"range": [0, 3], "master": "db1"}],
    },
    "global": {"master": "db1", "database": "everywhere"},
}
WITH_DEFAULT = load_topology(
    {"version": 1, "default": {"master": "db1", "slave": "db1b"}, "keyspaces": KEYSPACES}
)
NOWHERE = (
    "neither the schema nor the topology has a database {!r}: unless the default host, db1:3306, has it,"
    " it lets nobody into anything; {}"
)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("demo", None),
        ("everywhere", None),  # physical ones
        ("db00003", None),
        ("mysql", None),
        ("db00004", "there are demo, shop, everywhere"),
        ("nothere", "there are demo, shop, everywhere"),
        ("demo ", "did you mean 'demo'?"),
        ("DEMO", "did you mean 'demo'?"),
        ("shopp", "did you mean 'shop'?"),
        ("MySQL", "did you mean 'mysql'?"),
    ],
)
def test_databases_that_nothing_has(name: str, told: str | None) -> None:
    made = settings(
        users=[{"name": "all", "password": "x"}, {"name": "a", "password": "x", "databases": ["demo", name]}],
        backends={
            "user": "own",
            "accounts": [
                {"user": "w", "role": "write"},
                {"user": "v", "role": "write", "databases": ["demo", name]},
            ],
        },
    )
    wanted = [] if told is None else [("users[1].databases", NOWHERE.format(name, told))]
    assert list(doubts(made, SCHEMA, WITH_DEFAULT)) == wanted
    assert list(doubts(made, SCHEMA)) == list(doubts(made)) == []


def test_databases_of_an_account_that_no_user_has() -> None:
    account = {"user": "v", "role": "write", "databases": ["sohp"]}
    made = settings(backends={"user": "own", "accounts": [{"user": "w", "role": "write"}, account]})
    told = NOWHERE.format("sohp", "did you mean 'shop'?")
    assert list(doubts(made, SCHEMA, WITH_DEFAULT)) == [("backends.accounts[1].databases", told)]


def test_hosts_that_the_topology_has_not() -> None:
    hosts = {name: {"password": "x"} for name in ("db1:3306", "db1b", "DB1", "nowhere:1")}
    made = settings(backends={"user": "own", "hosts": hosts}, fleet={"user": "root", "hosts": hosts})
    said = "the topology has no such host: what is said of it here is of no use; "
    assert list(doubts(made, None, WITH_DEFAULT)) == [
        (f"{group}.hosts.{host}", said + near)
        for group in ("backends", "fleet")
        for host, near in (
            ("DB1:3306", "did you mean 'db1:3306'?"),
            ("nowhere:1", "there are db1:3306, db1b:3306"),
        )
    ]
