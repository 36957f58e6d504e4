"""Where to go on: a file that is replaced whole, after what it counts as read was written out.

It has the changes of prepared transactions, too, which are in the logs before they are decided: so it is
readable by its owner only, as it is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.sources.writing import write_atomically
from config.topology import Host
from fleet.binlog.gtids import Gtids, GtidSet, GtidState
from fleet.binlog.transactions import Change
from fleet.core.errors import Failed, Refused


@dataclass
class Positions:
    """`gtids`: what has been read, of all hosts. `hosts`: those that are read, each with the last GTID of
    each domain, where GTIDs have domains. `prepared`: changes by XID and the host that has them.
    """

    gtids: Gtids
    hosts: dict[Host, str] = field(default_factory=dict)
    prepared: dict[str, list[Change]] = field(default_factory=dict)

    @property
    def domains(self) -> GtidState | None:
        """`gtids`, where they have domains."""
        return self.gtids if isinstance(self.gtids, GtidState) else None

    def document(self) -> dict[str, Any]:
        """As in the file."""
        kind = "domains" if self.domains is not None else "sets"
        return {"kind": kind, "gtids": str(self.gtids), "hosts": self.hosts, "prepared": self.prepared}

    def save(self, file: Path) -> None:
        """Replace the file. Failed."""
        try:
            write_atomically(file, json.dumps(self.document(), ensure_ascii=False).encode())
        except OSError as error:
            raise Failed(f"{file} cannot be written: {error.strerror}") from None

    def decided(self, host: Host, xid: str, reading: set[Host]) -> list[Change]:
        """The changes of a transaction that is decided in the log of `host`, which are kept no longer. They
        may have been prepared at a host that is not read any more, before another took its place.
        """
        for key in self.prepared:
            where, _, name = key.partition(" ")
            if name == xid and (where == host or where not in reading):
                return self.prepared.pop(key)
        return []


def load(file: Path) -> Positions | None:
    """What the file has; None when there is none. Refused when it is no such file."""
    try:
        document = json.loads(file.read_bytes())
        kinds: dict[str, Callable[[str], Gtids]] = {"domains": GtidState, "sets": GtidSet}
        kind = kinds[document["kind"]]
        return Positions(kind(document["gtids"]), dict(document["hosts"]), dict(document["prepared"]))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            f"{file} is no file that this command has written ({error!r}): give another, or "
            "remove it to begin with now, or with --from-oldest at what the binary logs still have"
        ) from None
