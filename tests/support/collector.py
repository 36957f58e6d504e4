"""`Collector`: a stand-in for a collector of OpenTelemetry: takes OTLP/HTTP in JSON, and reads it.

It shares no code with the proxy.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.support.waiting import wait_until

SERVER, CLIENT = 2, 3


@dataclass(frozen=True)
class Span:
    """One span. `resource`: what is said of the process; `at` and `until`: nanoseconds."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    at: int
    until: int
    flags: int
    state: str
    failed: bool
    about: Mapping[str, Any]
    resource: Mapping[str, Any]


def plain(value: Mapping[str, Any]) -> Any:
    """An AnyValue, as the JSON encoding has it: 64-bit integers are texts."""
    ((kind, inner),) = value.items()
    if kind == "intValue":
        assert isinstance(inner, str)
        return int(inner)
    if kind == "arrayValue":
        return [plain(one) for one in inner["values"]]
    assert isinstance(inner, {"stringValue": str, "boolValue": bool, "doubleValue": float}[kind])
    return inner


def attributes(listed: list[Any]) -> dict[str, Any]:
    found = {one["key"]: plain(one["value"]) for one in listed}
    assert len(found) == len(listed)
    return found


def spans_of(body: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest."""
    found = []
    for group in json.loads(body)["resourceSpans"]:
        resource = attributes(group["resource"]["attributes"])
        for scope in group["scopeSpans"]:
            assert scope["scope"]["name"] == "shardgate"
            for one in scope["spans"]:
                assert len(bytes.fromhex(one["traceId"])) == 16
                assert len(bytes.fromhex(one["spanId"])) == 8
                found.append(
                    Span(
                        one["traceId"],
                        one["spanId"],
                        one.get("parentSpanId", ""),
                        one["name"],
                        one["kind"],
                        int(one["startTimeUnixNano"]),
                        int(one["endTimeUnixNano"]),
                        one["flags"],
                        one.get("traceState", ""),
                        one.get("status", {}).get("code", 0) == 2,
                        attributes(one["attributes"]),
                        resource,
                    )
                )
    return found


class Collector:
    """Serves on a port of its own. `answers`: status codes for the next requests, 200 when there are none;
    0: no answer, until the end. `reply`: the body of a 200.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.spans: list[Span] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.reply: dict[str, Any] = {}
        self.requests = 0
        self._released = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.requests += 1
                status = collector.answers.pop(0) if collector.answers else 200
                if not status:
                    collector._released.wait(60)
                    return
                if status == 200:
                    assert self.path.partition("?")[0] == "/v1/traces"
                    collector.headers.append({name.lower(): text for name, text in self.headers.items()})
                    collector.spans += spans_of(body)
                answer = json.dumps(collector.reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def of(self, trace: str, statements: int = 1) -> list[Span]:
        """The spans of a trace, those of statements first, by when they began; once there are so many
        statements' (what servers were asked for one is sent before it).
        """

        def found() -> list[Span]:
            return [one for one in self.spans if one.trace == trace]

        wait_until(
            lambda: sum(one.kind == SERVER for one in found()) >= statements,
            f"spans of {statements} statements of the trace {trace}",
        )
        return sorted(found(), key=lambda one: (one.kind, one.at))
