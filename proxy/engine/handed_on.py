"""What a worker hands on to the one that takes its place when it dies, beside the counters of its snapshot:
what it has counted of statements by their digests, and of documents. See `proxy.kept`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from proxy.stats import Digest, Use

from .seen import earlier, queries_seen

if TYPE_CHECKING:
    from proxy.engine.services import Services

_LONGEST: Final = 1 << 20
"""So many characters of digests are handed on: a single one may have megabytes."""
_CHANGES: Final = (
    "topology_changes", "topology_refused", "schema_changes", "schema_refused", "settings_refused",
    "recent_changes",
)  # fmt: skip


def statements(services: Services) -> list[tuple[Digest, list[Any]]]:
    """The kinds of statements that took most time, as `queries_seen` gives them."""
    found, length = [], 0
    for kind, use in queries_seen(services):
        length += len(kind[0])
        if length > _LONGEST:
            break
        found.append((kind, use))
    return found


def changes(services: Services) -> dict[str, Any]:
    """What became of documents, and what shards lacked."""
    told = {name: getattr(services.stats, name) for name in _CHANGES}
    return told | {"problems": dict(services.serving.problems.counts)}


def take_over(
    services: Services,
    changed: Mapping[str, Any],
    kinds: Iterable[tuple[list[str], list[Any]]],
    hosts: Iterable[Mapping[str, Any]],
) -> None:
    """Count on from what the worker before had counted. `hosts` are those of its snapshot."""
    stats = services.stats
    for name in _CHANGES:
        setattr(stats, name, changed[name])
    stats.recent_changes = [(when, text) for when, text in stats.recent_changes]
    services.serving.problems.counts.update({int(code): n for code, n in changed["problems"].items()})
    for (digest, database, plan), use in kinds:
        stats.digests[digest, database, plan] = Use.of(use)
    services.earlier_hosts = earlier(hosts)
