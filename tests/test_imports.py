"""Imports run one way, the rewriter and the wire do no I/O, and tasks are made where they are kept."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("config", "rewriter", "fleet", "demo", "proxy")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))

#: What each room, or part of one, may import of our own; the longest matching name decides.
ALLOWED = {
    "config": {"config"},
    "rewriter": {"rewriter", "config"},
    "fleet": {"fleet", "config"},
    "demo": {"demo", "fleet", "config"},
    "proxy": {"proxy", "rewriter", "config"},
    "proxy.wire": {"proxy.wire"},
    "proxy.cli": {"proxy", "rewriter", "config", "fleet", "demo"},  # the command line starts everything
}
#: The rewriter's own rooms: each imports those before it only, and the files beside them.
ORDER = ("text", "sql", "tree", "route", "plans", "plain", "reads", "writes", "advice")
NO_IO = ("rewriter", "proxy.wire")
IO = {
    "asyncio",
    "socket",
    "select",
    "selectors",
    "ssl",
    "threading",
    "multiprocessing",
    "subprocess",
    "uvloop",
}

#: The places that make tasks: they keep each one and report its failure.
TASK_MAKERS = {"proxy.tasks"}


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """All that a file consists of."""
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imports(path: Path) -> set[str]:
    """All modules that a file imports, relative ones resolved; those for type checking only as well."""
    package = module(path) if path.name == "__init__.py" else module(path).rpartition(".")[0]
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            names = (
                [f"{base}.{one.name}" for one in node.names]
                if node.module is None
                else [f"{base}.{node.module}"]
            )
            found |= set(names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def test_there_is_something_to_look_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(ROOMS)
    assert imports(ROOT / "proxy/wire/packets.py") >= {"struct", "proxy.wire.constants"}


def test_imports_run_one_way() -> None:
    wrong = {}
    for path in FILES:
        name = module(path)
        rooms = ALLOWED[max((room for room in ALLOWED if within(name, room)), key=len)]
        ours = {one for one in imports(path) if one.partition(".")[0] in (*ROOMS, "tests", "bench")}
        wrong[name] = {one for one in ours if not any(within(one, room) for room in rooms)}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_no_input_or_output() -> None:
    wrong = []
    for path in FILES:
        if any(within(module(path), room) for room in NO_IO):
            words = {type(node) for node in nodes(path)}
            waits = words & {ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith}
            if waits or {one.partition(".")[0] for one in imports(path)} & IO:
                wrong.append(module(path))
    assert wrong == []


def test_third_parties_are_those_that_the_package_requires() -> None:
    """Not what only tests have, nor what another package brings along, like PyMySQL with aiomysql."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]  # imported where they are asked for only
    named = [*project["dependencies"], *extras["caches"], *extras["cdc"], *extras["dask"]]
    required = {plainly(re.split(r"[^\w.-]", one)[0]) for one in named}
    packages = packages_distributions()
    assert "pymysql" in packages
    imported = {one.partition(".")[0] for path in FILES for one in imports(path)}
    foreign = imported - sys.stdlib_module_names - set(ROOMS)
    assert {plainly(one) for name in foreign for one in packages.get(name, [name])} == required


def test_clients_of_caches_are_imported_where_one_is_used() -> None:
    """They are an extra of the package, which need not be installed."""
    modules = {module(path) for path in FILES if imports(path) & {"emcache", "redis"}}
    assert modules == {"proxy.caching.stores"}
    code = "import sys, proxy.app; assert not {'emcache', 'redis'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_what_a_proxy_does_not_import() -> None:
    """It would stay in its memory. What makes the other commands, what a planning process does not need, and,
    where the settings ask for none, what makes the status page and sends traces.
    """
    for name, missing in {
        "proxy.__main__ as program; program._command(['serve']); import proxy.serving": {
            "rich",
            "pygments",
            "typer",
            "fleet",
            "demo",
            "aiomysql",
            "aiohttp",
            "jinja2",
            "prometheus_client",
        },
        "proxy.planning.process": {"pydantic", "cryptography", "yaml", "asyncio", "structlog", "hashlib"},
    }.items():
        code = f"import sys, {name}; from rewriter.tree.start import load; load()"
        code += f"; assert not (found := {missing!r} & set(sys.modules)), found"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_what_reads_binary_logs_is_imported_where_one_is_read() -> None:
    modules = {module(path) for path in FILES if imports(path) & {"pymysqlreplication", "pymysql"}}
    assert modules == {"fleet.binlog.stream", "fleet.binlog.library"}
    code = "import sys, fleet.binlog.follow; assert 'pymysqlreplication' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def plainly(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_who_knows_sqlglot() -> None:
    knows = {module(path) for path in FILES if any(within(one, "sqlglot") for one in imports(path))}
    assert knows
    assert {name for name in knows if not within(name, "rewriter.tree")} == {"fleet.importing.second"}


def test_sqlglot_is_imported_when_it_is_needed() -> None:
    """It takes a fifth of a second, and memory: not for every command, nor in the middle of the traffic."""
    code = "import sys, proxy.cli, rewriter.explain; assert 'sqlglot' not in sys.modules"
    code += (
        "; from rewriter.tree.start import load; assert not load().why_not; assert 'sqlglot' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_tasks_are_made_where_they_are_kept() -> None:
    """`create_task` elsewhere could lose a task, and what it raised."""
    wrong = []
    for path in FILES:
        calls = [node.func for node in nodes(path) if isinstance(node, ast.Call)]
        names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}
        if names & {"create_task", "ensure_future", "TaskGroup"} and module(path) not in TASK_MAKERS:
            wrong.append(module(path))
    assert wrong == []


def test_the_rewriters_rooms_have_an_order() -> None:
    wrong = []
    for path in FILES:
        if path.parent.parent.name == "rewriter":
            later = ORDER[ORDER.index(path.parent.name) + 1 :]
            wrong += [
                (module(path), name)
                for name in imports(path)
                if any(within(name, f"rewriter.{room}") for room in later)
            ]
    assert wrong == []
