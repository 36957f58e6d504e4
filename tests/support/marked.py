"""Documents with a table that is made: it stands between two marks, the rest is written by hand."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end of the table -->\n"


def with_table(current: str, begin: str, table: str, document: Path) -> str:
    """The text of `document` with its table made anew. ValueError when the marks are missing."""
    above, first, rest = current.partition(begin)
    _, last, below = rest.partition(END)
    if not first or not last:
        raise ValueError(f"{document} lacks the marks around the table")
    return f"{above}{begin}{table}{END}{below}"
