"""Files that are replaced as a whole: the last good documents, and what the tools keep beside a topology."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: readers see the old or the new, also after a crash. Who may read it, and
    whose it is, stays as it is, as far as this process may say. Raises OSError.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            with contextlib.suppress(FileNotFoundError, PermissionError):
                was = path.stat()
                os.fchmod(file.fileno(), stat.S_IMODE(was.st_mode))
                os.fchown(file.fileno(), was.st_uid, was.st_gid)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
