"""How many bytes are kept for clients: packets and statements that are not done yet, and what sessions keep.

All of them together have a limit, and no user has more than its share of it (`Share`): so a thousand clients
that send large packets and never end them neither fill the process's memory nor take it from the others.
"""

from __future__ import annotations

from proxy.backends.waiting import Share


class Memory:
    """The books. Whoever holds something says what it held before, and holds now."""

    __slots__ = ("_share", "by_user", "refused", "used")

    def __init__(self, most: int, part: float = 0.8) -> None:
        """`most`: bytes in all. `part`: of them, what a single user may have."""
        self._share = Share(most, part, watch=False)
        self.by_user: dict[str, int] = {}
        self.used = 0
        self.refused = 0

    def hold(self, user: str, before: int, after: int) -> bool:
        """Whether one who held so many bytes may hold so many now: fewer always. If not, nothing changes."""
        more = after - before
        have = self.by_user.get(user, 0)
        if more > 0 and not self._share.allows(have + more, self.used + more, user):
            self.refused += 1
            return False
        self.used += more
        if have + more > 0:
            self.by_user[user] = have + more
        else:
            self.by_user.pop(user, None)
        return True
