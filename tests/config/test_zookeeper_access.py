"""A ZooKeeper that does not let everybody in: digest ACLs, TLS, a chroot; what is said when it is wrong."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl, make_digest_acl

from config.load import ConfigError
from config.settings import ZooKeeper
from config.sources import ZooKeeperSource
from config.sources import zookeeper_check as check
from config.sources.client import Connection
from demo.certificates import LocalAuthority
from demo.zookeeper import LocalZooKeeper
from fleet.core.errors import Failed
from fleet.core.store import Holder
from fleet.core.zookeeper import ZooKeeperStore
from tests.config.sources import Listener, document, no_more_threads, threads, write
from tests.support.waiting import async_wait_until, wait_until

pytestmark = pytest.mark.slow

Make = Callable[..., ZooKeeper]
PASSWORD = "not:to/be read"
USER = {"user": "fleet", "password": PASSWORD}


@pytest.fixture
def make(zookeeper: LocalZooKeeper, tmp_path: Path) -> Make:
    """Settings of a node of the test's own, under a chroot."""
    chroot = f"/{uuid.uuid4().hex}/prod"

    def made(address: str = zookeeper.address, **fields: Any) -> ZooKeeper:
        usual = {"hosts": f"{address}{chroot}", "session_timeout": 2.0, "cache_file": tmp_path / "cache"}
        return ZooKeeper.model_validate(usual | {"name": "proxy-1"} | fields)

    return made


@pytest.fixture
def tls(zookeeper: LocalZooKeeper, tmp_path: Path) -> dict[str, Path]:
    assert zookeeper.authority is not None
    cert, key = zookeeper.authority.issue(("proxy",), file=tmp_path.name, client=True)
    return {"ca": zookeeper.authority.ca, "cert": cert, "key": key}


@pytest.fixture
def owner(make: Make) -> Iterator[KazooClient]:
    """Somebody with the user's rights."""
    made = KazooClient(hosts=make().hosts, auth_data=[("digest", f"fleet:{PASSWORD}")])
    made.start()
    yield made
    made.stop()
    made.close()


def put(settings: ZooKeeper, content: bytes) -> None:
    """As a tool does."""
    store = ZooKeeperStore(settings, timeout=5.0)
    try:
        store.open()
        store.lock(Holder.me("put"))
        store.put("history/1", content)
        store.publish(content, store.topology())
    finally:
        store.close()


async def test_a_user_with_tls_under_a_chroot(
    make: Make,
    tls: dict[str, Path],
    owner: KazooClient,
    zookeeper: LocalZooKeeper,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What tools and proxies make is theirs alone, and the password is in no log, whatever the level."""
    caplog.set_level(logging.DEBUG)
    settings = make(zookeeper.secure_address, tls=tls, **USER)
    put(settings, document(5))
    listener = Listener()
    source = ZooKeeperSource(settings)
    assert (await source.start(listener.on_change, listener.on_refused)).version == 5
    put(settings, document(6))
    assert (await listener.changed()).version == 6
    own = [make_digest_acl("fleet", PASSWORD, all=True)]
    nodes = ["", "-proxies", "-proxies/proxy-1", "-fleet", "-fleet/history/1"]
    for node in ["/", "/shardgate", *(settings.path + one for one in nodes)]:
        assert owner.get_acls(node)[0] == own
    anybody = zookeeper.client(hosts=make().hosts)
    anybody.start()
    with pytest.raises(NoAuthError):
        anybody.get(settings.path)
    anybody.stop()
    anybody.close()
    await source.stop()
    assert check.look(settings) == ({settings.path: document(6)}, [])
    assert "Sending request" in caplog.text
    assert PASSWORD not in caplog.text
    assert PASSWORD not in repr(settings)


async def test_the_acl_changes_under_way(
    make: Make, owner: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make(**USER)
    put(settings, document(5))
    listener = Listener()
    source = ZooKeeperSource(settings)
    await source.start(listener.on_change, listener.on_refused)
    owner.set_acls(
        settings.path, [make_digest_acl("other", "x", read=True), make_acl("auth", "", admin=True)]
    )
    source.reload()
    assert (
        "may not be read by user fleet: the password of topology.zookeeper is wrong" in await listener.told()
    )
    assert source.current is not None
    owner.set_acls(settings.path, [make_acl("auth", "", all=True)])
    put(settings, document(6))
    assert (await listener.changed()).version == 6
    owner.set_acls(settings.registry, [make_acl("auth", "", read=True, admin=True)])
    await source.stop()
    second = ZooKeeperSource(settings)
    await second.start(listener.on_change, listener.on_refused)
    told = f"this proxy is not registered: {settings.registry}/proxy-1 may not be written by user fleet"
    await async_wait_until(lambda: told in second.status, "the status says it")
    assert caplog.text.count("this proxy is not registered, so") == 1
    owner.set_acls(settings.registry, [make_acl("auth", "", all=True)])
    await async_wait_until(lambda: owner.exists(f"{settings.registry}/proxy-1"), "it is registered after all")
    await async_wait_until(lambda: told not in second.status, "the status says so")
    await second.stop()


def failure_of(store: ZooKeeperStore) -> str:
    try:
        store.open()
        store.topology()
    except Failed as error:
        return str(error)
    return ""


def wrongs(make: Make, tls: dict[str, Path], address: str, tmp_path: Path) -> Iterator[tuple[ZooKeeper, str]]:
    other = LocalAuthority(tmp_path, "another authority")
    cert, key = other.issue(("proxy",), client=True)
    yield make(), "may not be read without a user: give topology.zookeeper.user"
    yield (
        make(user="fleet", password="x"),
        "by user fleet: the password of topology.zookeeper is wrong",
    )
    trusted = "its certificate is not trusted: unable to get local issuer certificate"
    yield make(address, tls=tls | {"ca": other.ca}, **USER), trusted
    ours = "it does not take our certificate, topology.zookeeper.tls.cert"
    yield make(address, tls={"ca": tls["ca"]}, **USER), ours
    yield make(address, tls=tls | {"cert": cert, "key": key}, **USER), ours
    yield make(tls=tls, **USER), "it ends the TLS handshake: perhaps this port speaks no TLS"
    yield make(address, **USER), "perhaps this port wants TLS (topology.zookeeper.tls)"


async def test_what_is_wrong_is_said(
    make: Make,
    tls: dict[str, Path],
    zookeeper: LocalZooKeeper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By `check --connect`, by the tools, by a proxy that starts without a cache, and by one that has one:
    that one serves it, and says why once, not at every try.
    """
    monkeypatch.setattr(check, "CONNECT_SECONDS", 1.0)
    put(make(**USER), document(5))
    before = threads()
    for settings, words in wrongs(make, tls, zookeeper.secure_address, tmp_path):
        content, problems = check.look(settings)
        assert content == {}
        assert words in problems[0]
        store = ZooKeeperStore(settings, timeout=1.0)
        assert words in failure_of(store)
        store.close()
        settings.cache_file.unlink(missing_ok=True)
        listener = Listener()
        with pytest.raises(ConfigError) as refused:
            await ZooKeeperSource(settings, connect_timeout=1.0).start(
                listener.on_change, listener.on_refused
            )
        assert words in str(refused.value)
        write(settings.cache_file, document(4))
        caplog.clear()
        source = ZooKeeperSource(settings, connect_timeout=1.0)
        assert (await source.start(listener.on_change, listener.on_refused)).version == 4
        assert words in await listener.told()
        assert caplog.text.count(words) <= 1
        await source.stop()
        assert no_more_threads(before)


async def test_servers_that_let_in_only_who_authenticates(make: Make) -> None:
    """kazoo gives up then; the source tries again, so that it comes back when it is let in."""
    settings = make(**USER)
    put(settings, document(5))
    listener = Listener()
    source = ZooKeeperSource(settings)
    await source.start(listener.on_change, listener.on_refused)
    source._client.stop()  # first, as by kazoo: it is started again as soon as both are seen
    source.connection._failed("it does not take this user or certificate", True)
    put(settings, document(6))
    assert (await listener.changed()).version == 6
    assert "(connected)" in source.status
    await source.stop()


def test_a_node_too_large(make: Make) -> None:
    """The server hangs up on it: that is not said to be a lost connection, and the topology stays."""
    put(make(**USER), document(5))
    odd = random.Random(1).randbytes(2_000_000).hex().encode()
    with pytest.raises(
        Failed, match=r"history/1 would have 2\d{6} bytes, packed: ZooKeeper takes about 1 MB"
    ):
        put(make(**USER), document(6) + b"#" + odd)
    assert check.look(make(**USER)) == ({make().path: document(5)}, [])


async def test_a_document_that_is_packed(make: Make) -> None:
    """One of many ranges has megabytes. Tools and proxies read it as it was written."""
    settings = make(**USER)
    large = document(6) + b" " * 2_000_000
    put(settings, large)
    assert check.look(settings) == ({settings.path: large}, [])
    listener = Listener()
    source = ZooKeeperSource(settings)
    assert (await source.start(listener.on_change, listener.on_refused)).version == 6
    assert settings.cache_file.read_bytes() == large
    put(settings, document(7) + b" " * 2_000_000)
    assert (await listener.changed()).version == 7
    await source.stop()


def test_a_node_that_everybody_may_change(make: Make) -> None:
    put(make(), document(5))
    content, (problem,) = check.look(make(**USER))
    assert content == {make().path: document(5)}
    assert "may be changed by everybody who reaches ZooKeeper" in problem


def test_each_server_has_its_reason() -> None:
    told: list[str] = []
    connection = Connection(ZooKeeper(hosts="nowhere.invalid:2181,127.0.0.1:1"), told.append)
    connection.start()
    try:
        wait_until(lambda: len(told) == 2, "both reasons")
        assert connection.trouble in ("; ".join(told), "; ".join(reversed(told)))
    finally:
        connection.client.stop()
        connection.client.close()
    refused, unknown = sorted(told)
    assert refused == "127.0.0.1:1: Connection refused"
    assert unknown.startswith("nowhere.invalid: ")


def test_workers_that_cannot_start_end_the_proxy(tmp_path: Path) -> None:
    """Not one after another for ever, though each has waited for ZooKeeper."""
    place = {"hosts": "127.0.0.1:1", "schema_path": "/schema"}
    settings = {
        "listen": "127.0.0.1:0",
        "workers": 2,
        "users": [{"name": "app", "password": "x"}],
        "backends": {"user": "sg", "password": "x"},
        "topology": {"zookeeper": place},
        "status": {"listen": None},
    }
    file = tmp_path / "shardgate.yaml"
    file.write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "proxy", "serve", "--config", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "127.0.0.1:1: Connection refused), and there is no cache file" in done.stderr
    assert "a worker ended" not in done.stderr
