"""`soak`: the servers, the proxy, the traffic, the faults, and what must hold at the end."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from config.load import load_schema, load_topology
from demo.programs import Flavour, Program
from fleet.create import create
from tests.differential.world import demo_world
from tests.faults.link import Link
from tests.integration.own import OwnProxy, log_problems, merged, moved
from tests.soak import clients, readers
from tests.soak.clients import Client, Traffic
from tests.soak.faults import RECOVER, Fault, Scene, Schedule
from tests.soak.figures import Rest, Watch, at_rest, grown
from tests.soak.ledger import SCHEMA
from tests.soak.servers import Servers
from tests.support.demo import Demo, running_demo
from tests.support.plain import fill_plain
from tests.support.servers import LocalServer
from tests.support.template import template_of
from tests.support.waiting import wait_until

SHARDS = 8
SETTINGS = {
    "workers": 2,
    "timeouts": {"buffer": "10s"},
    "backends": {"connect_timeout": "3s", "health_interval": "500ms"},
    "limits": {"logins": 1000},
    "plan_cache_size": 500,  # full after some minutes, so that it is not what grows
}
EXPECTED = ("a worker ended", "cannot connect", "done in parts", "host hangs")
"""What the log says of faults."""
WRITERS: Sequence[type[Client]] = (
    clients.Plain,
    clients.Zipped,
    clients.Pipelined,
    clients.Prepared,
    clients.Transfers,
    clients.Distributed,
)
OTHERS: Sequence[type[Client]] = (readers.SlowReader, readers.Vanishing, readers.Connects)


@dataclass
class Outcome:
    """`recovered`: seconds from a fault's end until all clients were served, by fault. `quarters`: bytes by
    process, in the second and the last quarter of its life.
    """

    traffic: Traffic
    seconds: float = 0.0
    begun: Rest | None = None
    ended: Rest | None = None
    faults: dict[str, int] = field(default_factory=dict)
    recovered: dict[str, float] = field(default_factory=dict)
    quarters: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return self.traffic.journal.problems


def soak(
    program: Program,
    folder: Path,
    *,
    seconds: float,
    seed: int,
    faults: Sequence[Fault],
    each: int = 2,
    warm_up: float = 20.0,
    say: Callable[[str], None] = print,
) -> Outcome:
    """`each`: clients of each kind that writes. `warm_up`: seconds without a fault before memory and
    descriptors are looked at for the first time; then comes what may take `seconds`.
    """
    flavour = "mariadb" if program.flavour is Flavour.MARIADB else "mysql9"
    with ExitStack() as stack:
        scene, plain = stack.enter_context(_stage(program, flavour, folder, seed))
        traffic, proxy = scene.traffic, scene.proxy
        outcome = Outcome(traffic)
        lists = _lists(plain)
        mysql = flavour == "mysql9"

        def crowd() -> list[Client]:
            every = [kind(traffic, index) for kind in WRITERS for index in range(each)]
            every += [kind(traffic, 100 + index) for index, kind in enumerate(OTHERS)]
            every.append(readers.Lists(traffic, 110, lists))
            world = demo_world([one.address for one in scene.servers.demo.masters], SHARDS)
            return [*every, readers.Compared(traffic, 111, world, plain, mysql)]

        first = crowd()
        with _running(traffic, first):
            wait_for_all(traffic, first, time.monotonic(), 60)
            end = time.monotonic() + warm_up
            wait_until(lambda: time.monotonic() > end or outcome.problems, "the warm-up", warm_up + 60)
        if not outcome.problems:
            outcome.begun = at_rest(proxy, scene.servers)
            say(f"warm: {outcome.begun}")
            second = crowd()
            for old, new in zip(first, second, strict=True):
                new.number = old.number
            watch = stack.enter_context(closing(Watch(proxy.proxy.pid)))
            begun = time.monotonic()
            with _running(traffic, second):
                wait_for_all(traffic, second, begun, 60)
                _faults(scene, Schedule(faults, seed), second, begun + seconds, outcome, say)
            outcome.seconds = time.monotonic() - begun
            watch.close()
            outcome.quarters = watch.quarters(int(seconds / 2))
        if not outcome.problems:
            _look_back(scene, outcome)
        problems = log_problems(proxy.log.read_text(errors="replace"), EXPECTED)
        outcome.problems.extend(f"the proxy's log: {one[:2000]}" for one in problems[:10])
    return outcome


@contextmanager
def _stage(program: Program, flavour: str, folder: Path, seed: int) -> Iterator[tuple[Scene, LocalServer]]:
    """All that clients and faults need, without clients."""
    with ExitStack() as stack:
        plain = LocalServer(program, folder / "plain", name="plain", template=template_of(program))
        stack.enter_context(plain)
        with plain.connect() as connection:
            fill_plain(connection, shards=SHARDS)
        options = ("--slaves", "--shards", str(SHARDS), "--durable")
        demo = stack.enter_context(running_demo(program, folder / "demo", *options))
        second = demo.masters[1]
        link = stack.enter_context(Link(second.host, second.port))
        schema = _create(demo, folder)
        settings = merged(json.loads(demo.settings.read_text())["fleet"], {})
        settings["hosts"][link.address] = settings["hosts"][second.address]
        document = moved(
            json.loads((demo.directory / "topology.json").read_text()), {second.address: link.address}
        )
        changes = SETTINGS | {"schema": str(schema), "fleet": settings}
        proxy = stack.enter_context(OwnProxy(demo, folder / "proxy", changes, document))
        address = (proxy.proxy.host, proxy.proxy.port)
        servers = Servers(demo, flavour, address, proxy.proxy.settings, proxy.topology_file, link.address)
        stack.callback(servers.close)
        traffic = Traffic(demo, address, seed, SHARDS)
        yield Scene(traffic, servers, proxy, link, random.Random(f"scene {seed}")), plain


def _create(demo: Demo, folder: Path) -> Path:
    """The soak's own tables, beside the demo's; the file of the schema with both."""
    path = folder / "schema.yaml"
    document = yaml.safe_load(demo.schema.read_text())
    document["databases"]["soak"] = {"tables": SCHEMA}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    schema = load_schema(path)
    topology = load_topology(demo.directory / "topology.json", schema=schema)

    async def make() -> None:
        async with demo.as_hosts() as hosts:
            made = await create(schema, topology, hosts)
            assert not made.problems, made.problems

    asyncio.run(make())
    return path


def _lists(plain: LocalServer) -> dict[int, list[int]]:
    """Lists of the demo, by board, in their order."""
    with plain.connect(database="demo") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT board_id FROM board_has_pins ORDER BY board_id LIMIT 60")
        found = {}
        for (board,) in cursor.fetchall():
            cursor.execute(readers.LIST.format(board))
            found[int(board)] = [row[0] for row in cursor.fetchall()]
        return found


@contextmanager
def _running(traffic: Traffic, all_clients: Sequence[Client]) -> Iterator[None]:
    """They are at work within."""
    traffic.stop.clear()
    for one in all_clients:
        one.thread.start()
    try:
        yield
    finally:
        traffic.stop.set()
        for one in all_clients:
            one.thread.join(120)
        stuck = [one.name for one in all_clients if one.thread.is_alive()]
        if stuck:
            traffic.journal.trouble(f"clients that wait for an answer for 120 s: {stuck}")


def wait_for_all(traffic: Traffic, all_clients: Sequence[Client], since: float, seconds: float) -> float:
    """Until each has had an answer to what it has asked since then; the seconds that it took. A problem when
    it takes longer.
    """
    journal = traffic.journal

    def waiting() -> list[str]:
        return [one.name for one in all_clients if journal.served.get(one.name, 0) < since]

    try:
        wait_until(lambda: not waiting() or bool(journal.problems), "all are served", seconds)
    except AssertionError:
        journal.trouble(f"not served within {seconds:g} s after {journal.windows[-1:]}: {waiting()}")
    return time.monotonic() - since


def _faults(
    scene: Scene,
    schedule: Schedule,
    all_clients: Sequence[Client],
    deadline: float,
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    """One after another, each with its end and time to recover, until the time is over."""
    journal = scene.traffic.journal
    while time.monotonic() < deadline and not journal.problems:
        fault = schedule.next()
        with journal.fault(fault.name, fault.allowed):
            try:
                fault.run(scene)
            except Exception as error:  # with the seed and the rest of what is known
                journal.trouble(f"{fault.name}: {error!r}")
            took = wait_for_all(scene.traffic, all_clients, time.monotonic(), RECOVER)
        outcome.faults[fault.name] = outcome.faults.get(fault.name, 0) + 1
        outcome.recovered[fault.name] = max(outcome.recovered.get(fault.name, 0.0), took)
        say(f"{deadline - time.monotonic():6.0f} s left: {fault.name}, all served after {took:.1f} s")
        scene.hold(1, 2)


def _look_back(scene: Scene, outcome: Outcome) -> None:
    """Rows, memory, descriptors, tasks and connections, once all clients have gone."""
    journal, servers = scene.traffic.journal, scene.servers
    try:
        wait_until(lambda: not servers.prepared(), "no branch is left prepared", 60)
    except AssertionError as error:
        journal.trouble(str(error))
    for problem in scene.traffic.ledger.check(*servers.entries(SHARDS)):
        journal.trouble(problem)
    outcome.ended = at_rest(scene.proxy, servers)
    assert outcome.begun is not None
    journal.problems.extend(outcome.ended.compare(outcome.begun))
    journal.problems.extend(grown(outcome.quarters))
