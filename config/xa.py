"""How distributed transactions are named on the servers, and where their decisions are: what the proxy, which
runs them, and the tools, which make the tables and wait for the transactions, must agree on.

A branch is named by gtrid, bqual and formatID, the last of which tells ours from those of applications:

    gtrid   IDENTITY.THREAD.RANDOM   the host pair that holds the decision, its connection, 80 bits
    bqual   THREAD.ADDRESS           the branch's connection, the first host as the topology names it

The identity is a row that replicas have, too, so it stays what it is when a slave becomes the master.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

DATABASE: Final = "shardgate_xa"
"""On every master, out of clients' reach."""
DECISIONS: Final = "decisions"
IDENTITY: Final = "identity"
FORMAT_ID: Final = 0x53475831
COMMITTED: Final = 1
ABORTED: Final = 0

TABLES: Final = {
    DECISIONS: (
        f"CREATE TABLE IF NOT EXISTS `{DATABASE}`.`{DECISIONS}` (`gtrid` VARBINARY(64) NOT NULL PRIMARY KEY,"
        " `committed` TINYINT NOT NULL, `hosts` VARBINARY(4096) NOT NULL,"
        " `made` TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, KEY (`made`)) ENGINE=InnoDB"
    ),
    IDENTITY: (
        f"CREATE TABLE IF NOT EXISTS `{DATABASE}`.`{IDENTITY}` (`id` VARBINARY(16) NOT NULL PRIMARY KEY)"
        " ENGINE=InnoDB"
    ),
}
"""What makes the tables, by name."""

_NAME: Final = re.compile(rb"([0-9a-f]{16})\.(\d{1,20})\.([0-9a-f]{20})\Z")
_MOST: Final = 64
"""Bytes of a gtrid, and of a bqual."""


def create_sql() -> list[str]:
    """The statements that make the database, its tables and the host's identity; once there, they stay."""
    identity = os.urandom(8).hex()
    return [
        f"CREATE DATABASE IF NOT EXISTS `{DATABASE}` CHARACTER SET utf8mb4",
        *TABLES.values(),
        f"INSERT INTO `{DATABASE}`.`{IDENTITY}` SELECT '{identity}' FROM (SELECT 1) AS one"
        f" WHERE NOT EXISTS (SELECT 1 FROM `{DATABASE}`.`{IDENTITY}`)",
    ]


def new_gtrid(identity: str, thread: int) -> bytes:
    """The name of a transaction whose decision `identity` holds, made over its connection `thread`."""
    return b"%s.%d.%s" % (identity.encode(), thread, os.urandom(10).hex().encode())


@dataclass(frozen=True)
class BranchName:
    """A branch of ours. `thread`: its connection on its host, `first_thread`: that of the decision."""

    gtrid: bytes
    bqual: bytes
    identity: str
    first_thread: int

    @property
    def thread(self) -> int:
        """The connection that made the branch."""
        return int(self.bqual.partition(b".")[0])

    @property
    def first(self) -> str:
        """The first host, as the topology named it; perhaps cut."""
        return self.bqual.partition(b".")[2].decode("utf-8", "replace")

    @property
    def literal(self) -> bytes:
        """As XA statements have it."""
        return literal(self.gtrid, self.bqual)

    def is_of(self, address: str) -> bool:
        """Whether the first host's address is this one."""
        return address.encode()[: len(self.bqual.partition(b".")[2])] == self.bqual.partition(b".")[2] != b""

    @classmethod
    def own(cls, gtrid: bytes, first: str) -> BranchName:
        """The name of a transaction as far as it tells who decides."""
        identity, thread, _ = gtrid.split(b".")
        return cls(gtrid, new_bqual(0, first), identity.decode(), int(thread))

    @classmethod
    def read(cls, format_id: int, gtrid: bytes, bqual: bytes) -> BranchName | None:
        """A name as XA RECOVER tells it; None for one that is not ours."""
        found = _NAME.match(gtrid)
        if format_id != FORMAT_ID or found is None or not bqual.partition(b".")[0].isdigit():
            return None
        return cls(gtrid, bqual, found[1].decode(), int(found[2]))


def new_bqual(thread: int, first: str) -> bytes:
    """The rest of a branch's name."""
    return (b"%d." % thread + first.encode())[:_MOST]


def literal(gtrid: bytes, bqual: bytes) -> bytes:
    """`X'…',X'…',1397184561`: in any sql_mode and character set."""
    return b"X'%s',X'%s',%d" % (gtrid.hex().encode(), bqual.hex().encode(), FORMAT_ID)
