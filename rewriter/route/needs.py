"""What a statement needs of its user, judged by its words."""

from __future__ import annotations

from typing import Final

from rewriter.text.statement import Access, access_of
from rewriter.text.tokens import WORD, Source

from .reachable import reads_files

WRITING: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE")
_TELLING: Final = frozenset({*WRITING, "SHARE", "OUTFILE", "DUMPFILE"})


def access(source: Source) -> tuple[Access, bool]:
    """What the statement needs, judged by its words, and whether it commits an open transaction."""
    verb = source.tokens[0].text
    needed, commits = access_of(verb, source.at(1).text)
    for at, token in enumerate(source.tokens):
        if token.kind != WORD or token.text not in _TELLING or at == 0:
            continue
        if token.text in ("OUTFILE", "DUMPFILE") and source.is_word(at - 1, "INTO"):
            needed = max(needed, Access.ADMIN)
        locks = token.text in ("UPDATE", "SHARE") and source.is_word(at - 1, "FOR", "IN")
        writes = verb in ("WITH", "EXPLAIN", "ANALYZE", "DESC", "DESCRIBE") and token.text in WRITING
        if locks or (writes and not source.is_op(at + 1, "(")):
            needed = max(needed, Access.WRITE)
    if reads_files(source) or (verb == "SHOW" and source.is_word(1, "CREATE") and source.is_word(2, "USER")):
        needed = Access.ADMIN
    if verb == "PREPARE" or (verb == "EXECUTE" and source.is_word(1, "IMMEDIATE")):
        needed = Access.ADMIN  # unless its text can be read: see `_prepared`
    if verb == "LOCK":
        needed = max(needed, Access.WRITE)
    return needed, commits
