"""The literal of an INSERT that is the value of its table's AUTO_INCREMENT column.

The insert id of a reply is the value that the server has made, or else the one that the client has given;
only the first is LAST_INSERT_ID()'s. A reply does not say which it is. So where the id is the value of a
literal, the server is asked, and its answer tells which literal stands for the column. From then on a
statement of the same plan whose reply has just that literal's value needs no question.

Another definition of the table changes nothing of that but where the server makes, for another column, the
very number that the client has given the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from rewriter.plan import Plan, Values
    from rewriter.sql.statements.effects import Effects


class GivenIds:
    """The place of that literal, for the INSERTs of one row that this worker has run."""

    def __init__(self) -> None:
        self._index: WeakKeyDictionary[Plan, int] = WeakKeyDictionary()

    def index(self, plan: Plan) -> int:
        """The index of the column's literal; -1 if it is not known."""
        return self._index.get(plan, -1)

    def gives(self, plan: Plan | None, effects: Effects, literals: Values, id: int) -> bool:
        """Whether the client has given the id itself. `effects`: of the statement that was sent with these
        `literals`, which may be another than the plan's.
        """
        if plan is None or plan.effects is not effects:
            return False
        index = self._index.get(plan, -1)
        return 0 <= index < len(literals) and literals[index] == b"%d" % id

    def learn(self, plan: Plan | None, effects: Effects, literals: Values, id: int) -> None:
        """The server has kept its LAST_INSERT_ID() behind a reply with this insert id."""
        if plan is None or plan.effects is not effects or effects.insert_id != "compare":
            return
        text = b"%d" % id
        if literals.count(text) == 1:
            self._index[plan] = literals.index(text)
