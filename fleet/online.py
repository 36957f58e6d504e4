"""Programs that alter a table while it is written to: pt-online-schema-change, gh-ost.

They fill a copy of the table and put it in the table's place. Who logs in, and how that is encrypted, is
given in a file without a name; gh-ost, whose files have no words for every password, gets that by its
environment. The program ends with this process.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from config.backends import Backends
from config.tls import BackendTls
from config.topology import Host
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import Login, address_of

PROGRAMS: Final = ("pt-online-schema-change", "gh-ost")
"""The first that is installed is used."""

_LINES: Final = 5
_PR_SET_PDEATHSIG: Final = 1
_USER: Final = "SHARDGATE_USER"
_PASSWORD: Final = "SHARDGATE_PASSWORD"  # noqa: S105: the variable's name
#: By what the settings call it: libmysqlclient's word. libmariadb has no such option, and leaves it out.
_MODES: Final = {"none": "REQUIRED", "full": "VERIFY_IDENTITY"}
_VERSIONS: Final = {"TLSv1.2": "TLSv1.2,TLSv1.3", "TLSv1.3": "TLSv1.3"}


def find() -> str:
    """The path of a program. Refused when none is installed."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise Refused(f"--online needs {' or '.join(PROGRAMS)}: neither is installed here")
    return found


@dataclass(frozen=True)
class Online:
    """A program, by its path; who logs in, and which hosts want TLS."""

    program: str
    backends: Backends
    login: Login

    def check(self, hosts: Iterable[Host]) -> None:
        """Refused when it cannot connect to a host as the settings say."""
        for host in hosts:
            if text := _problem(Path(self.program).name, host, self.backends.tls_for(host)):
                raise Refused(f"{host}: {text}: leave --online out")

    def shown(self, host: Host, database: str, table: str, alter: str) -> str:
        """The command, for --dry-run."""
        tls = self.backends.tls_for(host)
        return shlex.join(command(Path(self.program).name, host, database, table, alter, "FILE", tls))

    async def run(self, host: Host, database: str, table: str, alter: str) -> None:
        """Alter one table. HostError with the last lines that the program has written."""
        tls = self.backends.tls_for(host)
        user, password = self.login(host)
        by_environment = Path(self.program).name == "gh-ost"
        account = {_USER: user, _PASSWORD: password} if by_environment else {}
        lines = (
            [f'user="${{{_USER}}}"', f'password="${{{_PASSWORD}}}"']
            if by_environment
            else [f"user={_quoted(user)}", f"password={_quoted(password)}", *_tls_lines(tls)]
        )
        with _option_file(lines) as file:
            words = command(self.program, host, database, table, alter, f"/proc/self/fd/{file}", tls)
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=os.environ | account,
                pass_fds=[file],
                preexec_fn=_end_with_parent,
            )
            try:
                output, _ = await process.communicate()
            except BaseException:
                process.terminate()  # it drops its copy and its triggers
                raise
        if process.returncode:
            written = [one.strip() for one in output.decode(errors="replace").splitlines() if one.strip()]
            said = " / ".join(written[-_LINES:])
            raise HostError(host, f"{Path(self.program).name} ended with {process.returncode}: {said}")


def command(
    program: str, host: Host, database: str, table: str, alter: str, options: str, tls: BackendTls | None
) -> list[str]:
    """How a program is called; `options`: the path of an option file with the account."""
    address = address_of(host)
    if Path(program).name == "gh-ost":
        digest = hashlib.sha256(f"{host} {database}.{table}".encode()).digest()
        # As a replica it needs an id of its own for each table: a server ends the older of two with one id
        number = int.from_bytes(digest[:4]) | 1 << 31
        door = Path(tempfile.gettempdir()) / f"gh-ost.{number}.sock"
        return [
            *(program, f"--conf={options}", f"--host={address['host']}", f"--port={address['port']}"),
            *(f"--database={database}", f"--table={table}", f"--alter={alter}"),
            *(f"--replica-server-id={number}", f"--serve-socket-file={door}", *_tls_words(tls)),
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


def _problem(name: str, host: Host, tls: BackendTls | None) -> str:
    """Why the program cannot connect as it should, or ""."""
    if name == "gh-ost" and host.startswith("unix:"):
        return "gh-ost connects by TCP only"
    if tls is not None and tls.verify not in _MODES:
        return f"{name} cannot do `verify: {tls.verify}` of backends.tls, but full, or none"
    if name == "gh-ost" and tls is not None and tls.min_version != "TLSv1.2":
        return f"gh-ost cannot do `min_version: {tls.min_version}` of backends.tls, but TLSv1.2"
    return ""


def _tls_lines(tls: BackendTls | None) -> Iterator[str]:
    """For the option file, in the words of both client libraries."""
    if tls is None:
        return
    yield "ssl-enforce=1"  # libmariadb's: without it a file with nothing else asks for none
    yield f"ssl-mode={_MODES[tls.verify]}"
    yield f"tls-version={_VERSIONS[tls.min_version]}"
    if tls.verify == "full":
        yield "ssl-verify-server-cert=1"  # libmariadb's
        if tls.ca is not None:
            yield f"ssl-ca={_quoted(str(tls.ca))}"
    if tls.cert is not None and tls.key is not None:
        yield from (f"ssl-cert={_quoted(str(tls.cert))}", f"ssl-key={_quoted(str(tls.key))}")


def _tls_words(tls: BackendTls | None) -> Iterator[str]:
    """For gh-ost."""
    if tls is None:
        return
    yield "--ssl"
    if tls.verify == "none":
        yield "--ssl-allow-insecure"
    elif tls.ca is not None:
        yield f"--ssl-ca={tls.ca}"
    if tls.cert is not None and tls.key is not None:
        yield from (f"--ssl-cert={tls.cert}", f"--ssl-key={tls.key}")


@contextmanager
def _option_file(lines: Iterable[str]) -> Iterator[int]:
    file = os.memfd_create("account")
    try:
        os.fchmod(file, 0o600)  # clients leave out option files that all may write
        os.write(file, "".join(f"{one}\n" for one in ("[client]", *lines)).encode())
        yield file
    finally:
        os.close(file)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
