"""Pages of the documentation that are followed literally: their blocks, and a shell that runs them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from demo.programs import Program
from tests.support import commands

BLOCK = re.compile(r"^```(\w+)(?: (mariadb|mysql))?\n(.*?)^```$", re.M | re.S)


@dataclass
class Block:
    """Some lines for the shell, and what they print, as the page shows it ("": nothing is shown)."""

    shell: str
    shown: str = ""


def blocks(page: Path, kind: str) -> list[Block]:
    """Those of a page, for one kind of server."""
    found: list[Block] = []
    for language, only, text in BLOCK.findall(page.read_text()):
        if language == "shell" and only in ("", kind):
            found.append(Block(text))
        elif language == "text":
            found[-1].shown = text
    return found


class Shell:
    """One bash in `folder`, which ends with the first command that fails."""

    def __init__(self, folder: Path, programs: list[Path]) -> None:
        path = os.pathsep.join([*(str(one) for one in programs), os.environ["PATH"]])
        self._errors = (folder / "errors").open("w+")
        self._process = subprocess.Popen(
            ["bash", "-e", "-o", "pipefail"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def run(self, lines: str) -> str:
        """What they print."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{lines}\necho '--- done'\n")
        self._process.stdin.flush()
        printed = ""
        while not printed.endswith("--- done\n"):
            line = self._process.stdout.readline()
            assert line, f"{lines}\n{printed}\n{Path(self._errors.name).read_text()}"
            printed += line
        return printed.removesuffix("--- done\n")

    def end(self) -> None:
        """It, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._errors.close()


def matches(shown: str, printed: str) -> bool:
    """`…` stands for anything within a line."""
    pattern = "[^\n]*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed) is not None


def programs_of(program: Program, kind: str, *, as_users_do: bool = False) -> list[Path]:
    """Folders with the commands of a page: the project's own, and the server's. `as_users_do`: the project's
    command is what is installed, not forked.
    """
    own = [] if as_users_do else [commands.folder()]
    own.append(Path(sys.executable).parent)
    return [*own, *([program.path.parent] if kind == "mysql" else [])]
