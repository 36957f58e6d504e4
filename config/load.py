"""The front door: files, texts and documents in; models out, or one ConfigError that lists everything.

A source is one of: a path (`str` or `Path`), a text already fetched (`bytes`), a document already parsed
(a mapping). YAML and JSON are told apart by themselves.

    settings, schema, topology = check("shardgate.yaml")
    topology = load_topology(b'{"version": 7, "keyspaces": {...}}', name="/shardgate/topology")
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.check_accounts import account_problems
from config.check_addresses import address_problems, itself_problems, written_addresses
from config.checks import closed_problems, fit_problems
from config.document import ConfigError, Document, Problem, Spot, from_value, parse
from config.document import Path as Place
from config.hosts import one_host_twice
from config.layout import BUILTIN, Layout
from config.read_schema import read_schema
from config.read_topology import read_topology
from config.schema import Schema
from config.settings import Settings
from config.topology import Topology
from config.validation import note

__all__ = ["ConfigError", "Problem", "check", "load_schema", "load_settings", "load_topology"]

Source = str | Path | bytes | Mapping[str, Any]


def load_settings(source: Source, *, name: str = "", base: Path | None = None) -> Settings:
    """The settings in `source`. Relative paths start at `base`, by default the file's folder.

    Raises ConfigError.
    """
    document = open_document(source, name)
    if base is None and isinstance(source, str | Path):
        base = Path(source).absolute().parent
    settings = _settings(document, base)
    document.raise_problems()
    assert settings is not None
    return settings


def load_schema(source: Source, *, name: str = "") -> Schema:
    """The schema in `source`. Raises ConfigError."""
    document = open_document(source, name)
    schema = read_schema(document)
    document.raise_problems()
    assert schema is not None
    return schema


def load_topology(
    source: Source, *, name: str = "", layouts: Mapping[str, Layout] = BUILTIN, schema: Schema | None = None
) -> Topology:
    """The topology in `source`, which may use `layouts` and its own.

    With `schema`, it must be able to serve it. Raises ConfigError.
    """
    document = open_document(source, name)
    topology = read_topology(document, layouts)
    document.raise_problems()
    assert topology is not None
    problems = fit_problems(schema, topology, source="schema") if schema else []
    if problems:
        raise ConfigError(problems)
    return topology


def check(path: str | Path, *, closely: bool = False) -> tuple[Settings, Schema | None, Topology | None]:
    """The settings at `path`, and the schema and the topology where they are files (else None).

    Each is read, whatever is wrong with the others, and they are checked against each other. `closely`: also
    what a running proxy can live with, but nobody wants: no shard that is open for new objects, and (names
    are resolved for that, which takes time) two names of one host. Raises ConfigError with the problems of
    all.
    """
    base = Path(path).absolute().parent
    problems: list[Problem] = []
    main = _try_open(path, problems)
    settings = _settings(main, base) if main else None
    schema_path, topology_path = _paths(main, base)
    schema_document = _try_open(schema_path, problems) if schema_path else None
    schema = read_schema(schema_document, whole=False) if schema_document else None
    topology_document = _try_open(topology_path, problems) if topology_path else None
    layouts = settings.all_layouts if settings else BUILTIN
    topology = read_topology(topology_document, layouts, whole=False) if topology_document else None
    if schema and schema_document and topology and topology_document:
        told = schema_document.place, schema_document.source
        problems += fit_problems(schema, topology, *told, _wrong(topology_document))
        problems += closed_problems(schema, topology, *told) if closely else []
    if closely and topology_document:
        problems += one_host_twice(topology_document)
    if main and isinstance(main.value, Mapping) and topology and topology_document:
        problems += itself_problems(written_addresses(main.value), topology, topology_document)
    if main and settings and schema:
        _check_users(main, settings, schema, topology)
    for document in (main, schema_document, topology_document):
        problems += document.problems if document else []
    if problems or settings is None:
        raise ConfigError(problems)
    return settings, schema, topology


def load_all(
    path: str | Path, topology_file: Path | None = None, schema_file: Path | None = None
) -> tuple[Settings, Schema, Topology]:
    """The settings at `path`, with schema and topology for what asks no ZooKeeper: those of the files given,
    else those that the settings name. Raises ConfigError, also when one of them is in ZooKeeper.
    """
    settings, schema, topology = check(path)
    if schema_file is not None:
        schema = load_schema(schema_file)
    if topology_file is not None:
        topology = load_topology(topology_file, layouts=settings.all_layouts, schema=schema)
    problems = []
    if topology is None:
        problems.append(Problem("", "the topology is in ZooKeeper: give --topology FILE"))
    if schema is None:
        problems.append(Problem("", "the schema is in ZooKeeper: give --schema FILE"))
    if schema is None or topology is None:
        raise ConfigError(problems)
    return settings, schema, topology


def _wrong(topology: Document) -> set[str]:
    """The keyspaces that have problems of their own."""
    places = (re.split(r"[.\[ ]", one.place) for one in topology.problems)
    return {place[1] for place in places if place[0] == "keyspaces" and len(place) > 1}


def open_document(source: Source, name: str = "") -> Document:
    """The parsed document; `name` stands for it in problems (by default its path).

    Raises ConfigError when it cannot be read or is neither YAML nor JSON.
    """
    if isinstance(source, Mapping):
        return from_value(source, name)
    if isinstance(source, bytes):
        return parse(source, name)
    name = name or str(source)
    try:
        text = Path(source).read_bytes()
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror}", name)]) from error
    return parse(text, name)


def _try_open(path: str | Path, problems: list[Problem]) -> Document | None:
    try:
        return open_document(path)
    except ConfigError as error:
        problems += error.problems
        return None


def _paths(main: Document | None, base: Path) -> tuple[Path | None, Path | None]:
    """Where the schema and the topology are, read from settings that may have problems."""
    given = (main.at(("schema",)), main.at(("topology", "file"))) if main else (None, None)
    schema_path, topology_path = (base / one if isinstance(one, str) and one else None for one in given)
    return schema_path, topology_path


# --- settings ------------------------------------------------------------------------------------


def _settings(document: Document, base: Path | None) -> Settings | None:
    """The settings in `document`; None after noting problems there."""
    if not isinstance(document.value, Mapping):
        document.refuse((), "must be a mapping with the fields users, backends, topology, schema, …")
        return None
    settings = None
    try:
        settings = Settings.from_document(document.value, base)
    except ValidationError as error:
        note(error, Settings, document)
    _check_schema(document, document.value)
    _check_names(document, document.value)
    _check_modes(document, document.value)
    for place, message in (*account_problems(document.value), *address_problems(document.value)):
        document.refuse(place, message)
    return None if document.problems else settings


def _check_modes(document: Document, value: Mapping[str, Any]) -> None:
    """Users' transactions may be distributed only where `xa.enabled` is on."""
    users, xa = value.get("users"), value.get("xa")
    if not isinstance(users, list) or (isinstance(xa, Mapping) and xa.get("enabled")):
        return
    for number, user in enumerate(users):
        if isinstance(user, Mapping) and user.get("transaction_mode") == "xa":
            document.refuse(("users", number, "transaction_mode"), "xa needs xa: {enabled: true}")


def _check_schema(document: Document, value: Mapping[str, Any]) -> None:
    """It is in one place: a file, or a node of the topology's ZooKeeper."""
    found: object = value
    for name in ("topology", "zookeeper", "schema_path"):
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None and value.get("schema") is None:
        document.refuse((), "field 'schema' is missing")
    if found is not None and value.get("schema") is not None:
        message = "topology.zookeeper.schema_path names a node: the schema is in one place"
        document.refuse(("schema",), message)


def _check_names(document: Document, value: Mapping[str, Any]) -> None:
    """Users are named once and can log in, and layouts do not take a built-in name."""
    users = value.get("users")
    seen: set[str] = set()
    for index, user in enumerate(users if isinstance(users, list) else ()):
        name = user.get("name") if isinstance(user, Mapping) else None
        if isinstance(name, str) and name in seen:
            document.refuse(("users", index, "name"), f"there is a user {name} already")
        if isinstance(name, str):
            seen.add(name)
        if value.get("tls") is None and isinstance(user, Mapping) and user.get("require_tls") is True:
            message = "the settings have no section 'tls': this user could never log in"
            document.refuse(("users", index, "require_tls"), message)
    for name, spot in Spot(document, ("layouts",)).entries():
        if name in BUILTIN:
            spot.refuse("is built in: choose another name")


def _check_users(main: Document, settings: Settings, schema: Schema, topology: Topology | None) -> None:
    """The databases of users and accounts exist, unless a default host may have further ones."""
    if topology is None or topology.default is not None:
        return
    lists: list[tuple[Place, tuple[str, ...]]]
    lists = [(("users", index), one.databases) for index, one in enumerate(settings.users)]
    for index, account in enumerate(settings.backends.accounts):
        lists.append((("backends", "accounts", index), account.databases))
    for place, databases in lists:
        for name in databases:
            if name != "*" and name not in schema.databases:
                main.refuse((*place, "databases"), f"the schema has no database {name!r}")
