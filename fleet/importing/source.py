"""The database that is imported: where it is, who logs in, and its tables.

It is named by `mysql://user@host:3306/database`, or by an option file of the server's own programs with a
section [client]. Its password is in neither of what is written to the journal.
"""

from __future__ import annotations

import configparser
import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import aiomysql
from aiomysql import MySQLError
from pydantic import ValidationError

from config.address import parse_address
from config.backends import Backends
from config.flavour import Flavour, flavour_of
from config.schema import quote
from config.topology import Host
from fleet.core.errors import Refused
from fleet.core.hosts import Connect, Hosts, connector, problem
from fleet.importing.definitions import Look, SourceTable, read_table

SESSION: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = '{}', net_write_timeout = 3600, wait_timeout = 86400, "
    "group_concat_max_len = 1048576"
)
READS: Final = SESSION.format("ALLOW_INVALID_DATES")
WRITES: Final = (
    SESSION.format("STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES") + ", foreign_key_checks = 0"
)
_FORM: Final = "mysql://user@host:3306/database, or an option file with [client]"


@dataclass(frozen=True)
class Source:
    """Where the source is, and who logs in. `name`: for people and the journal, without the password."""

    name: str
    address: Host
    user: str
    password: str = field(repr=False)
    database: str
    ca: str = ""

    def backends(self) -> Backends:
        """As settings have it. Refused when its certificate authority cannot be read."""
        tls = {"ca": self.ca} if self.ca else None
        try:
            return Backends.model_validate({"user": self.user, "password": self.password, "tls": tls})
        except ValidationError as error:
            raise Refused(f"{self.name}: {error.errors()[0]['msg']}") from None


def read_source(text: str, password_env: str | None, database: str | None = None) -> Source:
    """The source of `--source`. Refused."""
    found = _of_url(text) if "://" in text else _of_file(Path(text))
    if password_env is not None:
        if password_env not in os.environ:
            raise Refused(f"the environment variable {password_env} is not set")
        found["password"] = os.environ[password_env]
    if database:
        found["database"] = database
    if not found["database"]:
        raise Refused(f"--source {found['name']}: names no database: {_FORM}")
    try:
        address = str(parse_address(found.pop("at")))
    except ValueError as error:
        raise Refused(f"--source {found['name']}: {error}") from None
    return Source(address=address, **found)


def _of_url(text: str) -> dict[str, str]:
    try:
        parts = urlsplit(text)
        port = parts.port or 3306
    except ValueError as error:
        raise Refused(f"--source: {error}: {_FORM}") from None
    if not text.startswith(_FORM[:8]) or not parts.hostname:
        raise Refused(f"--source: must be {_FORM}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    user, database = unquote(parts.username or "root"), unquote(parts.path.strip("/"))
    return {
        "name": f"mysql://{parts.username or 'root'}@{host}:{port}/{database}",
        "at": f"{host}:{port}",
        "user": user,
        "password": unquote(parts.password or ""),
        "database": database,
    }


def _of_file(path: Path) -> dict[str, str]:
    reader = configparser.ConfigParser(
        allow_no_value=True, interpolation=None, strict=False, comment_prefixes=("#", ";", "!")
    )
    try:
        reader.read_string(path.read_text())
        found = {name.replace("_", "-"): _bare(value) for name, value in reader["client"].items()}
    except OSError as error:
        raise Refused(f"--source {path}: {error.strerror}: must be {_FORM}") from None
    except (configparser.Error, KeyError, UnicodeDecodeError):
        raise Refused(f"--source {path}: is no option file with a section [client]") from None
    socket = found.get("socket", "") if found.get("host", "localhost") == "localhost" else ""
    return {
        "name": str(path),
        "at": f"unix:{socket}" if socket else f"{found.get('host', '127.0.0.1')}:{found.get('port', '3306')}",
        "user": found.get("user", "root"),
        "password": found.get("password", ""),
        "database": found.get("database", ""),
        "ca": found.get("ssl-ca", ""),
    }


def _bare(value: str | None) -> str:
    text = (value or "").strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def telling(connect: Connect, session: str) -> Connect:
    """Connections that have these settings."""

    async def connected(host: Host) -> aiomysql.Connection:
        made = await connect(host)
        try:
            async with made.cursor() as cursor:
                await cursor.execute(session)
        except (MySQLError, OSError) as error:
            made.close()
            raise problem(host, error) from error
        return made

    return connected


@contextlib.asynccontextmanager
async def opened(source: Source, connections: int = 4) -> AsyncIterator[Hosts]:
    """Connections that read there."""
    connect = connector(source.backends(), lambda host: (source.user, source.password))
    async with Hosts(telling(connect, READS), per_host=connections) as hosts:
        yield hosts


@dataclass(frozen=True)
class Server:
    """What a server says of itself. `identity`: the same for two addresses of one server."""

    flavour: Flavour
    identity: tuple[Any, ...]


async def look_at(hosts: Hosts, host: Host) -> Server:
    """HostError."""
    ((version, *identity),) = await hosts.query(host, "SELECT VERSION(), @@hostname, @@port, @@datadir")
    return Server(flavour_of(str(version)), tuple(identity))


async def tables_of(hosts: Hosts, source: Source, look: Look = lambda *_: None) -> dict[str, SourceTable]:
    """The tables of the source by name, without its views. HostError, Refused."""
    kinds = "('BASE TABLE', 'SYSTEM VERSIONED')"  # of the latter the rows of now
    listed = await hosts.query(
        source.address, f"SHOW FULL TABLES FROM {quote(source.database)} WHERE Table_type IN {kinds}"
    )
    found = {}
    for name, *_ in listed:
        shown = f"SHOW CREATE TABLE {quote(source.database)}.{quote(str(name))}"
        ((_, text, *_),) = await hosts.query(source.address, shown)
        found[str(name)] = read_table(str(text), source.name)
        look(found[str(name)], str(text))
    return found


async def others_of(hosts: Hosts, source: Source) -> list[str]:
    """What the source has beside tables, as `view news`. HostError."""
    kinds = (
        ("view", "views", "table_schema", "table_name"),
        ("trigger", "triggers", "trigger_schema", "trigger_name"),
        ("routine", "routines", "routine_schema", "routine_name"),
        ("event", "events", "event_schema", "event_name"),
    )
    found = []
    for kind, table, schema, name in kinds:
        sql = f"SELECT {name} FROM information_schema.{table} WHERE {schema} = "
        rows = await hosts.query(source.address, f"{sql}'{aiomysql.escape_string(source.database)}'")
        found += sorted(f"{kind} {one}" for (one,) in rows)
    return found


def unlike(before: Mapping[str, SourceTable], now: Mapping[str, SourceTable]) -> list[str]:
    """The tables that have changed, came or went; AUTO_INCREMENT does not count."""
    one, other = (
        {name: replace(table, counter=None) for name, table in tables.items()} for tables in (before, now)
    )
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


async def sizes_of(hosts: Hosts, source: Source, names: Iterable[str], most: int) -> dict[str, int]:
    """How many rows the tables have, counted up to `most` and one, as what information_schema says is old.
    HostError.
    """
    found = {}
    for name in names:
        place = f"{quote(source.database)}.{quote(name)}"
        ((count,),) = await hosts.query(
            source.address, f"SELECT COUNT(*) FROM (SELECT 1 FROM {place} LIMIT {most + 1}) AS some"
        )
        found[name] = int(count)
    return found
