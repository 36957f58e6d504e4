"""What ZooKeeper says to a proxy of these settings, for `check --connect`. Nothing stays changed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import Permissions

from config.settings import ZooKeeper
from config.sources.client import Connection
from config.sources.packing import unpacked

CONNECT_SECONDS = 5.0
_CHANGES = Permissions.WRITE | Permissions.CREATE | Permissions.DELETE | Permissions.ADMIN


def look(settings: ZooKeeper) -> tuple[dict[str, bytes], list[str]]:
    """The documents by their paths (topology, schema), and what is wrong: no connection, no right to read one
    or to register, no node, a node that is open to everybody although there is a user.
    """
    connection = Connection(settings)
    try:
        connected = connection.start()
        deadline = time.monotonic() + CONNECT_SECONDS
        while not connected.wait(0.05):
            if time.monotonic() > deadline or connection.ended:
                return {}, [connection.trouble or f"no answer within {CONNECT_SECONDS:g} s"]
        return _Look(connection).all()
    finally:
        connection.client.stop()
        connection.client.close()


class _Look:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._settings = connection.settings
        self._problems: list[str] = []

    def all(self) -> tuple[dict[str, bytes], list[str]]:
        found: dict[str, bytes] = {}
        for path in self._settings.documents:
            content = self._tried(path, "read", self._asked("get"), path)
            if content is not None:
                found[path] = unpacked(content[0])
                self._note_open(path)
        self._tried(self._settings.registry, "written", self._register)
        return found, self._problems

    def _note_open(self, path: str) -> None:
        """Whether everybody may change a node, although there is a user."""
        if self._settings.user is not None:
            acls = self._tried(path, "read", self._asked("get_acls"), path)
            for acl in acls[0] if acls else ():
                if acl.id.scheme == "world" and acl.perms & _CHANGES:
                    self._problems.append(_OPEN.format(path=path, user=self._settings.user))

    def _asked(self, name: str) -> Callable[..., Any]:
        ask = getattr(self._connection.client, f"{name}_async")
        return lambda *arguments, **named: ask(*arguments, **named).get(timeout=CONNECT_SECONDS)

    def _tried(self, path: str, doing: str, ask: Callable[..., Any], *arguments: Any) -> Any:
        """What comes of it; None after noting why nothing does."""
        try:
            return ask(*arguments)
        except NoNodeError:
            makes = "schema" if path == self._settings.schema_path else "topology"
            self._problems.append(f"{path} does not exist: `shardgate {makes} put FILE` makes it")
        except (KazooException, KazooTimeoutError) as error:
            self._problems.append(self._connection.refusal(error, path, doing))
        return None

    def _register(self) -> None:
        """As a proxy does, in the place of proxies or the first above it that is there."""
        place = self._settings.registry
        while place and self._asked("exists")(place) is None:
            place = place.rpartition("/")[0]
        if not place and self._asked("exists")("/") is None:
            return  # not even the chroot is there, which the missing topology tells of
        node = f"{place}/check-{uuid.uuid4().hex}"
        self._asked("create")(node, b"", ephemeral=True)
        self._asked("delete")(node)


_OPEN = (
    "{path} may be changed by everybody who reaches ZooKeeper: it was made without a user. "
    "Give it an ACL: setAcl {path} auth:{user}:cdrwa, after addauth digest {user}:…"
)
