"""Planning as in a process of its own, messages and all, without the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.errors import ProxyError
from proxy.planning.process import Planner
from proxy.planning.protocol import HEADER, LITERALS, Answer, Request, chunks, pack, take_in, unpack
from rewriter.env import Env
from rewriter.planner import Rewriter


class InProcess:
    """In place of `Planners`."""

    def __init__(self, rewriter: Callable[[], Rewriter]) -> None:
        self.rewriter = rewriter
        self.planner = Planner()
        self.asked: list[tuple[str, bytes]] = []

    async def plan(self, user: str, sql: bytes, env: Env, *, masked: bool = False) -> Answer:
        self.asked.append((user, sql))
        rewriter = self.rewriter()
        request = Request(env, masked, 60.0, rewriter.schema, rewriter.topology, rewriter.limits)
        answer, values = self.planner.answer(request, sql)
        literals: list[bytes] = []
        for message in chunks(values):
            assert message[HEADER.size : HEADER.size + 1] == LITERALS
            literals += take_in(message[HEADER.size :])
        back: Any = unpack(pack(answer, sql, values)[HEADER.size + 1 :], sql, tuple(literals))
        if back.failed:
            raise ProxyError(back.failed)
        assert isinstance(back, Answer)
        return back
