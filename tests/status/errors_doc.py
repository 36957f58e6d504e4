"""Writes the table of docs/errors.md from the registry: `python -m tests.status.errors_doc`.

What stands above and below the table is written by hand and stays.
"""

from __future__ import annotations

from pathlib import Path

from proxy.errors import REGISTRY, ErrorKind
from tests.support.marked import with_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
BEGIN = "<!-- the table is made by `python -m tests.status.errors_doc` -->\n"


def table() -> str:
    """The table, one row for each entry in the registry's order."""
    head = "| name | code | SQLSTATE | meaning | what to do |\n|---|---|---|---|---|\n"
    return head + "".join(row(kind) for kind in REGISTRY.values())


def row(kind: ErrorKind) -> str:
    """One entry's row."""
    return f"| `{kind.name}` | {kind.code} | {kind.sqlstate} | {cell(kind.text)} | {cell(kind.remedy)} |\n"


def cell(text: str) -> str:
    """A format string as Markdown: `{what}` becomes *what*, and nothing breaks the table."""
    plain = text.replace("|", "\\|").replace("<", "&lt;")
    return plain.replace("{", "*").replace("}", "*")


def document(current: str) -> str:
    """The document with its table made anew. ValueError when the marks are missing."""
    return with_table(current, BEGIN, table(), DOCUMENT)


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
