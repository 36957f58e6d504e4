"""Where proxies with a topology file register: a folder with a file for each process.

    topology.json-proxies/db1-4711-5f0c1e2a    {"version": 7, "digest": …}

The file is locked (flock) as long as the process lives, however it ends: also on a folder that machines
share, if its file system has locks (NFS from version 4 on). So a file without a lock is left over, and says
nothing. It appears with its lock, and holds its own name: what else lies in the folder is nobody's to remove.

Who can read a file can lock what a killed process has left, and so let it seem alive: the folder and the
files are their owner's alone. In a folder that is there already its group may read them, if it may read that.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOM = 1024
"""Bytes that a file has at least: then it is written anew in one call, and nobody reads half of it."""
_FILE = "file"
"""Where a file holds its own name."""


class Registration:
    """The file of this process in `folder`. `name` is no other process's."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._handle: int | None = None
        self._content = b""

    def say(self, content: Mapping[str, Any]) -> None:
        """Let the file say `content`. OSError: it cannot be written, or not be locked."""
        data = json.dumps({**content, _FILE: self.path.name}).encode()
        data = data.ljust(max(_ROOM, len(self._content)))
        if self._handle is None or not self._there(self._handle):
            self.end()
            self._handle = self._made(data)
        elif data != self._content:
            os.pwrite(self._handle, data, 0)
        self._content = data

    def end(self) -> None:
        """The process serves nothing any more."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                if self._there(self._handle):
                    self.path.unlink()
            os.close(self._handle)
            self._handle = None

    def _there(self, handle: int) -> bool:
        """Whether the file is still the one of that name."""
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False

    def _made(self, data: bytes) -> int:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}")
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600 | self.path.parent.stat().st_mode & stat.S_IRGRP)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(handle, data, 0)
            os.rename(draft, self.path)
        except BaseException:
            os.close(handle)
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
        return handle


def registered(folder: Path) -> list[dict[str, Any]]:
    """What the processes say that live; {"name": …} of one that cannot be read. Files that they have left
    over are removed. Raises OSError.
    """
    try:
        names = sorted(one for one in os.listdir(folder) if not one.startswith("."))
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # it has just gone
            content = _content(folder / name)
            if content is not None:
                found.append({"name": name} | content)
    return found


def _content(path: Path) -> dict[str, Any] | None:
    """None when it is nobody's."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return None
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        locked = not _locks(file.fileno())
        try:
            content = json.loads(file.read())
        except ValueError:
            content = {}
        said = content if isinstance(content, dict) else {}
        own = said.pop(_FILE, None)
        if locked:
            return said
        if own == path.name:
            with contextlib.suppress(PermissionError):
                path.unlink()
    return None


def _locks(handle: int) -> bool:
    """Whether nobody else has it locked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
