"""Warnings of a statement that ran on several shards, as one server would have given them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Diagnostics
from rewriter.plans import Notice

OF_TEXT: Final = frozenset({1193, 1231, 1232, 1287, 1681, 3125, 3126, 3128, 3637, 3719, 3720, 3778})
"""Warnings of a text, not of its rows (deprecated words, hints): each SELECT of a UNION gives them,
one server would once."""
_SYNTAX: Final = 1064


def notices(warnings: Sequence[Notice]) -> list[Diagnostic]:
    """The rewriter's warnings for SHOW WARNINGS."""
    errors = [ProxyError(name, **arguments) for name, arguments in warnings]
    return [Diagnostic("Warning", error.code, str(error)) for error in errors]


_TRUNCATED: Final = 1292
_PHANTOM: Final = "Incorrect date value: '0000-00-00' for column '"


def is_phantom(one: Diagnostic) -> bool:
    """Whether MySQL warns of the NULL of a group's MIN or MAX of a DATE, in a temporary table of its own. It
    has one where no index gives it the groups, as on the scratch host, and one server may have none.
    """
    return one.code == _TRUNCATED and one.level == "Warning" and one.message.startswith(_PHANTOM)


def without_phantoms(found: Diagnostics) -> Diagnostics:
    """The warnings of a SELECT without these."""
    left = Diagnostics(one for one in found if not is_phantom(one))
    gone = len(found) - len(left)
    left.total = found.total - gone if left or not gone else 0
    left.errors = found.errors
    return left


def of_text(found: Iterable[Diagnostic]) -> int:
    """The number of warnings about the text, which a server gives at PREPARE and not at each EXECUTE."""
    return sum(map(_warns_of_text, found))


def _warns_of_text(one: Diagnostic) -> bool:
    return one.level != "Error" and bool(_of_text(one))


def without_text(found: list[Diagnostic]) -> Diagnostics:
    """The warnings, without those about the text, of a text executed instead of a prepared statement."""
    left = Diagnostics(one for one in found if not _warns_of_text(one))
    left.total = max(getattr(found, "total", 0) - (len(found) - len(left)), 0)
    left.errors = getattr(found, "errors", 0)
    return left


def repeated(read: Diagnostics, again: Diagnostics) -> Diagnostics:
    """The warnings of rows that were `read` and then looked at `again` by the same expressions: each as often
    as it was given in the one place or in the other.
    """
    left = Counter(again)
    found = Diagnostics()
    for one in read:
        if left[one]:
            left[one] -= 1
        elif one.code not in OF_TEXT:
            found.append(one)
    found += again
    found.total = len(found) + max(read.total - len(read), again.total - len(again), 0)
    return found


def _of_text(one: Diagnostic) -> Diagnostic | int:
    """The key that is the same for the warnings of all shards about one place of the text; 0: the warning is
    not about the text. The warning of a hint's syntax shows the text behind the hint, with a shard's names.
    """
    if one.code == _SYNTAX:
        return _SYNTAX
    return one if one.code in OF_TEXT else 0


class Told:
    """The `diagnostics` of all shards, and the `count` for the end of the rows, to which servers' counts are
    added before: a server may keep less than it counts.
    """

    __slots__ = ("_said", "count", "diagnostics")

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.count = 0
        self._said: set[Diagnostic | int] = set()

    def add(self, found: Sequence[Diagnostic], shards: int) -> None:
        """Take the warnings of one host's statement for so many shards."""
        counts = Counter(same for one in found if (same := _of_text(one)))
        given: Counter[Diagnostic | int] = Counter()
        for one in found:
            if is_phantom(one):
                self.count -= 1
                continue
            if same := _of_text(one):
                given[same] += 1
                if same in self._said or given[same] > max(1, counts[same] // shards):
                    self.count -= 1
                    continue
            self.diagnostics.append(one)
        self._said |= counts.keys()
