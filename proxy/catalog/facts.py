"""What the servers behind say about themselves, asked once at start: version, defaults, collations.

The proxy announces the servers' version (drivers choose their statements by it), follows their sql_mode where
a session has set none, and must know for each collation its character set and, for PAD SPACE ones, the weight
of a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import RESULTS, Settings
from proxy.errors import ProxyError
from proxy.wire.constants import BINARY_COLLATION, UTF8MB4_GENERAL_CI

#: UCA 14 with a language's own rules: seldom used, and slow to ask for. The rules of the others are shared.
_TAILORED = re.compile(r"_uca1400_(?!(?:nopad_)?a[is]_c[is]$)")


@dataclass(frozen=True, slots=True)
class Collations:
    """The servers' collations: by number, each character set's default, and pad weights by number."""

    by_id: Mapping[int, tuple[str, str]] = field(default_factory=dict)  # number: (character set, collation)
    defaults: Mapping[str, str] = field(default_factory=dict)  # character set: its default collation
    pads: dict[bytes, bytes] = field(default_factory=dict)  # collation: a space's weight, b"" for NO PAD
    server: tuple[str, str] = ("utf8mb4", "utf8mb4_general_ci")

    @property
    def greeting(self) -> int:
        """What a server's greeting says of its collation: the lowest byte of the number. mysqlnd takes it for
        its own.
        """
        numbers = (number for number, names in self.by_id.items() if names == self.server)
        return next(numbers, UTF8MB4_GENERAL_CI) & 0xFF

    def settings_for(self, number: int) -> dict[str, bytes]:
        """The session settings that a handshake with this collation number means; the server's own for an
        unknown one.
        """
        charset, collation = self.by_id.get(number, self.server)
        return self._names(charset, collation)

    def names(self, charset: str, collation: str | None) -> dict[str, bytes] | None:
        """The session settings of SET NAMES; None when the pair is not known to be right."""
        known = self.defaults.get("utf8mb3" if charset == "utf8" and "utf8" not in self.defaults else charset)
        if known is None or charset in ("ucs2", "utf16", "utf16le", "utf32"):
            return None
        name = "utf8mb3" if charset == "utf8" and "utf8" not in self.defaults else charset
        if collation is None:
            return self._names(name, known)
        return self._names(name, collation) if (name, collation) in self.by_id.values() else None

    def results(self, charset: str, collation: str) -> bytes:
        """The setting for the collation of results, b"" for the character set's default one."""
        return b"" if self.defaults.get(charset) == collation else collation.encode()

    def of_results(self, settings: Settings) -> int:
        """The number of the collation that texts in results have. Without a character set they are as servers
        keep names and messages.
        """
        charset, collation = (
            (settings.get(name) or b"").decode("ascii", "replace").strip("'")
            for name in ("character_set_results", RESULTS)
        )
        if charset == "binary":
            return BINARY_COLLATION
        charset = "utf8mb3" if charset == "NULL" else charset
        wanted = (charset, collation or self.defaults.get(charset, ""))
        return next((number for number, one in self.by_id.items() if one == wanted), UTF8MB4_GENERAL_CI)

    def _names(self, charset: str, collation: str) -> dict[str, bytes]:
        name = charset.encode()
        return {
            "character_set_client": name,
            "character_set_results": name,
            "character_set_connection": name,
            "collation_connection": collation.encode(),
            RESULTS: self.results(charset, collation),
        }


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts of the first server that answered; a fleet is taken to be of one kind."""

    version: str
    defaults: dict[str, bytes] = field(default_factory=dict)  # what `ask_defaults` gives
    collations: Collations = field(default_factory=Collations)
    extended: int = 0  # the server's MariaCapability flags
    digests: bool = True
    """MD5, SHA and SHA1 are the server's own functions, or those of a component."""

    @property
    def autocommit(self) -> bool:
        """Whether sessions begin with it."""
        return self.defaults.get("autocommit") != b"0"


async def ask(conn: BackendConnection) -> ServerFacts:
    """Ask the server behind `conn`. ProxyError when it does not answer as a server does."""
    charset, collation = (
        await _rows(conn, b"SELECT @@global.character_set_server, @@global.collation_server")
    )[0]
    rows = await _collations(conn)
    by_id = {int(number): (_text(name), _text(full)) for number, name, full, _ in rows if number is not None}
    defaults = {
        _text(name): _text(full) for _, name, full, default in rows if _text(default).lower() == "yes"
    }
    usual = [one for one in by_id.values() if not _TAILORED.search(one[1])]
    collations = Collations(by_id, defaults, await _pads(conn, usual), (_text(charset), _text(collation)))
    digests = (await Collector().query(conn, b"SELECT MD5('')")).err is None
    return ServerFacts(conn.version, await ask_defaults(conn), collations, conn.offers, digests)


async def ask_defaults(conn: BackendConnection) -> dict[str, bytes]:
    """What sessions begin with and the proxy goes by, as SQL literals: it changes with SET GLOBAL."""
    names = ("sql_mode", "autocommit", "wait_timeout", "interactive_timeout")
    row = (await _rows(conn, ("SELECT @@global." + ", @@global.".join(names)).encode()))[0]
    values = {name: value or b"" for name, value in zip(names, row, strict=True)}
    return values | {"sql_mode": b"'" + values["sql_mode"] + b"'"}


async def ask_rest(conn: BackendConnection, collations: Collations) -> None:
    """Learn the pad weights that `ask` has left out, into `collations`.

    A server builds the tables of each of MariaDB's thousand UCA 14 collations when it is first named: a
    second of its time once, for which nobody should wait at start.
    """
    rest = [one for one in collations.by_id.values() if one[1].encode() not in collations.pads]
    collations.pads.update(await _pads(conn, rest))


async def _collations(conn: BackendConnection) -> list[list[bytes | None]]:
    """Number, character set, name, and whether it is its set's default. MariaDB from 10.10 on has collations
    for many character sets, whose full names stand elsewhere.
    """
    for names in (
        b"full_collation_name, is_default FROM information_schema.collation_character_set_applicability",
        b"collation_name, is_default FROM information_schema.collations",
    ):
        reply = await Collector().query(
            conn, b"SELECT id, character_set_name, " + names + b" WHERE id > 0 AND character_set_name <> ''"
        )
        if reply.err is None:
            return reply.values()
    assert reply.err is not None
    raise ProxyError("host_unreachable", host=conn.host, reason=reply.err.text())


async def _pads(conn: BackendConnection, collations: Iterable[tuple[str, str]]) -> dict[bytes, bytes]:
    """The weight of a space in every PAD SPACE collation, b"" for the others.

    Whether a collation pads is found by trying: under PAD SPACE 'a' equals 'a '.
    """
    parts = []
    for charset, collation in collations:
        if charset == "binary":
            continue
        one, two, space = (
            f"CONVERT('{text}' USING {charset}) COLLATE {collation}" for text in ("a", "a ", " ")
        )
        parts.append(f"SELECT '{collation}', IF({one} = {two}, HEX(WEIGHT_STRING({space})), '')")
    found = {b"binary": b""}
    for start in range(0, len(parts), 100):
        for name, weight in await _rows(conn, " UNION ALL ".join(parts[start : start + 100]).encode()):
            found[name or b""] = bytes.fromhex((weight or b"").decode())
    return found


async def _rows(conn: BackendConnection, sql: bytes) -> list[list[bytes | None]]:
    reply = await Collector().query(conn, sql)
    if reply.err is not None:
        raise ProxyError("host_unreachable", host=conn.host, reason=reply.err.text())
    return reply.values()


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
