"""Writes the table of refusals in docs/sql.md: `python -m tests.rewriter.refusals`.

Each statement below is refused; what the proxy says of it is the table. So the page cannot list a refusal
that is gone, and says what a client is told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from config.flavour import MARIADB
from rewriter.env import Env
from rewriter.plans import BindError, Reject
from tests.rewriter.support import TOPOLOGY, expand, first, rewriter, values_of
from tests.support.marked import with_table

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "sql.md"
BEGIN: Final = "<!-- the table is made by `python -m tests.rewriter.refusals` -->\n"

STATEMENTS: Final = (
    "SELECT DISTINCT id FROM pins INTO OUTFILE '/tmp/x'",
    "SELECT DISTINCT LAST_INSERT_ID(5) FROM pins",
    "INSERT INTO email_to_user VALUES ('a@b', @a := 1), ('b@b', 2), ('c@b', 3)",
    "DELETE FROM pins WHERE id = <pins 1 1> AND (@a := id) > 5",
    "SELECT id FROM pins UNION SELECT id FROM boards FOR UPDATE",
    "SELECT p.id FROM pins p JOIN information_schema.tables",
    "SELECT DISTINCT ts FROM pins PARTITION (p0)",
    "EXPLAIN SELECT p.ts FROM pins p JOIN boards b ON b.ts = p.ts",
    "EXPLAIN UPDATE pins SET data = '{}' WHERE id = <pins 1 1>",
    "DO (SELECT COUNT(*) FROM pins)",
    "SET @x = (SELECT COUNT(*) FROM pins)",
    "INSERT INTO countries VALUES (UUID(), 'x')",
    "INSERT INTO pins (data) VALUES ('{}') RETURNING id + 1",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE pins",
    "CREATE TABLE t (id INT)",
    "CREATE TEMPORARY TABLE demo.t (id INT)",
    "CREATE VIEW demo.v AS SELECT 1",
    "RENAME TABLE pins TO p",
    "ALTER TABLE pins DROP COLUMN local_id",
    "DROP DATABASE demo",
    "PREPARE s FROM 'SELECT * FROM pins'",
    "HANDLER pins OPEN",
    "CHECKSUM TABLE pins",
    "XA START 'x'",
    "GRANT SELECT ON demo.* TO x",
)
"""In database `demo`; `<pins 1 1>` is some ID."""


def refusal(sql: str) -> tuple[str, str]:
    """Why a statement is refused, and what to write instead. ValueError when it is not."""
    plan, literals = rewriter().plan(expand(sql).encode(), Env(database="demo", flavour=MARIADB))
    error, arguments = "", dict[str, str]()
    if isinstance(plan, Reject):
        error, arguments = plan.error, dict(plan.arguments)
    else:
        try:
            plan.bind(values_of(plan, literals), TOPOLOGY, first)
        except BindError as found:
            error, arguments = found.name, found.arguments
    if error != "not_supported_yet":
        raise ValueError(f"{sql} is not refused: {plan.kind} {error}")
    return arguments["reason"], arguments["alternative"]


def table() -> str:
    """The table, one row for each statement."""
    rows = ["| statement | refused because | instead |\n", "|---|---|---|\n"]
    for sql in STATEMENTS:
        shown = sql.replace("<pins 1 1>", "70437463654401")
        rows.append(f"| `{shown}` | {' | '.join(refusal(sql))} |\n")
    return "".join(rows)


def document(current: str) -> str:
    """The document with its table made anew. ValueError when the marks are missing."""
    return with_table(current, BEGIN, table(), DOCUMENT)


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
