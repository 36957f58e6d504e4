"""`soak`: the servers, the proxy, the traffic, the faults, and what must hold at the end."""

from __future__ import annotations

import asyncio
import json
import random
import time
import traceback
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
from tests.soak.evidence import Watchdog
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
    "backends": {"connect_timeout": "8s", "health_interval": "500ms"},
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


@dataclass(frozen=True)
class Plan:
    """What a soak is asked for. `seconds` with faults, after `warm_up` without, before which memory and
    descriptors are not looked at. `each`: clients of each kind that writes. `pause`: seconds between two
    rounds of a client. `rest`: after so many seconds all clients go, and what the proxy holds then and all
    rows are looked at.
    """

    seconds: float
    seed: int
    faults: Sequence[Fault]
    each: int = 2
    warm_up: float = 20.0
    pause: float = 0.02
    rest: float = 600.0


@dataclass
class Outcome:
    """`recovered`: seconds from a fault's end until all clients were served, by fault. `quarters`: bytes by
    process, in the second and the last quarter of its life. `rests`: with the minutes that had gone and the
    statements until then; the first is before the faults.
    """

    traffic: Traffic
    seconds: float = 0.0
    rests: list[tuple[float, int, Rest]] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    recovered: dict[str, float] = field(default_factory=dict)
    quarters: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return self.traffic.journal.problems


def soak(program: Program, folder: Path, plan: Plan, say: Callable[[str], None] = print) -> Outcome:
    """All of it. What the proxy and its servers wrote is in `folder` then, and of a soak with a problem also
    where everybody was (`Watchdog`).
    """
    flavour = "mariadb" if program.flavour is Flavour.MARIADB else "mysql9"
    with ExitStack() as stack:
        scene, plain = stack.enter_context(_stage(program, flavour, folder, plan))
        outcome = Outcome(scene.traffic)
        stack.enter_context(closing(Watchdog(scene, scene.proxy.log.parent, plain.connect)))
        lists = _lists(plain)

        def crowd() -> list[Client]:
            every = [kind(scene.traffic, index) for kind in WRITERS for index in range(plan.each)]
            every += [kind(scene.traffic, 100 + index) for index, kind in enumerate(OTHERS)]
            every.append(readers.Lists(scene.traffic, 110, lists))
            world = demo_world([one.address for one in scene.servers.demo.masters], SHARDS)
            return [*every, readers.Compared(scene.traffic, 111, world, plain, flavour == "mysql9")]

        try:
            _rounds(scene, plan, crowd, outcome, say)
        except Exception as error:  # beside what was found before
            outcome.problems.append(f"the soak itself: {error!r}\n{traceback.format_exc()}")
        problems = log_problems(scene.proxy.log.read_text(errors="replace"), EXPECTED)
        outcome.problems.extend(f"the proxy's log: {one[:2000]}" for one in problems[:10])
    return outcome


def _rounds(
    scene: Scene,
    plan: Plan,
    crowd: Callable[[], list[Client]],
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    """Clients without faults, then with faults again and again, and all at rest after each."""
    traffic, first = scene.traffic, crowd()
    with _running(traffic, first):
        wait_for_all(traffic, first, time.monotonic(), 60)
        end = time.monotonic() + plan.warm_up
        wait_until(lambda: time.monotonic() > end or outcome.problems, "the warm-up", plan.warm_up + 60)
    begun = time.monotonic()
    _rest(scene, outcome, begun, say)
    schedule = Schedule(plan.faults, plan.seed)
    with closing(Watch(scene.proxy.proxy.pid)) as watch:
        while not outcome.problems and (left := begun + plan.seconds - time.monotonic()) > 0:
            clients = crowd()
            for old, new in zip(first, clients, strict=True):
                new.goes_on(old)
            since = time.monotonic()
            with _running(traffic, clients):
                wait_for_all(traffic, clients, since, 60)
                _faults(scene, schedule, clients, since + min(left, plan.rest), outcome, say)
            first = clients
            if not outcome.problems:
                _rest(scene, outcome, begun, say)
        outcome.seconds = time.monotonic() - begun
    outcome.quarters = watch.quarters(int(plan.seconds / 2))
    if not outcome.problems:
        outcome.problems.extend(grown(outcome.quarters))


@contextmanager
def _stage(program: Program, flavour: str, folder: Path, plan: Plan) -> Iterator[tuple[Scene, LocalServer]]:
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
        traffic = Traffic(demo, address, plan.seed, SHARDS, plan.pause)
        yield Scene(traffic, servers, proxy, link, random.Random(f"scene {plan.seed}")), plain


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


def _rest(scene: Scene, outcome: Outcome, begun: float, say: Callable[[str], None]) -> None:
    """Rows, descriptors, tasks and connections, once all clients have gone."""
    journal, servers = scene.traffic.journal, scene.servers
    try:
        wait_until(lambda: not servers.prepared(), "no branch is left prepared", 60)
    except AssertionError as error:
        journal.trouble(str(error))
    for problem in scene.traffic.ledger.check(*servers.entries(SHARDS)):
        journal.trouble(problem)
    rest = at_rest(scene.proxy, servers)
    minutes, statements = (time.monotonic() - begun) / 60, sum(journal.statements.values())
    outcome.rests.append((minutes, statements, rest))
    say(f"at rest after {minutes:.1f} minutes and {statements} statements: {rest}")
    for problem in rest.compare(outcome.rests[0][2]):
        journal.trouble(problem)
