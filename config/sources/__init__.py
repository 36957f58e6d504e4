"""Where a topology comes from while the proxy runs: `file.py` or `zookeeper.py`, one interface.

source = open_source(settings, schema)
topology = await source.start(on_change, on_refused)
...
await source.stop()
"""

from __future__ import annotations

from config.schema import Schema
from config.settings import Settings
from config.sources.base import TopologySource
from config.sources.file import FileSource
from config.sources.zookeeper import ZooKeeperSource

__all__ = ["FileSource", "TopologySource", "ZooKeeperSource", "open_source"]


def open_source(settings: Settings, schema: Schema | None = None, name: str | None = None) -> TopologySource:
    """The source that `settings` name; not started yet.

    Topologies that cannot serve `schema` are refused. `name` is what this process calls itself where
    proxies register; by default the settings' name, or host name and process id.
    """
    layouts = settings.all_layouts
    zookeeper = settings.topology.zookeeper
    if zookeeper is not None:
        return ZooKeeperSource(zookeeper, layouts=layouts, schema=schema, name=name)
    assert settings.topology.file is not None
    return FileSource(settings.topology.file, layouts=layouts, schema=schema)
