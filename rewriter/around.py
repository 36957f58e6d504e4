"""Statements that are known but for one integer: found without being cut.

    SELECT pin_id FROM board_has_pins WHERE board_id = 241294492511762325 ORDER BY sequence DESC LIMIT 50

The text before the integer and the text behind it are kept with the plan and the other literals. Where both
are the same again and only digits are between them, the statement is cut in the same places: whether digits
are a literal depends on what stands beside them, not on which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .plan import Plan, Values

MAX_AROUND: Final = 1000
"""So many statements are kept."""

LONGEST: Final = 2000
"""Their texts have at most so many bytes."""

_BEGINS: Final = b"SUDsud"
"""What they begin with (SELECT, UPDATE, DELETE): others are not looked for."""

_DIGITS: Final = b"0123456789"

_CONTEXT: Final = b"traceparent"
"""What is in the comment of a trace's context, which is another one in each statement: none comes again."""


class _Known(NamedTuple):
    """A statement's text around its integer, the literals likewise, and its plan."""

    head: bytes
    tail: bytes
    before: Values
    after: Values
    plan: Plan


class Around:
    """The statements, by their text without any digits and the key of the settings they were read with. The
    first of a text stays: others of it, whose other numbers differ, are cut.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def find(self, sql: bytes, key: bytes) -> tuple[Plan, Values] | None:
        """The plan of a statement and its literals, if it is known."""
        if not 0 < len(sql) <= LONGEST or sql[0] not in _BEGINS:
            return None
        known = self._known.get((sql.translate(None, _DIGITS), key))
        if known is None:
            return None
        head, tail, before, after, plan = known
        if sql.startswith(head) and sql.endswith(tail):
            begin, end = len(head), len(sql) - len(tail)
            if begin < end and (middle := sql[begin:end]).isdigit():
                return plan, (*before, middle, *after)
        return None

    def put(
        self,
        sql: bytes,
        key: bytes,
        plan: Plan,
        texts: Sequence[bytes],
        literals: Values,
        guards: Sequence[int] = (),
    ) -> None:
        """A statement was cut into `texts` and `literals`: keep it, with the ID that routes it as the integer
        that changes, or else its last integer. `guards`: the literals that its plan depends on.
        """
        if not 0 < len(sql) <= LONGEST or sql[0] not in _BEGINS or _CONTEXT in sql:
            return
        index = (sql.translate(None, _DIGITS), key)
        if index in self._known:
            return
        at = plan.routing_literal
        if at is None:
            at = max((place for place, text in enumerate(literals) if text.isdigit()), default=-1)
        if at < 0 or at in guards or not literals[at].isdigit():
            return
        begin = sum(map(len, texts[: at + 1])) + sum(map(len, literals[:at]))
        if len(self._known) >= MAX_AROUND:
            self._known.clear()
        tail = sql[begin + len(literals[at]) :]
        self._known[index] = _Known(sql[:begin], tail, literals[:at], literals[at + 1 :], plan)
