"""What a transaction is: its isolation level, READ ONLY or READ WRITE, and whether it has a snapshot of its
beginning. START TRANSACTION says so of the one that it begins, SET TRANSACTION of the next one or of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Isolation(Enum):
    """The isolation levels, in SQL's words."""

    READ_UNCOMMITTED = "READ UNCOMMITTED"
    READ_COMMITTED = "READ COMMITTED"
    REPEATABLE_READ = "REPEATABLE READ"
    SERIALIZABLE = "SERIALIZABLE"

    @property
    def literal(self) -> bytes:
        """As the value of `transaction_isolation`."""
        return b"'%s'" % self.value.replace(" ", "-").encode()


@dataclass(frozen=True, slots=True)
class Characteristics:
    """None is what is not said."""

    isolation: Isolation | None = None
    read_only: bool | None = None
    snapshot: bool = False

    @classmethod
    def told(cls, statements: str) -> Characteristics:
        """Those of the next transaction, as session tracking tells them: `SET TRANSACTION …; …`."""
        said = [one.strip().removeprefix("SET TRANSACTION ") for one in statements.split(";")]
        levels = [level for level in Isolation if f"ISOLATION LEVEL {level.value}" in said]
        access = [one == "READ ONLY" for one in said if one in ("READ ONLY", "READ WRITE")]
        return cls(levels[0] if levels else None, access[0] if access else None)

    def over(self, other: Characteristics) -> Characteristics:
        """What these say, and what `other` says of the rest."""
        return Characteristics(
            self.isolation or other.isolation,
            other.read_only if self.read_only is None else self.read_only,
            self.snapshot or other.snapshot,
        )

    @property
    def start(self) -> bytes:
        """START TRANSACTION, which says nothing of the isolation level."""
        modes = ["WITH CONSISTENT SNAPSHOT"] * self.snapshot + [*self._access()]
        return " ".join(["START TRANSACTION", ", ".join(modes)]).rstrip().encode()

    @property
    def set(self) -> bytes:
        """SET TRANSACTION of both, or the one that is said."""
        return ("SET TRANSACTION " + ", ".join(self.parts())).encode()

    def parts(self) -> Iterator[str]:
        """What SET TRANSACTION lists."""
        if self.isolation is not None:
            yield f"ISOLATION LEVEL {self.isolation.value}"
        yield from self._access()

    def _access(self) -> Iterator[str]:
        if self.read_only is not None:
            yield "READ ONLY" if self.read_only else "READ WRITE"


PLAIN: Final = Characteristics()
"""Nothing is said."""


class Completion(Enum):
    """What follows COMMIT and ROLLBACK: as they say themselves, or else the session's `completion_type`."""

    NO_CHAIN = "NO_CHAIN"
    CHAIN = "CHAIN"
    """Another transaction, like the one before."""
    RELEASE = "RELEASE"
    """The session's end."""
