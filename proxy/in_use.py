"""What all workers of a proxy serve: one topology, one schema, the same users.

Each worker watches the documents for itself, but none may serve what another refuses. So there is one row of
states that all go through: what a worker has accepted becomes the next state (`Agreement.propose`), unless
another worker was first; then it takes over what that one has made of it, and judges again. The others
follow within a tick. A worker that takes the place of a dead one begins with the state in use, whatever the
files say by then.

The state is in memory that the supervisor has opened and each worker inherits, so it outlives all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from config import pickling
from config.backends import Backends
from config.schema import Schema
from config.settings import User
from config.topology import Topology

from .shared import Shared


@dataclass(frozen=True, slots=True)
class InUse:
    """One state. `schema` is the document's, without what the servers say of columns; `schema_digest` tells
    two documents apart.
    """

    topology: Topology
    schema: Schema
    schema_digest: str
    users: tuple[User, ...]
    accounts: Backends

    @property
    def map(self) -> tuple[int, str]:
        """What tells two topologies apart."""
        return self.topology.version, self.topology.digest


class Agreement:
    """One worker's part. `take` is told what was in use and what is now, in its event loop. Without `shared`
    there is but this worker.
    """

    def __init__(self, shared: Shared | None, take: Callable[[InUse, InUse], None]) -> None:
        self.current: InUse | None = None
        self._shared = shared
        self._take = take
        self._number = 0

    def resume(self) -> InUse | None:
        """What the other workers serve; None when this one is the first."""
        if self._shared is not None and self._shared.number:
            self._number, data = self._shared.read()
            self.current = pickling.loads(data)
        return self.current

    def begin(self, state: InUse) -> InUse:
        """What to begin with: `state`, unless another worker has begun with something else."""
        if self.current is None:
            while self._shared is not None and not self._shared.replace(0, pickling.dumps(state)):
                if (found := self.resume()) is not None:
                    return found
                time.sleep(0.001)
            self.current, self._number = state, 1
        return self.current

    def propose(self, **changes: Any) -> bool:
        """Let all serve the state in use with `changes`. False when another worker was first: what that one
        says is in use then, and the changes must be judged again.
        """
        before = self.current
        assert before is not None
        after = replace(before, **changes)
        if self._shared is not None and not self._shared.replace(self._number, pickling.dumps(after)):
            self.follow()
            return False
        self._number += 1
        self.current = after
        self._take(before, after)
        return True

    def follow(self) -> None:
        """Take over what another worker has accepted since."""
        before = self.current
        if self._shared is None or before is None or self._shared.number == self._number:
            return
        self._number, data = self._shared.read()
        self.current = after = pickling.loads(data)
        self._take(before, after)
