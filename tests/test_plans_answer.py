"""Nobody asks for the class of a plan: plans answer questions (`rewriter.plan.Plan`), and a function for each
variant stands in a table that has one for all (`rewriter.plans.variants.by_variant`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewriter.plan import Plan
from rewriter.plans.variants import MIDDLE, variants
from tests.test_imports import FILES, ROOT, module, nodes

NAMES = {variant.__name__ for variant in (*variants(), *MIDDLE, Plan)}

#: Files that may ask: fields there hold one plan or another.
ALLOWED = {
    # a SELECT's alternative is a `Gather`, a write's is a `ReadThenWrite`; any other one would be a refusal
    "rewriter/plans/sharded.py",
}
#: Tables by the class of a plan that are not made by `by_variant`. Tests say that they are complete.
TABLES = {("rewriter/plans/cached.py", "TOUCHING"), ("proxy/local/__init__.py", "BUILTINS")}
ASKED = [path for path in FILES if path.relative_to(ROOT).parts[0] in ("rewriter", "proxy")]


def plans_of(path: Path) -> tuple[set[str], set[str]]:
    """The names in a file that mean classes of plans, and those that mean modules of such."""
    classes, modules = set(), set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            package = module(path) if path.name == "__init__.py" else module(path).rpartition(".")[0]
            above = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            source = ".".join(filter(None, (above if node.level else "", node.module)))
            for one in node.names:
                if source.startswith("rewriter.plan") and one.name in NAMES:
                    classes.add(one.asname or one.name)
                elif f"{source}.{one.name}".startswith("rewriter.plans."):
                    modules.add(one.asname or one.name)
        elif isinstance(node, ast.ClassDef) and module(path).startswith("rewriter.plan"):
            classes |= {node.name} & NAMES
    return classes, modules


class Asking:
    """The places in one file that ask for the class of a plan."""

    def __init__(self, tree: list[ast.AST], classes: set[str], modules: set[str]) -> None:
        self.tree = tree
        self.classes = classes
        self.modules = modules
        #: names of tuples and unions of classes
        self.groups = {
            target.id
            for node in tree
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Tuple | ast.BinOp)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and self.named(node.value)
        }

    def named(self, node: ast.AST) -> bool:
        """Whether an expression names the class of a plan."""
        return any(
            (isinstance(one, ast.Name) and one.id in self.classes)
            or (
                isinstance(one, ast.Attribute)
                and isinstance(one.value, ast.Name)
                and one.value.id in self.modules
                and one.attr in NAMES
            )
            for one in ast.walk(node)
        )

    def grouped(self, node: ast.AST) -> bool:
        return any(isinstance(one, ast.Name) and one.id in self.groups for one in ast.walk(node))

    def tests(self) -> Iterator[int]:
        """Lines with a test of the class."""
        for node in self.tree:
            match node:
                case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
                    if self.named(asked) or self.grouped(asked):
                        yield node.lineno
                case ast.MatchClass(cls=asked) if self.named(asked):
                    yield node.lineno
                case ast.Compare() if any(map(_class_of, ast.walk(node))) and self.named(node):
                    yield node.lineno

    def tables(self) -> Iterator[tuple[int, str]]:
        """Tables by the class, with the names that they are assigned to; "" for those of `by_variant`."""
        names = {
            id(node.value): (node.targets[0] if isinstance(node, ast.Assign) else node.target)
            for node in self.tree
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        }
        complete = {
            id(node.args[0])
            for node in self.tree
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "by_variant"
        }
        for node in self.tree:
            if isinstance(node, ast.Dict) and any(key is not None and self.named(key) for key in node.keys):
                name = names.get(id(node))
                if id(node) not in complete:
                    yield node.lineno, name.id if isinstance(name, ast.Name) else "?"


def _class_of(node: ast.AST) -> bool:
    """Whether an expression is `x.__class__` or `type(x)`."""
    return (isinstance(node, ast.Attribute) and node.attr == "__class__") or (
        isinstance(node, ast.Call) and ast.unparse(node.func) == "type"
    )


def asking(path: Path) -> Asking:
    return Asking(nodes(path), *plans_of(path))


def test_nobody_asks_for_the_class_of_a_plan() -> None:
    found = [
        f"{name}:{line}"
        for path in ASKED
        if (name := path.relative_to(ROOT).as_posix()) not in ALLOWED
        for line in asking(path).tests()
    ]
    assert not found


def test_a_file_that_may_ask_does() -> None:
    assert [name for name in ALLOWED if not list(asking(ROOT / name).tests())] == []


def test_tables_by_the_class_of_a_plan_are_complete() -> None:
    found = {(path.relative_to(ROOT).as_posix(), name) for path in ASKED for _, name in asking(path).tables()}
    assert found == TABLES


@pytest.mark.parametrize(
    ("text", "tests", "tables"),
    [
        ("isinstance(plan, Gather)", 1, 0),
        ("isinstance(plan, ShardSelect | Gather)", 1, 0),
        ("isinstance(self.a.plan, (str, builtins.Begin))", 1, 0),
        ("_SOME = (Gather, ShardSelect)\nisinstance(plan, _SOME)", 1, 0),
        ("_SOME: Final = Gather | ShardSelect\nisinstance(plan, str | _SOME)", 1, 0),
        ("plan.__class__ is not ShardSelect", 1, 0),
        ("type(plan) in (ShardSelect, Gather)", 1, 0),
        ("match plan:\n  case Gather() | ShardSelect(point=None):\n    pass", 2, 0),
        ("isinstance(plan, Kill)\nisinstance(plan, str)", 0, 0),
        ("TABLE = {Gather: 1}", 0, 1),
        ("TABLE = by_variant({Gather: 1})", 0, 0),
        ("kept: dict[Gather, int] = {}", 0, 0),
    ],
)
def test_what_asks_is_found(text: str, tests: int, tables: int) -> None:
    found = Asking(list(ast.walk(ast.parse(text))), {"Gather", "ShardSelect"}, {"builtins"})
    assert (len(list(found.tests())), len(list(found.tables()))) == (tests, tables)
