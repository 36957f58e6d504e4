"""Planning as in a process of its own, messages and all, without the process."""

from __future__ import annotations

from proxy.errors import ProxyError
from proxy.planning.process import Planner
from proxy.planning.protocol import HEADER, Answer, Request, Unpacking, pack
from rewriter.env import Env
from rewriter.planner import Rewriter


class InProcess:
    """In place of `Planners`."""

    def __init__(self) -> None:
        self.planner = Planner()
        self.asked: list[tuple[str, bytes]] = []

    async def plan(
        self, user: str, sql: bytes, env: Env, rewriter: Rewriter, *, masked: bool = False
    ) -> Answer:
        self.asked.append((user, sql))
        request = Request(env, masked, 60.0, rewriter.schema, rewriter.topology, rewriter.limits)
        answer = self.planner.answer(request, sql)
        unpacking = Unpacking(sql)
        *parts, last = [message[HEADER.size :] for message in pack(answer, sql)]
        assert not any(unpacking.take(part) for part in parts)
        back = unpacking.take(last)
        assert back is not None
        if back.failed:
            raise ProxyError(back.failed)
        return back
