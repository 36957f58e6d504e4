"""What statements have done is noted in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import proxy
from proxy.session.outcome import RESULT_SET, ROWS_SENT, Diagnostic, Outcome
from proxy.session.state import Role, Session, User
from proxy.session.tracking import Tracker
from rewriter.plans.characteristics import Characteristics

WARNING = Diagnostic("Warning", 1292, "Truncated")
NOTED = {"row_count", "last_insert_id", "found_rows", "diagnostics"}


def session(version: str = "9.7.0") -> Session:
    made = Session(1, User("app", Role.WRITE), "127.0.0.1:1", version, {"autocommit": b"1"})
    made.refresh_env()
    made.row_count, made.last_insert_id, made.found_rows, made.diagnostics = 7, 8, 9, [WARNING]
    return made


def noted(made: Session) -> tuple[int, int, int, list[Diagnostic]]:
    return made.row_count, made.last_insert_id, made.found_rows, made.diagnostics


def test_what_is_none_stays() -> None:
    made = session()
    made.apply(Outcome())
    assert noted(made) == (7, 8, 9, [WARNING])
    made.apply(Outcome(3, 0, 5, []))
    assert noted(made) == (3, 0, 5, [])
    made.passed(4)
    assert noted(made) == (RESULT_SET, 0, 4, [])


def test_what_was_set_for_the_next_transaction_has_its_turn() -> None:
    """A statement on tables, outside of a transaction, was that transaction."""
    for tables in (False, True):
        made = session()
        made.set_next(Characteristics(read_only=True))
        made.apply(Outcome(0, tables=tables))
        assert (made.transaction.next is None) is tables
    made = session()
    made.set_next(Characteristics(read_only=True))
    made.autocommit = False  # it has begun one, to which that has gone over
    made.apply(Outcome(0, tables=True))
    assert made.transaction.next is not None


def test_what_a_client_hears_of_its_transaction() -> None:
    made = session()
    made.apply(Outcome(touched=ROWS_SENT))  # of nobody who would hear of it
    made.tracker = Tracker()
    made.apply(Outcome(touched=ROWS_SENT))
    made.apply(Outcome(touched="W"))
    assert made.tracker.touched == {"R", "S", "W"}


def test_show_warnings_after_a_statement_without_tables() -> None:
    other = Diagnostic("Note", 1, "new")
    assert session("10.11.4-MariaDB").without_tables() == [WARNING]
    assert session().without_tables() == []
    for version in ("10.11.4-MariaDB", "9.7.0"):
        assert session(version).without_tables([other]) == [other]


def test_nobody_else_assigns_them() -> None:
    root = Path(proxy.__file__).parent
    for file in root.rglob("*.py"):
        if file != root / "session" / "state.py":
            assert not list(assignments(file)), file


def assignments(file: Path) -> Iterator[str]:
    """Those to attributes of a session that `Session.apply` is for."""
    for node in ast.walk(ast.parse(file.read_text())):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            for one in ast.walk(target):
                if not isinstance(one, ast.Attribute) or not isinstance(one.ctx, ast.Store):
                    continue
                if one.attr in NOTED and "session" in ast.unparse(one):
                    yield f"line {one.lineno}"
