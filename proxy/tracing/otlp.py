"""Spans as OTLP's JSON has them, with the names of OpenTelemetry's semantic conventions for databases.

What is the proxy's alone is called `shardgate.…`. Nothing of it has a literal of a statement, a message of an
error (which may quote one), or a secret.

Source: OpenTelemetry Protocol 1, "JSON Protobuf Encoding"; semantic conventions, "Database client spans" and
"MySQL" (stable).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rewriter.plan import Plan

from .spans import Call, Query, Span

_SERVER, _CLIENT = 2, 3  # kinds of spans: who answers, who asks
_ERROR: Final = 2
_REMOTE_KNOWN, _REMOTE = 0x100, 0x200
_NAMED: Final = 20
"""So many shards of a statement are named."""

Attributes = dict[str, Any]


def summary(plan: Plan | None, verb: str = "") -> tuple[str, str]:
    """The operation and, with the tables that are sharded, the summary of a statement with this plan:
    "SELECT" and "SELECT pins". `verb`: the operation, where another is asked for than the plan's.
    """
    if plan is None or (verb and verb != plan.facts.form.verb):
        return verb, verb
    own = plan.facts.form.label
    return own, " ".join((own, *plan.sharded_tables)).strip()


def resource(attributes: Mapping[str, str | int], version: str) -> tuple[str, str]:
    """What stands before the spans of one request, and behind them. `attributes`: of this process."""
    of_process = json.dumps({"attributes": _attributes(attributes)})
    scope = json.dumps({"name": "shardgate", "version": version})
    return (
        f'{{"resourceSpans": [{{"resource": {of_process}, "scopeSpans": [{{"scope": {scope}, "spans": [',
        "]}]}]}",
    )


def encoded(spans: Iterable[Span], since: float) -> list[str]:
    """Each as JSON. `since`: seconds since 1970 at which the monotonic clock would have been 0."""
    return [json.dumps(_query(one, since) if isinstance(one, Query) else _call(one, since)) for one in spans]


def _query(one: Query, since: float) -> Attributes:
    trace = one.trace
    operation, short = summary(trace.plan, "PREPARE" if one.kind == "prepare" else "")
    if not operation:  # never planned
        operation = short = one.text.partition(" ")[0].upper()[:20]
    about: Attributes = {
        "db.system.name": one.flavour,
        "db.namespace": one.namespace or None,
        "db.operation.name": operation or None,
        "db.query.summary": short or None,
        "db.query.text": one.text or None,
        "client.address": one.client.rpartition(":")[0] or one.client,
        "shardgate.plan": one.kind,
        "shardgate.hosts": list(trace.hosts),
        "shardgate.shards": len(trace.shards),
        "shardgate.queue_seconds": round(one.queued, 6),
        "shardgate.user": one.user,
        "shardgate.session": one.session,
        "shardgate.calls_left_out": trace.left_out or None,
    }
    failed = one.outcome != "ok"
    about |= _rows(one) if not failed else _failure(one.code, one.outcome)
    flags = trace.flags | _REMOTE_KNOWN | (_REMOTE if trace.parent else 0)
    return _span(one, since, trace.span, trace.parent, short or "statement", _SERVER, flags, about, failed)


def _call(one: Call, since: float) -> Attributes:
    trace = one.trace
    operation, short = summary(trace.plan, one.verb)
    address, port = _address(one.host)
    shards = [f"{load.keyspace}/{load.shard}" for load in one.loads[:_NAMED]]
    about: Attributes = {
        "db.system.name": one.flavour,
        "db.operation.name": operation or None,
        "db.query.summary": short or None,
        "server.address": address,
        "server.port": port,
        "shardgate.shards": len(one.loads),
        "shardgate.shard_names": shards,
    }
    failed = one.code != 0
    about |= _rows(one) if not failed else _failure(max(one.code, 0), "connection_lost")
    name, flags = short or "statement", trace.flags | _REMOTE_KNOWN
    return _span(one, since, one.id, trace.span, name, _CLIENT, flags, about, failed)


def _address(host: str) -> tuple[str, int | None]:
    if host.startswith("unix:"):
        return host.removeprefix("unix:"), None
    name, _, port = host.rpartition(":")
    return name.strip("[]"), int(port)


def _rows(one: Query | Call) -> Attributes:
    return {"db.response.returned_rows" if one.gives_rows else "shardgate.affected_rows": one.rows}


def _failure(code: int, outcome: str) -> Attributes:
    """`outcome`: the proxy's own name for it, where the code is no server's."""
    known = str(code) if code else None
    return {
        "db.response.status_code": known,
        "error.type": known if outcome == "error" or (known and outcome == "connection_lost") else outcome,
    }


def _span(
    one: Span,
    since: float,
    id: str,
    parent: str,
    name: str,
    kind: int,
    flags: int,
    about: Attributes,
    failed: bool,
) -> Attributes:
    trace = one.trace
    found: Attributes = {
        "traceId": trace.id,
        "spanId": id,
        "flags": flags,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(int((one.began + since) * 1e9)),
        "endTimeUnixNano": str(int((max(one.ended, one.began) + since) * 1e9)),
        "attributes": _attributes(about),
    }
    if parent:
        found["parentSpanId"] = parent
    if trace.state:
        found["traceState"] = trace.state
    if failed:
        found["status"] = {"code": _ERROR}
    return found


def _attributes(about: Mapping[str, Any]) -> list[Attributes]:
    return [{"key": key, "value": _value(value)} for key, value in about.items() if value is not None]


def _value(value: Any) -> Attributes:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [_value(one) for one in value]}}
