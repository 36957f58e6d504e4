"""The ready file: where a demo says that it is up, and how to reach it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class ReadyFile:
    """One JSON object at `path`, there while the demo is up.

    Several demos may be given the same path, as two in one checkout are. The file is the one's that came up
    last, and nobody removes what another one has written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: str | None = None

    def clear(self) -> None:
        """Before a start: whoever waits for the file must not find one that an ended demo has left. That of a
        demo that still runs stays, since this one may not come up.
        """
        if self._other() is None:
            self.path.unlink(missing_ok=True)

    def write(self, description: dict[str, Any]) -> dict[str, Any] | None:
        """Say that the demo is up, all at once, so that whoever waits never reads half of it. What the file
        said of another demo that still runs, or None.
        """
        replaced = self._other()
        text = json.dumps(description) + "\n"
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            draft.touch(mode=0o600)
            draft.write_text(text)
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)
        self._written = text
        return replaced

    def remove(self) -> None:
        """At the end, if it still says what this demo has written."""
        if self._written is not None and self._read() == self._written:
            self.path.unlink(missing_ok=True)

    def _read(self) -> str:
        try:
            return self.path.read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def _other(self) -> dict[str, Any] | None:
        """What a demo that still runs says there."""
        try:
            found: dict[str, Any] = json.loads(self._read())
            os.kill(found["proxy"]["pid"], 0)
            return found if Path(found["config"]).exists() else None
        except (ValueError, TypeError, KeyError, OSError, OverflowError):
            return None
