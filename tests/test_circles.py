"""No circle of imports, neither of files nor of rooms; what is imported for types only counts, too.

`CROSSED` is what is left of the rooms' circles. It may only shrink: an arrow that no longer stands in a circle
must be taken off the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from tests.test_imports import FILES, module

MODULES = {module(path): path for path in FILES}

#: Rooms that import each other, in a circle: who imports whom.
CROSSED = {
    "proxy": "proxy.backends proxy.execute proxy.local proxy.planning proxy.session proxy.status",
    "proxy.backends": "proxy proxy.session",
    "proxy.execute": "proxy proxy.backends proxy.local proxy.session",
    "proxy.local": "proxy proxy.backends proxy.execute proxy.session",
    "proxy.planning": "proxy",
    "proxy.session": "proxy proxy.backends proxy.execute proxy.local",
    "proxy.status": "proxy proxy.backends",
    "rewriter": "rewriter.plain rewriter.reads rewriter.route rewriter.text rewriter.writes",
    "rewriter.plain": "rewriter rewriter.route rewriter.text",
    "rewriter.reads": "rewriter rewriter.plain rewriter.route rewriter.text",
    "rewriter.route": "rewriter rewriter.text",
    "rewriter.text": "rewriter",
    "rewriter.writes": "rewriter rewriter.plain rewriter.reads rewriter.route rewriter.text",
}


def imported(name: str) -> set[str]:
    """The files of our own that a file imports; a name of a package may be a file of it."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
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
    """A folder; files beside the folders are a room of their own."""
    parts = name.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 or MODULES[name].name == "__init__.py" else parts[0]


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


ARROWS = {name: imported(name) for name in MODULES}


def test_circles_are_found() -> None:
    arrows = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": ["d", "f"], "f": [], "g": ["a", "f"]}
    assert sorted(map(sorted, circles(arrows))) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": ["b"], "b": []}) == []


def test_no_circle_of_files() -> None:
    assert circles(ARROWS) == []


def test_no_circle_of_rooms() -> None:
    arrows: dict[str, set[str]] = {}
    for name, others in ARROWS.items():
        arrows.setdefault(room(name), set()).update(room(one) for one in others if room(one) != room(name))
    crossed: dict[str, set[str]] = {}
    for circle in circles(arrows):
        crossed |= {one: arrows[one] & circle for one in circle}
    assert crossed == {name: set(others.split()) for name, others in CROSSED.items()}
