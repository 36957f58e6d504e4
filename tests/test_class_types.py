"""The .pxd files: each says the types of all attributes that a class has in its Python file, of no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(one for room in ("proxy", "rewriter") for one in (ROOT / room).rglob("*.pxd"))
_CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^ {4}cdef (?:public|readonly) (.+)$", re.MULTILINE)


def said(text: str) -> dict[str, list[str]]:
    """The attributes of each class of a .pxd file."""
    found = {}
    for name, _, body in _CLASS.findall(text):
        lines = (line.split() for line in _ATTRIBUTES.findall(body))
        found[name] = [word.strip(",") for words in lines for word in _names(words)]
    return found


def _names(words: list[str]) -> list[str]:
    """Those that are declared behind a type."""
    return words[2:] if words[:2] == ["long", "long"] else words[1:]


def has(node: ast.ClassDef) -> list[str]:
    """The attributes that a class has: its slots, or the fields of a dataclass in their order."""
    found = []
    for one in node.body:
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__slots__":
            given = ast.literal_eval(one.value)
            return [given] if isinstance(given, str) else list(given)
        if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation):
            found.append(ast.unparse(one.target))
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda one: str(one.relative_to(ROOT).with_suffix("")))
def test_types_are_those_of_the_class(file: Path) -> None:
    tree = ast.parse(file.with_suffix(".py").read_text())
    nodes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name, attributes in said(file.read_text()).items():
        node = nodes[name]
        slots = [one for one in has(node) if one != "__weakref__"]
        if any("dataclass" in ast.unparse(one) for one in node.decorator_list):
            assert attributes == slots, f"the fields of {name} in their order"
        else:
            assert sorted(attributes) == sorted(slots), name


@pytest.mark.parametrize("file", FILES, ids=lambda one: str(one.relative_to(ROOT).with_suffix("")))
def test_each_begins_with_what_it_is_for(file: Path) -> None:
    assert re.match(r"# (Types|The type) of ", file.read_text())
