"""Programs that alter a table while it is written to: pt-online-schema-change, gh-ost.

They fill a copy of the table and put it in the table's place. The password is given in a file without a name,
and the program ends with this process.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from config.topology import Host
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import address_of

PROGRAMS: Final = ("pt-online-schema-change", "gh-ost")
"""The first that is installed is used."""

_LINES: Final = 5
_PR_SET_PDEATHSIG: Final = 1


def find() -> str:
    """The path of a program. Refused when none is installed."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise Refused(f"--online needs {' or '.join(PROGRAMS)}: neither is installed here")
    return found


def command(program: str, host: Host, database: str, table: str, alter: str, options: str) -> list[str]:
    """How a program is called; `options`: the path of an option file with the account."""
    address = address_of(host)
    if Path(program).name == "gh-ost":
        if "unix_socket" in address:
            raise HostError(host, "gh-ost connects by TCP only")
        return [
            *(program, f"--conf={options}", f"--host={address['host']}", f"--port={address['port']}"),
            *(f"--database={database}", f"--table={table}", f"--alter={alter}"),
            *("--allow-on-master", "--initially-drop-ghost-table", "--initially-drop-socket-file"),
            *("--ok-to-drop-table", "--execute"),
        ]
    place = (
        f"S={address['unix_socket']}"
        if "unix_socket" in address
        else f"h={address['host']},P={address['port']}"
    )
    return [
        *(program, "--execute", "--no-version-check", "--recursion-method=none", "--charset=utf8mb4"),
        *("--alter", alter, f"F={options},{place},D={database},t={table}"),
    ]


def shown(program: str, host: Host, database: str, table: str, alter: str) -> str:
    """For --dry-run."""
    return shlex.join(command(Path(program).name, host, database, table, alter, "FILE"))


async def run(
    program: str, host: Host, database: str, table: str, alter: str, account: tuple[str, str]
) -> None:
    """Alter one table. HostError with the last lines that the program has written."""
    with _option_file(*account) as file:
        words = command(program, host, database, table, alter, f"/proc/self/fd/{file}")
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=[file],
            preexec_fn=_end_with_parent,
        )
        try:
            output, _ = await process.communicate()
        except BaseException:
            process.terminate()  # it drops its copy and its triggers
            raise
    if process.returncode:
        lines = [one.strip() for one in output.decode(errors="replace").splitlines() if one.strip()]
        said = " / ".join(lines[-_LINES:])
        raise HostError(host, f"{Path(program).name} ended with {process.returncode}: {said}")


@contextmanager
def _option_file(user: str, password: str) -> Iterator[int]:
    file = os.memfd_create("account")
    try:
        os.fchmod(file, 0o600)  # clients leave out option files that all may write
        os.write(file, f"[client]\nuser={_quoted(user)}\npassword={_quoted(password)}\n".encode())
        yield file
    finally:
        os.close(file)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
