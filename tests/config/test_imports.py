"""The rule of the room: it imports nothing of the others, and its models nothing but each other."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "config").rglob("*.py"))
MODELS = {
    "layout",
    "schema",
    "topology",
    "address",
    "column_type",
    "definitions",
    "ranges",
    "sqltext",
    "type_rules",
}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(node.module or "")
    return found


def test_imports_run_one_way() -> None:
    for path in FILES:
        modules = imported(path)
        tops = {one.partition(".")[0] for one in modules}
        assert not tops & {"proxy", "rewriter", "fleet", "demo", "tests"}, path
        if path.stem in MODELS and path.parent.name == "config":
            ours = {one.removeprefix("config.") for one in modules if one.startswith("config")}
            assert ours <= MODELS, path
            assert not tops & {"pydantic", "yaml", "kazoo", "asyncio"}, path


def test_files_and_functions_are_short() -> None:
    for path in FILES:
        text = path.read_text()
        assert len(text.splitlines()) <= 600, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 50, (path, node.name)
