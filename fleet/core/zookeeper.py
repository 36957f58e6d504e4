"""A topology's store in ZooKeeper: `<path>-fleet` beside the node holds what `FileStore` has in a folder.

The lock is two ephemeral nodes, made in one transaction: `lock`, which there can be one of, and `lock-<id>`,
which is this holder's alone. Publishing is one transaction, too: the holder's node is there, and the topology
has the version that was read. So a tool that was cut off and lost its session publishes nothing.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from typing import Any, Final

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from config.settings import ZooKeeper
from config.sources.client import Connection
from config.sources.packing import LARGEST_NODE, packed, unpacked
from fleet.core.errors import Failed, LockLost
from fleet.core.store import Holder, Registered, Stored, changed_meanwhile, locked_by

_LOST_CONNECTION: Final = (ConnectionLoss, OperationTimeoutError, SessionExpiredError)
_DOING: Final = {
    "get": "read",
    "get_children": "read",
    "exists": "read",
    "create": "made",
    "delete": "deleted",
    "ensure_path": "made",
    "set": "written",
}


class ZooKeeperStore:
    """See `Store`. `timeout`: seconds to wait for ZooKeeper."""

    registers = True

    def __init__(self, settings: ZooKeeper, timeout: float = 10.0) -> None:
        self.where = f"zookeeper {settings.hosts}{settings.path}"
        self._settings = settings
        self._timeout = timeout
        self._root = f"{settings.path}-fleet"
        self._mine = ""
        self._connection = Connection(settings)
        self._client = self._connection.client

    def open(self) -> None:
        connected = self._connection.start()
        deadline = time.monotonic() + self._timeout
        while not connected.wait(0.05):
            if time.monotonic() > deadline or self._connection.ended:
                self.close()
                reason = self._connection.trouble or f"does not answer within {self._timeout:g} s"
                raise Failed(f"{self.where}: {reason}")

    def close(self) -> None:
        if self._client.connected:
            self.unlock()
        self._client.stop()
        self._client.close()

    def _ask(self, name: str, *arguments: Any, **named: Any) -> Any:
        """What comes of one of kazoo's calls. Asked again while the connection is lost: nothing that is asked
        here does harm when it is done twice. Failed when it is lost for too long.
        """
        deadline = time.monotonic() + self._timeout + self._settings.session_timeout
        while True:
            try:
                asked = getattr(self._client, f"{name}_async")(*arguments, **named)
                return asked.get(timeout=max(0.1, deadline - time.monotonic()))
            except (NoNodeError, NodeExistsError, BadVersionError):
                raise
            except KazooTimeoutError:
                raise Failed(f"{self.where} does not answer") from None
            except _LOST_CONNECTION as error:
                _not_too_large(*arguments)
                if time.monotonic() > deadline:
                    reason = self._connection.trouble or type(error).__name__
                    raise Failed(f"{self.where} cannot be reached: {reason}") from error
                time.sleep(0.1)
            except KazooException as error:
                raise self._refused(error, str(arguments[0]), _DOING[name]) from error

    def _refused(self, error: Exception, path: str, doing: str) -> Failed:
        reason = self._connection.refusal(error, path, doing)
        return Failed(f"zookeeper {self._settings.hosts}: {reason}")

    # --- the topology ----------------------------------------------------------------------------

    def topology(self) -> Stored | None:
        return self._stored(self._settings.path)

    def schema(self) -> Stored | None:
        path = self._settings.schema_path
        return None if path is None else self._stored(path)

    def _stored(self, path: str) -> Stored | None:
        try:
            content, stat = self._ask("get", path)
        except NoNodeError:
            return None
        return Stored(unpacked(content), stat.version)

    def publish_schema(self, content: bytes, expected: Stored | None) -> None:
        assert self._settings.schema_path is not None
        self._publish(self._settings.schema_path, content, expected)

    def publish(self, content: bytes, expected: Stored | None) -> None:
        self._publish(self._settings.path, content, expected)

    def _publish(self, path: str, content: bytes, expected: Stored | None) -> None:
        if expected is None:
            self._ask("ensure_path", path.rpartition("/")[0] or "/")
        change = self._client.transaction()
        change.check(f"{self._root}/{self._mine or 'nobody'}", 0)
        if expected is None:
            change.create(path, packed(content))
        else:
            change.set_data(path, packed(content), version=expected.stamp)
        try:
            lock, document = self._commit(change)
        except _LOST_CONNECTION as error:
            _not_too_large(path, packed(content))
            self._was_published(path, content, error)
            return
        if isinstance(lock, NoNodeError):
            raise LockLost(_LOST)
        if isinstance(document, BadVersionError | NodeExistsError | NoNodeError):
            raise changed_meanwhile(f"zookeeper {self._settings.hosts}{path}")
        for outcome in (lock, document):
            if isinstance(outcome, Exception):
                raise self._refused(outcome, path, "written")

    def _was_published(self, path: str, content: bytes, error: Exception) -> None:
        """The answer was lost: look. While the lock is held nobody else writes the same."""
        found = self._stored(path)
        self.check_lock()
        if found is None or found.content != content:
            raise Failed(
                f"{self.where} cannot be reached ({type(error).__name__}), {path} is as it was: "
                "run this again"
            ) from error

    def _commit(self, change: Any) -> list[Any]:
        """What came of each part of a transaction; None for one that another has stopped."""
        try:
            outcomes: list[Any] = change.commit_async().get(timeout=self._timeout)
        except KazooTimeoutError:
            raise OperationTimeoutError("no answer") from None
        except _LOST_CONNECTION:
            raise
        except KazooException as error:
            raise self._refused(error, self._root, "written") from error
        return [None if isinstance(one, RolledBackError | RuntimeInconsistency) else one for one in outcomes]

    # --- the lock --------------------------------------------------------------------------------

    def lock(self, holder: Holder) -> None:
        """A holder of this machine that was killed is waited for: ZooKeeper finds out in a session's time."""
        self._ensure_chroot()
        self._ask("ensure_path", self._root)
        deadline = time.monotonic() + self._settings.session_timeout * 1.5 + 1.0
        mine = f"lock-{uuid.uuid4().hex}"
        while True:
            change = self._client.transaction()
            change.create(f"{self._root}/lock", bytes(holder), ephemeral=True)
            change.create(f"{self._root}/{mine}", bytes(holder), ephemeral=True)
            try:
                outcomes = self._commit(change)
            except _LOST_CONNECTION:
                outcomes = [None]
            refused = next((one for one in outcomes if isinstance(one, NoAuthError)), None)
            if refused is not None:
                raise self._refused(refused, f"{self._root}/lock", "made")
            made = not any(isinstance(one, Exception) or one is None for one in outcomes)
            if made or self._ask("exists", f"{self._root}/{mine}") is not None:
                self._mine = mine
                return
            other = self.holder()
            if other is not None and (not other.dead or time.monotonic() > deadline):
                raise locked_by(other)
            time.sleep(0.05)

    def _ensure_chroot(self) -> None:
        """kazoo would make its last part only."""
        chroot, self._client.chroot = self._client.chroot, ""
        try:
            if chroot:
                self._ask("ensure_path", chroot)
        finally:
            self._client.chroot = chroot

    def unlock(self) -> None:
        if not self._mine:
            return
        change = self._client.transaction()
        change.delete(f"{self._root}/{self._mine}")
        change.delete(f"{self._root}/lock")
        self._mine = ""
        with contextlib.suppress(*_LOST_CONNECTION, Failed):  # both go with the session, too
            self._commit(change)

    def check_lock(self) -> None:
        if not self._mine or self._ask("exists", f"{self._root}/{self._mine}") is None:
            raise LockLost(_LOST)

    def holder(self) -> Holder | None:
        content = self.read("lock")
        return None if content is None else Holder.read(content)

    def proxies(self) -> list[Registered]:
        registry = self._settings.registry
        found = []
        for name in self._children(registry):
            try:
                content, _ = self._ask("get", f"{registry}/{name}")
                found.append(Registered.of(name, json.loads(content)))
            except NoNodeError:
                pass  # it has just gone
            except ValueError:
                found.append(Registered(name, 0))
        return found

    # --- documents and lists ---------------------------------------------------------------------

    def names(self, folder: str) -> list[str]:
        return self._children(f"{self._root}/{folder}")

    def _children(self, path: str) -> list[str]:
        try:
            return sorted(self._ask("get_children", path))
        except NoNodeError:
            return []

    def create(self, name: str, content: bytes) -> bool:
        try:
            self._ask("create", f"{self._root}/{name}", packed(content), makepath=True)
        except NodeExistsError:
            return False
        return True

    def put(self, name: str, content: bytes) -> None:
        if not self.create(name, content):
            self._ask("set", f"{self._root}/{name}", packed(content))

    def read(self, name: str) -> bytes | None:
        try:
            content: bytes = self._ask("get", f"{self._root}/{name}")[0]
        except NoNodeError:
            return None
        return unpacked(content)

    def append(self, name: str, entry: bytes) -> None:
        self._ask("create", f"{self._root}/{name}/e", entry, sequence=True, makepath=True)

    def entries(self, name: str) -> list[bytes]:
        found = (self.read(f"{name}/{entry}") for entry in self.names(name))
        return [one for one in found if one is not None]


def _not_too_large(path: object, content: object = b"", *_: object) -> None:
    """A server hangs up on who sends it more than it takes. Failed when that may be why it did."""
    if isinstance(content, bytes) and len(content) > LARGEST_NODE:
        raise Failed(
            f"{path} would have {len(content)} bytes, packed: ZooKeeper takes about 1 MB, or what its "
            "servers' jute.maxbuffer allows"
        )


_LOST = (
    "the lock is lost, with the session to ZooKeeper: another tool may be at work. "
    "Look at `shardgate fleet status`, then run this again"
)
