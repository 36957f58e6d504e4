"""What `shardgate advise --json` prints."""

from __future__ import annotations

from typing import Any

from proxy.errors import error_lines
from rewriter.advice.cost import Cost
from rewriter.advice.remedies import Advice

from .findings import Finding, Findings, Group
from .report import About
from .tally import Tally


def document(about: About, tally: Tally, found: Findings, skipped: dict[str, int]) -> dict[str, Any]:
    """All of it, as JSON has it. There is no literal of a statement in it."""
    return {
        "log": {
            "name": about.name,
            "format": about.format,
            "bytes": about.size,
            "version": about.version or None,
            "not_looked_at": {what: number for what, number in sorted(skipped.items()) if number},
        },
        "kinds": sum(found.kinds.values()),
        "executions": tally.statements,
        "groups": {
            group.name.lower(): {
                "kinds": found.kinds[group],
                "executions": found.executions[group],
                "seconds": round(found.seconds[group], 6) if found.timed else None,
            }
            for group in Group
        },
        "estimated": found.estimated,
        "changes": [
            {
                "title": one.change.title,
                "database": one.change.database,
                "schema": list(one.change.lines),
                "kinds": one.kinds,
                "executions": one.executions,
                "other_statements": one.sql,
                "then": None if one.to is None else _cost(one.to),
            }
            for one in found.changes
        ],
        "statements": [_statement(one) for group in Group for one in found.of[group]],
    }


def _statement(finding: Finding) -> dict[str, Any]:
    one = finding.counted
    error = one.cost.error
    return {
        "digest": one.digest,
        "database": one.database,
        "group": finding.group.name.lower(),
        **_cost(one.cost),
        "shards_each": round(one.shards, 3),
        "hosts": one.cost.hosts,
        "estimated": one.cost.estimated,
        "count": one.count,
        "seconds": round(one.seconds, 6) if one.timed else None,
        "rows_examined": one.examined if one.timed else None,
        "rows_sent": one.sent if one.timed else None,
        "error": None if error is None else error_lines(error.name, error.arguments),
        "advice": [_advice(each) for each in finding.advice],
    }


def _advice(advice: Advice) -> dict[str, Any]:
    return {
        "text": advice.text,
        "schema": [] if advice.change is None else list(advice.change.lines),
        "sql": list(advice.sql),
        "then": None if advice.to is None else _cost(advice.to),
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {"plan": cost.way.value, "shards": cost.shards, "of": cost.of}
