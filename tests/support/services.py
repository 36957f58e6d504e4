"""A worker's `Services` without a worker: nothing is started and nobody is connected to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from config.load import load_topology
from config.schema import Schema
from config.settings import Settings
from config.topology import Topology
from proxy.backends import Backends
from proxy.catalog.facts import Collations, ServerFacts
from proxy.engine.services import Services
from proxy.tasks import Tasks
from proxy.wire.auth import RsaKey
from proxy.wire.server_auth import Authority

SETTINGS = {
    "listen": "127.0.0.1:3306",
    "users": [{"name": "u", "password": "u"}],
    "backends": {"user": "proxy"},
    "topology": {"file": "topology.json"},
    "schema": "schema.yaml",
}
#: One host, for tests that bring their plans with them.
ONE_HOST = {"version": 1, "keyspaces": {"legacy": {"master": "h1:3306"}}}


def make_services(
    backends: Backends,
    *,
    schema: Schema | None = None,
    topology: Topology | None = None,
    settings: Mapping[str, Any] | None = None,
    collations: Collations | None = None,
    authority: Authority | None = None,
    version: str = "9.7.0",
    tasks: Tasks | None = None,
) -> Services:
    """The real parts, put together as the worker does. `settings` are laid over `SETTINGS`."""
    return Services(
        Settings.model_validate({**SETTINGS, **(settings or {})}),
        schema or Schema(1, {}),
        topology or load_topology(ONE_HOST),
        backends,
        authority or Authority(lambda name: None, RsaKey()),
        ServerFacts(version, collations=collations or Collations()),
        tasks or Tasks(),
    )
