"""The settings: what one proxy is told about itself.

Listen addresses, users, backends, where the topology and the schema are, limits, time-outs, logs. The
fields' documentation, with defaults and examples, is docs/configuration.md. Unknown fields are errors;
durations are seconds, sizes are bytes; relative paths start at the folder of the settings file.

`load.load_settings` makes a `Settings` of a file. Secrets are resolved then: a password is written in
the file, or named by an environment variable or a secret file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from config import layout as layouts_module
from config.address import Address
from config.backends import Backends
from config.credentials import Credentials, LateCredentials, Role, database_names
from config.fields import (
    Count,
    FilePath,
    Flag,
    HostAddress,
    HostName,
    LayoutSettings,
    ListenAddress,
    Network,
    NodeName,
    NodePath,
    Positive,
    ServerVersion,
    ZooKeeperHosts,
    ZooKeeperUser,
)
from config.layout import Layout
from config.model import Model
from config.tls import ClientTls, OutgoingTlsField
from config.tracing import Tracing
from config.units import LONGEST, Duration, Size, at_least

FILE: Final = Path("shardgate.yaml")
"""Where they are, unless a command is told."""


class Scatter(Model):
    """Whether reads without a routing condition may go to all shards, and for how many rows."""

    allowed: Flag = True
    limit: Positive | None = None
    """The most rows such a read may give; None: no limit of its own."""


def _scatter(value: object) -> object:
    if value in ("allow", "deny"):
        return Scatter(allowed=value == "allow")
    if isinstance(value, Mapping) and set(value) == {"limit"}:
        return {"allowed": True, "limit": value["limit"]}
    if isinstance(value, Scatter):
        return value
    raise ValueError("must be allow, deny or {limit: ROWS}")


_NATIVE_HASH: Final = re.compile(r"\*[0-9A-Fa-f]{40}\Z")
_SHA2_HASH: Final = re.compile(r"\$A\$[0-9A-Fa-f]{3}\$[\x01-\x7f]{20}[./0-9A-Za-z]{43}\Z")


class User(Credentials):
    """Who may log in to the proxy, and what for."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    password_hash: SecretStr | None = None
    role: Role = Role.WRITE
    databases: Annotated[tuple[str, ...], BeforeValidator(database_names)] = ("*",)
    max_connections: Count = 0
    scatter: Annotated[Scatter, BeforeValidator(_scatter)] = Scatter()
    transaction_mode: Literal["single", "multi", "xa"] = "multi"
    require_tls: Flag = False

    @field_validator("password_hash")
    @classmethod
    def _check_hash(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        text = value.get_secret_value()
        if re.fullmatch(r"0x(?:[0-9A-Fa-f]{2})+", text):  # as SHOW CREATE USER prints it
            text = bytes.fromhex(text[2:]).decode("latin-1")
        if not _NATIVE_HASH.match(text) and not _SHA2_HASH.match(text):
            raise ValueError(
                "must be a stored password: * and 40 hexadecimal digits (mysql_native_password),"
                " or $A$005$… (caching_sha2_password), possibly as 0x and hexadecimal digits"
            )
        return SecretStr(text)

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if self.secret is None and self.password_hash is None:
            raise ValueError("one of password, password_env, password_file, password_hash is missing")
        return self

    @property
    def native_hash(self) -> bytes | None:
        """SHA1(SHA1(password)), 20 bytes, when `password_hash` is of mysql_native_password."""
        text = self.password_hash.get_secret_value() if self.password_hash else ""
        return bytes.fromhex(text[1:]) if text.startswith("*") else None

    @property
    def sha2_hash(self) -> str | None:
        """`$A$005$` + 20 characters of salt + 43 of digest, when `password_hash` is of caching_sha2."""
        text = self.password_hash.get_secret_value() if self.password_hash else ""
        return text if text.startswith("$") else None

    def may_use(self, database: str) -> bool:
        """Whether the user may use the logical database."""
        return "*" in self.databases or database in self.databases


class Listener(Model):
    """One address where clients connect: a TCP port (0: a free one) or a Unix socket."""

    address: ListenAddress
    proxy_protocol: tuple[Network, ...] = ()
    """Networks of load balancers, whose connections begin with a PROXY header."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.proxy_protocol and self.address.is_unix:
            raise ValueError("proxy_protocol: the clients of a Unix socket have no address to trust")
        return self


def _listeners(value: object) -> object:
    many = value if isinstance(value, list | tuple) else [value]
    if not many:
        raise ValueError("needs at least one address")
    return [{"address": one} if isinstance(one, str) else one for one in many]


class ZooKeeper(Credentials):
    """A topology kept in a ZooKeeper node. With a user, nodes are made for this user alone."""

    hosts: ZooKeeperHosts
    user: ZooKeeperUser | None = None
    tls: OutgoingTlsField = None
    path: NodePath = "/shardgate/topology"
    cache_file: FilePath = Field(default=Path("topology.cache.json"), validate_default=True)
    schema_path: NodePath | None = None
    schema_cache_file: FilePath = Field(default=Path("schema.cache.yaml"), validate_default=True)
    proxies_path: NodePath | None = None
    name: NodeName | None = None
    session_timeout: Annotated[Duration, Field(gt=0, le=3600)] = 10.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.user is None) != (self.secret is None):
            raise ValueError("user and password (password_env, password_file) are given together, or neither")
        if self.schema_path == self.path:
            raise ValueError("path and schema_path are two nodes")
        return self

    @property
    def documents(self) -> tuple[str, ...]:
        """The nodes of the documents: the topology's, and the schema's if it is one."""
        return (self.path,) if self.schema_path is None else (self.path, self.schema_path)

    @property
    def registry(self) -> str:
        """The node under which the proxies register."""
        return self.proxies_path or f"{self.path}-proxies"


class TopologySettings(Model):
    """Where the topology comes from: one of the two."""

    file: FilePath | None = None
    proxies_path: FilePath | None = None
    zookeeper: ZooKeeper | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.file is None) == (self.zookeeper is None):
            raise ValueError("must have either 'file' or 'zookeeper'")
        if self.proxies_path is not None and self.file is None:
            raise ValueError("proxies_path is for a file: give zookeeper.proxies_path")
        return self

    @property
    def registry(self) -> Path | None:
        """The folder where proxies with a topology file register; None with ZooKeeper."""
        beside = self.file and self.file.with_name(f"{self.file.name}-proxies")
        return self.proxies_path or beside


class StatusSettings(Model):
    """Metrics, health and the status page; no address: none. `names`: what browsers may call the address."""

    listen: ListenAddress | None = Address("127.0.0.1", 9307)
    names: tuple[HostName, ...] | None = None


class Limits(Model):
    """What a client may ask for; 0 is no limit where it says so in the documentation."""

    max_connections: Positive = 10_000
    max_packet: Annotated[Size, Field(ge=1024, le=1 << 30)] = 64 << 20
    max_statement: Annotated[Size, Field(ge=1024)] = 64 << 20
    in_list: Positive = 10_000
    parse_depth: Annotated[Positive, Field(le=10_000)] = 200
    scatter_rows: Count = 1_000_000
    scatter_bytes: Size = 1 << 30
    prepared_statements: Positive = 10_000
    user_variables: Annotated[Size, Field(ge=1)] = 4 << 20
    session_memory: Annotated[Size, Field(ge=1)] = 128 << 20
    client_memory: Annotated[Size, Field(ge=1)] = 1 << 30
    logins: Positive = 2000
    gather_rows: Count = 1_000_000
    gather_bytes: Size = 1 << 30
    gathers: Positive = 8
    buffered: Count = 10_000


class Placement(Model):
    """Where new rows without an ID, or a column that says where, go."""

    together: Count = 100


class Reorder(Model):
    """Room between the rows of orderable mappings, in halvings of a gap."""

    threshold: Annotated[Count, Field(le=80)] = 16
    bisections: Annotated[Positive, Field(le=80)] = 64

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.threshold > self.bisections:
            raise ValueError("threshold is at most bisections: what was re-spaced must have room")
        return self


class Xa(Model):
    """Transactions over several hosts that commit all or none. In seconds: after `resolve_after` a branch
    that is prepared is taken to be left; decisions are kept for `keep`.
    """

    enabled: Flag = False
    resolve_after: Annotated[Duration, Field(gt=0)] = 3.0
    keep: Annotated[Duration, Field(ge=1)] = 600.0


class Timeouts(Model):
    """In seconds; 0 is no limit where it says so in the documentation."""

    statement: Annotated[Duration, at_least(0.01, or_zero=True)] = 0.0
    planning: Annotated[Duration, at_least(0.01, or_zero=True)] = 30.0
    idle_client: Annotated[Duration, at_least(0.1, or_zero=True)] = 28800.0
    idle_transaction: Annotated[Duration, at_least(0.1, or_zero=True)] = 3600.0
    login: Annotated[Duration, at_least(0.1)] = 10.0
    drain: Duration = 30.0
    buffer: Duration = 10.0


class Logging(Model):
    """Logs go to standard error."""

    format: Literal["auto", "json", "text"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
    slow_query_ms: Annotated[float, Field(ge=0, le=LONGEST * 1000, strict=True)] | None = 1000.0


class FleetSettings(LateCredentials):
    """Whom `shardgate fleet` logs in to the hosts as. `hosts`: passwords that are others there."""

    user: Annotated[str, Field(min_length=1, max_length=80)]
    hosts: dict[HostAddress, LateCredentials] = Field(default_factory=dict)

    def login(self, host: str) -> tuple[str, str]:
        """User name and password for `host`. ValueError when the password cannot be read."""
        own = self.hosts.get(host)
        secret = own.secret if own and own.secret is not None else self.secret
        return self.user, secret or ""


def _some(value: object) -> object:
    if isinstance(value, list | tuple) and not value:
        raise ValueError("needs at least one user")
    return value


def _no_compression(value: object) -> object:
    return () if value in ("off", False) else value  # YAML takes the bare word for false


def _workers(value: object) -> object:
    return len(os.sched_getaffinity(0)) if value == "auto" else value


class Settings(Model):
    """Everything in the settings file."""

    listen: Annotated[tuple[Listener, ...], BeforeValidator(_listeners)] = (
        Listener(address=Address("127.0.0.1", 3307)),
    )
    workers: Annotated[Positive, BeforeValidator(_workers), Field(le=256)] = Field(
        default_factory=lambda: len(os.sched_getaffinity(0))
    )
    """Worker processes; `auto` in the document is one per core this process may use."""
    tls: ClientTls | None = None
    users: Annotated[tuple[User, ...], BeforeValidator(_some)]
    backends: Backends
    fleet: FleetSettings | None = None
    topology: TopologySettings
    schema_file: FilePath | None = Field(None, alias="schema")
    """None: the schema is in ZooKeeper, at `topology.zookeeper.schema_path`."""
    status: StatusSettings = StatusSettings()
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    placement: Placement = Placement()
    reorder: Reorder = Reorder()
    xa: Xa = Xa()
    plan_cache_size: Positive = 10_000
    logging: Logging = Logging()
    tracing: Tracing | None = None
    server_version: ServerVersion | None = None
    compression: Annotated[tuple[Literal["zlib", "zstd"], ...], BeforeValidator(_no_compression)] = (
        "zlib",
        "zstd",
    )
    layouts: dict[str, LayoutSettings] = Field(default_factory=dict)

    @property
    def schema_place(self) -> str:
        """For people: the schema's file or node."""
        zookeeper = self.topology.zookeeper
        if self.schema_file is not None or zookeeper is None:
            return str(self.schema_file)
        return f"zookeeper {zookeeper.hosts}{zookeeper.schema_path}"

    @property
    def all_layouts(self) -> dict[str, Layout]:
        """The built-in layouts and the settings' own, by name."""
        return dict(layouts_module.BUILTIN) | {name: one.made(name) for name, one in self.layouts.items()}

    def user(self, name: str) -> User | None:
        """The user of that name, or None."""
        return next((one for one in self.users if one.name == name), None)

    @classmethod
    def from_document(cls, value: Any, base: Path | None = None) -> Settings:
        """Validate a parsed document; raises pydantic.ValidationError. Paths start at `base`."""
        return cls.model_validate(value, context={"base": base})
