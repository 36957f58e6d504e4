"""A client's work while rows are gathered for it: what has come is counted, and a KILL ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.task import TaskWork
from proxy.errors import ProxyError

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


class GatherWork(TaskWork):
    """The client's work while it gathers. `rest` is set when the rest is at work."""

    __slots__ = ("bytes", "rows", "scattered")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self.rows = 0
        self.bytes = 0
        self.scattered = 0

    def count(self, rows: int, size: int, ceiling: int | None) -> ProxyError | None:
        """More has been gathered; the limit that is exceeded now. `ceiling`: the rows are a scatter's."""
        limits = self.client.services.settings.limits
        self.rows += rows
        self.bytes += size
        if ceiling is not None:
            self.scattered += rows
            if self.scattered > ceiling:
                return ProxyError("scatter_limit", limit=ceiling, user=self.client.session.user.name)
        if limits.gather_rows and self.rows > limits.gather_rows:
            return ProxyError("gather_limit", limit=limits.gather_rows, unit="rows", setting="gather_rows")
        if limits.gather_bytes and self.bytes > limits.gather_bytes:
            return ProxyError("gather_limit", limit=limits.gather_bytes, unit="bytes", setting="gather_bytes")
        return None

    def release(self, rows: int, size: int) -> None:
        """So much of it is held no longer."""
        self.rows -= rows
        self.bytes -= size

    def kill_query(self) -> None:
        """What runs ends with error 1317; between two statements `check` finds out."""
        self.killed = True
        running = [conn for conn in self.conns if conn.receiver is not None]
        for conn in running:
            self.client.services.backends.kill_query(conn)
        if not running and self.task is not None:
            self.task.cancel()
            if self._prevent():
                self.client.fail(ProxyError("killed"))

    def check(self) -> None:
        """Raise what a KILL asks for that has hit nothing."""
        if self.killed:
            raise ProxyError("killed")
