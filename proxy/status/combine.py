"""The snapshots of all worker processes as one: what an operator sees is the proxy, not a process of it.

Counters of Prometheus must never fall, or a rate over them jumps. So what a worker had counted stays in the
sums when it is replaced, or does not answer for once: `remains` of its snapshot are kept (`keeping`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from proxy.stats import Use

from .snapshot import (
    CacheState,
    Clients,
    Host,
    PlanCache,
    Process,
    Query,
    Snapshot,
    Statements,
    slowest,
    told,
)

_SUMMED: Final = (
    "busy", "idle", "opening", "gathering", "waiting", "limit", "opened",
    "statements", "errors", "seconds", "rows", "waits", "waited",
)  # fmt: skip


def everyone(
    own: Snapshot, others: Sequence[Snapshot], silent: Sequence[Snapshot], wanted: int = 1
) -> Snapshot:
    """`own` and those that answer now, with what is kept of those that do not. There should be `wanted`."""
    together = of_hosts(combine(own, *others, *silent), [own, *others])
    together["workers"], together["workers_wanted"] = 1 + len(others), wanted
    return together


def of_hosts(taken: Snapshot, named: Iterable[Snapshot]) -> Snapshot:
    """Without the hosts that none of these has any more."""
    hosts = {one["host"] for other in named for one in other["hosts"]}
    return {**taken, "hosts": [one for one in taken["hosts"] if one["host"] in hosts]}


def silent_ones(kept: Iterable[Sequence[Any]]) -> list[Snapshot]:
    """Of workers that do not answer, what they have kept, with the statements that took most time."""
    found: list[Snapshot] = []
    for counted, _, statements in kept:
        kinds = [told((digest, database, plan), Use.of(use)) for (digest, database, plan), use in statements]
        taken: Snapshot = counted.copy()
        taken["slowest"] = kinds
        found.append(taken)
    return found


def remains(taken: Snapshot) -> Snapshot:
    """What counts of a worker that is gone: what it has counted, not what it held."""
    left = taken.copy()
    left["slowest"], left["topology"] = [], None
    left["process"] = taken["process"] | {"memory_bytes": 0, "open_files": 0, "tasks": 0}
    if taken["clients"] is not None:
        held: Clients = {**taken["clients"], "connections": 0, "sessions": 0, "busy": 0}
        left["clients"] = held | {
            "in_transaction": 0,
            "limit": 0,
            "logins": 0,
            "memory": 0,
            "waiting": 0,
            "waiting_limit": 0,
            "prepared": {},
        }
    if taken["plan_cache"] is not None:
        left["plan_cache"] = taken["plan_cache"] | {"entries": 0, "limit": 0}
    left["caches"] = [{**one, "used": True, "error": ""} for one in taken["caches"]]
    left["traces"] = taken["traces"] | {"waiting": 0}
    left["hosts"] = [
        {
            **one,
            "busy": 0,
            "idle": 0,
            "opening": 0,
            "gathering": 0,
            "waiting": 0,
            "limit": 0,
            "failures": 0,
            "error": "",
            "up": True,
        }
        for one in taken["hosts"]
    ]
    return left


def combine(own: Snapshot, *others: Snapshot) -> Snapshot:
    """Counts are summed; what is the same everywhere (versions, the shard map) is `own`'s."""
    if not others:
        return own
    every = [own, *others]
    together = own.copy()
    together["replaced"] = max(one["replaced"] for one in every)
    together["process"] = _process([one["process"] for one in every])
    clients = [one["clients"] for one in every if one["clients"] is not None]
    together["clients"] = _clients(clients) if clients else None
    together["statements"] = _statements(every)
    errors = Counter[str]()
    for one in every:
        errors.update(one["errors"])
    together["errors"] = dict(errors)
    together["slowest"] = _slowest(every)
    caches = [one["plan_cache"] for one in every if one["plan_cache"] is not None]
    together["plan_cache"] = _caches(caches) if caches else None
    together["caches"] = _table_caches(every)
    together["traces"] = {name: sum(one["traces"][name] for one in every) for name in own["traces"]}
    together["hosts"] = _hosts(every)
    return together


def _process(parts: Sequence[Process]) -> Process:
    return {
        "pid": parts[0]["pid"],
        "cpu_seconds": sum(one["cpu_seconds"] for one in parts),
        "memory_bytes": sum(one["memory_bytes"] for one in parts),
        "open_files": sum(one["open_files"] for one in parts),
        "tasks": sum(one["tasks"] for one in parts),
        "lost_log_lines": sum(one["lost_log_lines"] for one in parts),
    }


def _clients(parts: Sequence[Clients]) -> Clients:
    refused, waited = Counter[str](), Counter[str]()
    distributed, resolved, prepared = Counter[str](), Counter[str](), Counter[str]()
    for one in parts:
        distributed.update(one["distributed"])
        resolved.update(one["resolved"])
        prepared |= Counter(one["prepared"])  # all see the same
        refused.update(one["refused"])
        waited.update(one["waited"])
    return {
        "connections": sum(one["connections"] for one in parts),
        "sessions": sum(one["sessions"] for one in parts),
        "busy": sum(one["busy"] for one in parts),
        "in_transaction": sum(one["in_transaction"] for one in parts),
        "limit": sum(one["limit"] for one in parts),
        "total": sum(one["total"] for one in parts),
        "refused": dict(refused),
        "logins": sum(one["logins"] for one in parts),
        "memory": sum(one["memory"] for one in parts),
        "memory_refused": sum(one["memory_refused"] for one in parts),
        "waiting": sum(one["waiting"] for one in parts),
        "waiting_limit": sum(one["waiting_limit"] for one in parts),
        "waited": dict(waited),
        "waited_seconds": sum(one["waited_seconds"] for one in parts),
        "distributed": dict(distributed),
        "resolved": dict(resolved),
        "prepared": dict(prepared),
    }


def _statements(snapshots: Sequence[Snapshot]) -> list[Statements]:
    found: dict[str, Statements] = {}
    for taken in snapshots:
        for one in taken["statements"]:
            known = found.get(one["plan"])
            if known is None:
                found[one["plan"]] = {
                    **one,
                    "outcomes": dict(one["outcomes"]),
                    "buckets": list(one["buckets"]),
                }
                continue
            for outcome, count in one["outcomes"].items():
                known["outcomes"][outcome] = known["outcomes"].get(outcome, 0) + count
            known["buckets"] = [a + b for a, b in zip(known["buckets"], one["buckets"], strict=True)]
            known["seconds"] += one["seconds"]
    return [found[plan] for plan in sorted(found)]


def _slowest(snapshots: Sequence[Snapshot]) -> list[Query]:
    found: dict[tuple[str, str, str], Query] = {}
    for taken in snapshots:
        for one in taken["slowest"]:
            key = (one["digest"], one["database"], one["plan"])
            known = found.get(key)
            if known is None:
                found[key] = one
                continue
            found[key] = {
                **known,
                "count": known["count"] + one["count"],
                "errors": known["errors"] + one["errors"],
                "seconds": known["seconds"] + one["seconds"],
                "longest": max(known["longest"], one["longest"]),
                "rows": known["rows"] + one["rows"],
                "shards": known["shards"] + one["shards"],
                "buckets": [a + b for a, b in zip(known["buckets"], one["buckets"], strict=True)],
                "hosts": dict(Counter(known["hosts"]) + Counter(one["hosts"])),
            }
    return slowest(list(found.values()))


def _caches(parts: Sequence[PlanCache]) -> PlanCache:
    return {
        "entries": sum(one["entries"] for one in parts),
        "limit": sum(one["limit"] for one in parts),
        "hits": sum(one["hits"] for one in parts),
        "misses": sum(one["misses"] for one in parts),
        "differences": sum(one["differences"] for one in parts),
        "second_reader": all(one["second_reader"] for one in parts),
    }


def _table_caches(snapshots: Sequence[Snapshot]) -> list[CacheState]:
    """`used`: by all of the workers."""
    found: dict[str, CacheState] = {}
    for taken in snapshots:
        for one in taken["caches"]:
            known = found.get(one["cache"])
            if known is None:
                found[one["cache"]] = {**one, "counts": dict(one["counts"])}
                continue
            known["used"] = known["used"] and one["used"]
            known["error"] = known["error"] or one["error"]
            for name, count in one["counts"].items():
                known["counts"][name] += count
    return list(found.values())


def _hosts(snapshots: Sequence[Snapshot]) -> list[Host]:
    """`up` and `error` of those workers that have tried to connect: one that nobody has asked for a host yet
    knows nothing of it.
    """
    found: dict[str, Host] = {}
    for taken in snapshots:
        for one in taken["hosts"]:
            known = found.get(one["host"])
            if known is None:
                found[one["host"]] = one.copy()
                continue
            if not _has_tried(known):
                known["up"] = one["up"]
            elif _has_tried(one):
                known["up"] = known["up"] and one["up"]
            for name in _SUMMED:
                known[name] += one[name]
            known["longest"] = max(known["longest"], one["longest"])
            known["buckets"] = [a + b for a, b in zip(known["buckets"], one["buckets"], strict=True)]
            known["failures"] = max(known["failures"], one["failures"])
            if one["error"] not in known["error"]:
                known["error"] = "; ".join(filter(None, (known["error"], one["error"])))
    return list(found.values())


def _has_tried(host: Host) -> bool:
    return host["opened"] > 0 or host["failures"] > 0 or bool(host["error"])
