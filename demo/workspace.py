"""The folder that a demo lives in, gone when the demo is: also when the demo was killed with SIGKILL.

A small shell waits for the end of a pipe that only the demo holds open, and then removes what is left. The
demo's children are dead by then, because the kernel kills them with it; the shell kills those that these have
forked.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

# Reads what to kill and to remove until its input ends. Dying servers may still write, so it tries more than
# once.
_JANITOR = """
while read -r what where; do
    case $what in
        done) exit 0;;
        group) groups="$groups -$where";;
        *) set -- "$@" "$what" "$where";;
    esac
done
[ -z "$groups" ] || kill -s KILL -- $groups 2>/dev/null
for attempt in 1 2 3 4 5 6 7 8 9; do
    left=
    for word do
        case $word in keep|remove) what=$word; continue;; esac
        [ -d "$word" ] || continue
        find "$word" -mindepth 1 -delete 2>/dev/null || left=yes
        [ "$what" = keep ] || rmdir "$word" 2>/dev/null || left=yes
    done
    [ -n "$left" ] || exit 0
    sleep 0.2
done
"""


class WorkspaceError(Exception):
    """The folder given cannot be used."""


class Workspace:
    """A context manager: `path` exists inside and is removed, or emptied if it existed before, at the end.

    `given` None: a temporary folder. WorkspaceError when it is not an empty folder, OSError when it cannot be
    made.
    """

    def __init__(self, given: Path | None) -> None:
        self._given = given
        self._existed = False
        self._janitor: subprocess.Popen[bytes] | None = None
        self.path = Path()

    def __enter__(self) -> Self:
        if self._given is None:
            self.path = Path(tempfile.mkdtemp(prefix="shardgate-demo-"))
        else:
            self.path = self._given.absolute()
            self._existed = self.path.exists()
            if "\n" in str(self.path):
                raise WorkspaceError("a folder's name cannot hold a line break")
            if self._existed and (not self.path.is_dir() or any(self.path.iterdir())):
                raise WorkspaceError(f"{self.path} is not an empty folder: all in it would be removed")
            self.path.mkdir(parents=True, exist_ok=True)
        self._janitor = subprocess.Popen(
            ["/bin/sh", "-c", _JANITOR], stdin=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        self._tell(f"{'keep' if self._existed else 'remove'} {self.path}")
        return self

    def remove_later(self, folder: Path) -> None:
        """Have another folder removed too, should this process be killed."""
        self._tell(f"remove {folder}")

    def kill_later(self, pid: int) -> None:
        """Have the process group `pid` killed too, should this process be killed."""
        self._tell(f"group {pid}")

    def _tell(self, line: str) -> None:
        assert self._janitor is not None
        assert self._janitor.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._janitor.stdin.write(line.encode() + b"\n")
            self._janitor.stdin.flush()

    def __exit__(self, *_: object) -> None:
        for _attempt in range(20):
            self._clear()
            if not self.path.exists() or (self._existed and not any(self.path.iterdir())):
                self._tell("done")
                break
            time.sleep(0.1)
        if self._janitor is not None:
            self._janitor.communicate()

    def _clear(self) -> None:
        if not self.path.is_dir():
            return
        for entry in list(self.path.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if not self._existed:
            shutil.rmtree(self.path, ignore_errors=True)
