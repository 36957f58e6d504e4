"""No circle of imports, neither of files nor of rooms; what is imported for types only counts, too."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping

from tests.test_imports import FILES, module, nodes

MODULES = {module(path): path for path in FILES}

#: The proxy's floors, the lowest first: a file imports of its own floor and of those below. Files beside the
#: folders stand for themselves.
FLOORS = (
    "errors printable tasks logs log_writer load stats shared kept silence peers tls "
    "descriptors interpreted certificates open_files throttle taken listening offline wire tracing",
    "backends",
    "advising",
    "session catalog planning caching reordering xa",
    "engine",
    "execute execute.fan execute.gathering execute.prepared local",
    "pipeline",
    "frontend status",
    "compiled in_use memory questions app reachability server serving keys screen top cli __main__",
)


@functools.cache
def imported(name: str) -> set[str]:
    """The files of our own that a file imports; a name of a package may be a file of it."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            base = ".".join(filter(None, (above if node.level else "", node.module)))
            found |= {f"{base}.{one.name}" for one in node.names}
    return {file for one in found if (file := holder(one))} - {name}


def holder(name: str) -> str:
    """The file of our own that defines a dotted name, or ""."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def room(name: str) -> str:
    """A folder. Files beside the folders of proxy/ and rewriter/ stand for themselves."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    return name if package in ("proxy", "rewriter") else package


def circles(arrows: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """What can be reached from itself, in groups (Tarjan's strongly connected components of two and more)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(one: str) -> None:
        number[one] = lowest[one] = len(number)
        path.append(one)
        for other in arrows[one]:
            if other not in number:
                visit(other)
            if other in path:
                lowest[one] = min(lowest[one], lowest[other])
        if lowest[one] == number[one]:
            at = path.index(one)
            if len(path) - at > 1:
                found.append(set(path[at:]))
            del path[at:]

    for one in arrows:
        if one not in number:
            visit(one)
    return found


@functools.cache
def arrows_of_files() -> dict[str, set[str]]:
    return {name: imported(name) for name in MODULES}


def test_circles_are_found() -> None:
    arrows = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": ["d", "f"], "f": [], "g": ["a", "f"]}
    assert sorted(map(sorted, circles(arrows))) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": ["b"], "b": []}) == []


def test_no_circle_of_files() -> None:
    assert circles(arrows_of_files()) == []


def between_rooms() -> dict[str, set[str]]:
    arrows: dict[str, set[str]] = {room(name): set() for name in MODULES}
    for name, others in arrows_of_files().items():
        arrows[room(name)] |= {room(one) for one in others if room(one) != room(name)}
    return arrows


def test_no_circle_of_rooms() -> None:
    assert circles(between_rooms()) == []


def test_the_floors_of_the_proxy() -> None:
    floor = {f"proxy.{name}": number for number, names in enumerate(FLOORS) for name in names.split()}
    arrows = {name: others for name, others in between_rooms().items() if name.startswith("proxy.")}
    assert arrows.keys() == floor.keys()
    up = {(one, other) for one in arrows for other in arrows[one] & floor.keys() if floor[other] > floor[one]}
    assert up == set()


def test_ways_know_nothing_of_each_other() -> None:
    """What one way of running a plan needs of another it has from the engine, or runs."""
    ways = {f"proxy.{name}" for name in FLOORS[5].split()}
    arrows = between_rooms()
    assert {one: arrows[one] & ways for one in ways if arrows[one] & ways} == {}


#: What only `backends` itself may be asked for by a file of the floors above it, but for leases.
_OF_POOLS = ("backends.pool", "backends.scratch", "owner.release", "owner.discard", "backends.release")


def test_only_leases_call_the_pools() -> None:
    above = [
        name
        for name in MODULES
        if name.startswith(
            ("proxy.engine.", "proxy.execute.", "proxy.local.", "proxy.pipeline", "proxy.frontend.")
        )
    ]
    callers = {
        name
        for name in above
        for node in ast.walk(ast.parse(MODULES[name].read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_OF_POOLS)
    }
    assert callers == {"proxy.engine.lease"}
