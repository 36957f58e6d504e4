"""A planning process: ``python -m proxy.planning.process FD``. It reads requests from the socket FD, answers
them one after another, and ends when the socket is closed.

It is the proxy's own child, and only that speaks to it. What takes more CPU time than allowed, or more
memory, is given up: the next statement begins afresh.

It stays as long as the proxy does, and its first statement waits for its imports, so it imports what planning
needs and no more: advice, which reads parts of a schema's document, brings pydantic along, and is imported
when somebody asks for some.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from dataclasses import replace
from types import FrameType
from typing import Final

from config.schema import Schema
from config.topology import Topology
from proxy.errors import error_lines
from rewriter.explain import explain
from rewriter.planner import LONG, Lifted, Made, Rewriter, lift, not_plain
from rewriter.plans import Template, is_one_host
from rewriter.route.scope import Limits
from rewriter.text.masks import ESCAPE, mask
from rewriter.text.split import cut
from rewriter.tree.start import load

from .protocol import HEADER, Answer, Request, Task, pack

MEMORY: Final = 4 << 30
"""Bytes of address space. A statement of 64 MB takes up to half of it."""

_NICE: Final = 2
"""A little behind the proxy itself, but not so far that on a busy machine nothing gets planned."""


class _Overtime(BaseException):
    """The CPU time allowed is over."""


class Planner:
    """Plans for the schema and topology that the latest request has brought."""

    def __init__(self) -> None:
        self._schema: Schema | None = None
        self._topology: Topology | None = None
        self._limits: Limits | None = None
        self._rewriter: Rewriter | None = None
        self._timed = False
        signal.signal(signal.SIGPROF, self._over)

    def _over(self, number: int, frame: FrameType | None) -> None:
        if self._timed:
            raise _Overtime

    def answer(self, request: Request, sql: bytes) -> Answer:
        """What `request` asks for. Never raises."""
        self._schema = request.schema or self._schema
        self._topology = request.topology or self._topology
        self._limits = request.limits or self._limits
        if request.schema is not None or request.topology is not None:
            self._rewriter = None
        if request.task is Task.ADVISE:  # imported before its time begins
            from proxy.advising import rows  # noqa: F401
        try:
            self._timed = True
            # again and again: an exception in a destructor is lost
            signal.setitimer(signal.ITIMER_PROF, request.seconds, 0.01)
            try:
                return self._done(request, sql)
            finally:
                self._timed = False
                signal.setitimer(signal.ITIMER_PROF, 0)
        except (_Overtime, MemoryError, RecursionError):
            self._timed = False
            self._rewriter = None
            return Answer(failed="statement_too_complex")
        except Exception as error:
            traceback.print_exc()
            return Answer(failed="internal", reason=type(error).__name__)

    def _done(self, request: Request, sql: bytes) -> Answer:
        if request.task is Task.EXPLAIN:
            return self._explained(request, sql)
        if request.task is Task.CUT:
            return Answer(piece=cut(sql, 0, request.env))
        if request.task is Task.ADVISE:
            from proxy.advising.rows import advice_rows

            return Answer(rows=tuple(advice_rows(self._now(), sql, request.env)))
        return self._planned(request, sql)

    def _now(self) -> Rewriter:
        """For the schema and topology of now."""
        if self._rewriter is None:
            assert self._schema is not None
            assert self._topology is not None
            assert self._limits is not None
            self._rewriter = Rewriter(
                self._schema,
                self._topology,
                cache_size=2,
                in_list=self._limits.in_list,
                parse_depth=self._limits.parse_depth,
            )
        return self._rewriter

    def _explained(self, request: Request, sql: bytes) -> Answer:
        wanted: dict[str, None] = {}

        def slot(name: str) -> bytes:
            if name not in request.slots:
                wanted[name] = None
            return request.slots.get(name, b"NULL")

        assert self._topology is not None
        rows = explain(
            self._now(), sql, request.env, self._topology, slot, error_lines, cached=request.cached
        )
        return Answer(wanted=tuple(wanted)) if wanted else Answer(rows=tuple(rows))

    def _planned(self, request: Request, sql: bytes) -> Answer:
        rewriter = self._now()
        env, unmasked = request.env, True
        odd = not_plain(sql.removesuffix(b"\0"), env, raw=request.masked)
        if odd is not None:
            return Answer(Lifted(sql, b"", (b"",)), Made(odd, (b"",)))
        text = sql
        if request.masked:
            text = mask(sql, env.charset, env.no_backslash_escapes, ansi_quotes=env.ansi_quotes)
        lifted = lift(text.removesuffix(b"\0"), env)
        made = rewriter.make(lifted, env)
        if request.masked:
            within = sum(literal.count(ESCAPE) for literal in made.literals)
            unmasked = text.count(ESCAPE) == within
        parameters = rewriter.parameters(sql, env) if env.parameters else None
        if len(lifted.fingerprint) > LONG:  # not to be kept, so it need not come back
            made = _lightened(made, text)
            lifted = lifted._replace(fingerprint=b"", literals=made.literals)
        return Answer(lifted, made, parameters, unmasked)


def _lightened(made: Made, sql: bytes) -> Made:
    """The plan of a statement that goes to its host as it is, without its millions of pieces."""
    plan = made.plan
    made = made._replace(guards=None)
    if not is_one_host(plan) or not plan.goes_unchanged or made.folded is not None:
        return made
    if plan.effects is not None and (plan.effects.pins or plan.effects.unpins):
        return made  # which name literals by their numbers
    return made._replace(plan=replace(plan, template=Template((sql,))), literals=(b"",))


def _read(sock: socket.socket) -> bytes:
    """The next message. EOFError at the end."""
    size = HEADER.unpack(_exactly(sock, HEADER.size))[0]
    return bytes(_exactly(sock, size))


def _exactly(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


def serve(sock: socket.socket) -> None:
    """Answer requests until the socket is closed, be it by the end of a proxy that was killed."""
    planner = Planner()
    while True:
        try:
            request: Request = pickle.loads(_read(sock))
            sql = _read(sock)
        except (EOFError, ConnectionError):
            return
        answer = planner.answer(request, sql)
        try:
            for message in pack(answer, sql):
                sock.sendall(message)
        except ConnectionError:
            return
        del answer, sql  # not while the next one is waited for


def main() -> None:
    """The program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the proxy closes the socket
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(_NICE)
    load()  # sqlglot, before a statement waits for it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
