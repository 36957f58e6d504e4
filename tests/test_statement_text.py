"""Only the statement table says what a statement is, and nothing behind the planner reads the text again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rewriter.sql.statements.table import FORMS
from tests.test_imports import FILES, module, nodes

VERBS: Final = {row.verb for row in FORMS.values()} - {"(", "<label>", "<unknown>", "IF", "FOR"}
FEW: Final = 3
"""A constant with this many verbs at most is no list of statements."""

LISTS: Final = {
    "proxy.engine.waiting_room._FENCED": "privileges in a server's error message",
    "proxy.errors._KINDS": "texts of errors",
    "proxy.local.processes._ALL": "privileges of SHOW GRANTS",
    "proxy.local.processes._PRIVILEGES": "privileges of SHOW GRANTS",
    "rewriter.advice.samples._NO_CALL": "words in front of a name that is no function",
    "rewriter.plain.routing_columns._MOVING": "clauses of ALTER TABLE",
    "rewriter.sql.statements.calls._NO_CALL_BEHIND": "words in front of a name that is no function",
    "rewriter.sql.statements.function_names._NATIVE_BOTH": "names of functions and keywords",
    "rewriter.sql.statements.table_places._FIRST": "words in front of a table's name",
    "rewriter.text.crowd._SUBQUERY": "words that begin a subquery in parentheses",
    "rewriter.text.parse_tables._BEHIND": "words behind a table's name that are no alias",
    "rewriter.text.split._OPENERS": "the splitter: words that open a block",
    "rewriter.text.split._STARTS": "the splitter: words that begin the body of a routine",
    "rewriter.text.tokens._HINTED": "the lexer: words that hints stand behind",
    "rewriter.tree.lexemes._WORDS": "keywords of the second reader",
    "rewriter.tree.start._EXPECTED": "statements that the second reader is tried with",
}
"""Constants with more verbs that classify no statements, each with what it has them for."""

READERS: Final = {
    "proxy.execute.multi_statement": "cuts a text into statements",
    "proxy.planning.protocol": "packs literals as places in their text",
    "proxy.tracing.context": "reads a trace's context in comments, which are no part of the statement",
}
METHODS: Final = {
    *("upper", "lower", "startswith", "endswith", "split", "rsplit", "partition", "rpartition", "find"),
    *("strip", "lstrip", "count", "index"),
}
MATCHERS: Final = {"match", "search", "fullmatch", "findall", "finditer", "sub", "split"}


def constants(path: Path) -> Iterator[tuple[str, set[str]]]:
    """The constants of a module with the verbs in them that stand as words of their own."""
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        found: set[str] = set()
        for one in ast.walk(node.value):
            if isinstance(one, ast.Constant) and isinstance(one.value, str | bytes):
                text = one.value if isinstance(one.value, str) else one.value.decode("latin-1")
                found |= VERBS.intersection(re.findall(r"(?<!\w)[A-Z_]+(?!\w)", text))
        yield f"{module(path)}.{ast.unparse(target)}", found


def test_only_the_statement_table_lists_statements() -> None:
    rows = "rewriter.sql.statements."
    table = {
        f"{rows}{name}" for name in ("data", "definitions", "sessions", "administration", "shows", "table")
    }
    lists = {
        name
        for path in FILES
        if module(path).startswith(("proxy", "rewriter")) and module(path) not in table
        for name, verbs in constants(path)
        if len(verbs) > FEW
    }
    assert lists == set(LISTS)


def is_statement(node: ast.expr) -> bool:
    """Whether an expression is the text of a statement, or a part of it."""
    if isinstance(node, ast.Subscript | ast.Starred):
        return is_statement(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in METHODS | {"decode"} and is_statement(node.func.value)
    return (isinstance(node, ast.Name) and node.id == "sql") or (
        isinstance(node, ast.Attribute) and node.attr == "sql"
    )


def readings(path: Path) -> list[str]:
    """The calls that look into the text of a statement."""
    found = []
    for node in nodes(path):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        method, subject = node.func.attr, node.func.value
        reads = method in METHODS and is_statement(subject)
        matches = method in MATCHERS and any(map(is_statement, node.args))
        if reads or matches:
            found.append(f"{module(path)}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_nothing_behind_the_planner_reads_the_text_again() -> None:
    """The lexer is in the rewriter; in the proxy only the files above look into a text."""
    wrong = [
        line
        for path in FILES
        if module(path).startswith("proxy.") and module(path) not in READERS
        if not module(path).startswith("proxy.advising.")  # it reads logs, and runs no statement
        for line in readings(path)
    ]
    assert wrong == []
