"""What a statement's meaning depends on besides its text."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from config.flavour import FLAVOURS, MYSQL, MYSQL_WITHOUT_DIGESTS, Flavour

from .fingerprint import Findall, findall


@dataclass(frozen=True, slots=True)
class Env:
    """The session's settings that change how its statements are read, as one part of a plan's key.

    A session makes a new one whenever one of them changes, and keeps it between.
    """

    database: str | None = None
    """The current database: a logical one, a physical one, or one of the default host."""
    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    pipes_as_concat: bool = False
    high_not_precedence: bool = False
    ignore_space: bool = False
    scatter_writes: bool = False
    """Whether an UPDATE or DELETE that names no ID may run on all shards."""
    with_deleted: bool = False
    """Whether reads see the rows that `soft_delete` hides."""
    server_version: int = 80000
    """As in executable comments: 8.0.36 is 80036, 10.11.6 is 101106."""
    flavour: Flavour = MYSQL
    charset: str = "utf8mb4"
    """The character set of statements (character_set_client), for the bytes of text keys."""
    connection: str = ""
    """The one that their texts are converted to (character_set_connection), if it is another."""

    codec: str = "utf-8"
    """Python's codec of `charset`, for names outside ASCII: "utf-8" where there is none."""

    parameters: bool = False
    """Whether `?` stands for a parameter: the text of a prepared statement."""

    each_shard: bool = False
    """Whether the shards' answers are wanted one after another, unmerged: groups of a gathered statement."""

    exact: str = ""
    """The result columns whose text would be rounded (see digits.py), one character a column: "1" is to come
    with all its digits. "" for an answer as text.
    """

    key: bytes = field(init=False, repr=False, compare=False)
    """All of the above as bytes: equal keys mean equal settings."""
    findall: Findall = field(init=False, repr=False, compare=False)
    """Cuts a statement that ends in a NUL byte into (text, literal) pairs, see fingerprint.py."""

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle: `findall` is a function, and is found again."""
        return type(self), tuple(getattr(self, one.name) for one in fields(self) if one.init)

    def __post_init__(self) -> None:
        flags = (
            self.ansi_quotes,
            self.no_backslash_escapes,
            self.pipes_as_concat,
            self.high_not_precedence,
            self.ignore_space,
            self.scatter_writes,
            self.with_deleted,
            self.parameters,
            self.each_shard,
            self.database is not None,
        )
        bits = "".join("01"[flag] for flag in flags)
        charsets = f"{self.charset}/{self.connection}/{self.codec}"
        server = f"{self.flavour.name}{self.server_version}{'' if self.flavour.digests else _NO_DIGESTS}"
        text = f"{bits}{self.exact} {server} {charsets} {self.database or ''}"
        object.__setattr__(self, "key", text.encode("utf-8", "surrogateescape"))
        object.__setattr__(self, "findall", findall(self.ansi_quotes, self.no_backslash_escapes))


def database_of(key: bytes) -> str:
    """The current database that the key of an `Env` names; "" for none."""
    return key.split(b" ", 3)[3].decode("utf-8", "replace")


_NO_DIGESTS = "-"
_FLAGS = (
    *("ansi_quotes", "no_backslash_escapes", "pipes_as_concat", "high_not_precedence", "ignore_space"),
    *("scatter_writes", "with_deleted", "parameters", "each_shard"),
)


def env_of(key: bytes) -> Env:
    """The `Env` that has this key."""
    bits, server, charsets, database = key.decode("utf-8", "surrogateescape").split(" ", 3)
    flags = {name: bit == "1" for name, bit in zip(_FLAGS, bits, strict=False)}
    flavour = next(one for name, one in FLAVOURS.items() if server.startswith(name))
    version = int(server.removeprefix(flavour.name).removesuffix(_NO_DIGESTS))
    charset, connection, codec = charsets.split("/")
    return Env(
        database=database if bits[len(_FLAGS)] == "1" else None,
        server_version=version,
        flavour=MYSQL_WITHOUT_DIGESTS if server.endswith(_NO_DIGESTS) else flavour,
        charset=charset,
        connection=connection,
        codec=codec,
        exact=bits[len(_FLAGS) + 1 :],
        **flags,
    )
