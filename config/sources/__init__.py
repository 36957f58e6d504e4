"""Where a topology comes from while the proxy runs: `file.py` or `zookeeper.py`, one interface.

source = open_source(settings, schema)
topology = await source.start(on_change, on_refused)
source.serving(topology, schema)  # and whenever it serves others: the tools wait for that
...
await source.stop()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from config.schema import Schema
from config.settings import Settings
from config.sources.base import TopologySource
from config.sources.file import FileSource
from config.sources.zookeeper import ZooKeeperSource

__all__ = ["FileSource", "TopologySource", "ZooKeeperSource", "open_source"]


def open_source(
    settings: Settings,
    schema: Schema | None = None,
    name: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> TopologySource:
    """The source that `settings` name; not started yet.

    Topologies that cannot serve `schema` are refused. `name` is what this process calls itself where
    proxies register in ZooKeeper; by default the settings' name, or host name and process id. `details` are
    registered with it.
    """
    layouts = settings.all_layouts
    zookeeper = settings.topology.zookeeper
    if zookeeper is not None:
        return ZooKeeperSource(zookeeper, layouts=layouts, schema=schema, name=name, details=details)
    file = settings.topology.file
    assert file is not None
    registry = settings.topology.registry
    return FileSource(file, layouts=layouts, schema=schema, registry=registry, details=details)
