"""Finding a database server's program, and making its data directory.

A program is MariaDB or MySQL, told apart by what it says to ``--version``; no other thing is assumed about
it, so a wrapper script is as good as the binary.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from demo.process import run

VARIABLE = "SHARDGATE_MYSQLD"
NAMES = ("mysqld", "mariadbd")
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/local/mysql/bin", "/usr/libexec")


class ServerError(Exception):
    """A database server that cannot be found, initialised, started or reached; the text says what to do."""


class Flavour(StrEnum):
    MARIADB = "mariadb"
    MYSQL = "mysql"


@dataclass(frozen=True)
class Program:
    """A server's program: its path, its flavour and its version as (major, minor, patch)."""

    path: Path
    flavour: Flavour
    version: tuple[int, int, int]

    @property
    def title(self) -> str:
        """For people: ``MySQL 9.7.4``."""
        name = "MariaDB" if self.flavour is Flavour.MARIADB else "MySQL"
        return f"{name} {'.'.join(map(str, self.version))}"


def find_program(path: str | os.PathLike[str] | None = None) -> Program:
    """The server's program: `path` (it, or its folder), else $SHARDGATE_MYSQLD, PATH, the usual folders.

    ServerError names the places looked at, or says why the one given cannot be used.
    """
    given = path or os.environ.get(VARIABLE)
    if given:
        return identify(_in_folder(Path(given).absolute()))
    for name in NAMES:
        found = shutil.which(name) or next(_in_system_folders(name), None)
        if found:
            return identify(Path(found))
    raise ServerError(
        "No MySQL or MariaDB server found on the PATH or in "
        + ", ".join(SYSTEM_FOLDERS)
        + ": install one (Debian: apt-get install mariadb-server),"
        + f" or set {VARIABLE} or --mysqld to its program"
    )


def _in_folder(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in NAMES:
        for candidate in (path / name, path / "sbin" / name, path / "bin" / name):
            if candidate.is_file():
                return candidate
    raise ServerError(f"{path} holds neither mysqld nor mariadbd")


def _in_system_folders(name: str) -> Iterator[str]:
    return (f"{folder}/{name}" for folder in SYSTEM_FOLDERS if os.access(f"{folder}/{name}", os.X_OK))


def identify(path: Path) -> Program:
    """Ask the program at `path` what it is. ServerError when it cannot be run or answers something else."""
    try:
        answer = subprocess.run(
            [str(path), "--no-defaults", "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{path} cannot be run: {error}") from error
    found = re.search(r"\bVer\s+(\d+)\.(\d+)\.(\d+)", answer.stdout)
    if answer.returncode or not found:
        said = (answer.stdout + answer.stderr).strip()[:300]
        raise ServerError(f"{path} is not a MySQL or MariaDB server: to --version it says {said!r}")
    version = (int(found[1]), int(found[2]), int(found[3]))
    return Program(path, Flavour.MARIADB if "MariaDB" in answer.stdout else Flavour.MYSQL, version)


#: Each commit waits for the disk.
DURABLE = ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
#: Servers that wait for no disk: what they have acknowledged may be lost in a crash.
FAST = (
    "--innodb-flush-log-at-trx-commit=0",
    "--sync-binlog=0",
    "--loose-innodb-flush-method=nosync",
    "--innodb-doublewrite=0",
)
#: Small ones.
LIGHT = (
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-buffer-size=4M",  # MySQL touches all of it at its start
    "--innodb-file-per-table=0",
    "--innodb-stats-persistent=OFF",  # else rows of a dictionary for each of hundreds of tables
    "--innodb-use-native-aio=0",  # a machine has only so many requests for all servers together
    "--performance-schema=OFF",
    "--event-scheduler=OFF",  # MySQL's turns in a circle while the server shuts down
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
)


def as_user() -> tuple[str, ...]:
    """The servers refuse to run as root unless told so."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def initialise(program: Program, directory: Path) -> None:
    """Make a data directory; ``root@localhost`` has no password.

    ServerError with what the program said.
    """
    scratch = directory.with_name(f"{directory.name}.tmp")
    scratch.mkdir(parents=True, exist_ok=True)
    shared = ("--no-defaults", f"--datadir={directory}", f"--tmpdir={scratch}", *FAST, *LIGHT, *as_user())
    if program.flavour is Flavour.MYSQL:
        argv = [str(program.path), *shared, "--initialize-insecure", "--secure-file-priv=", "--skip-log-bin"]
    else:
        own = ("--auth-root-authentication-method=normal", "--skip-test-db")
        argv = [_install_db(program), *shared, *own]
    code, output = run(argv)
    shutil.rmtree(scratch, ignore_errors=True)
    if code:
        lines = output.strip().splitlines()
        errors = [line for line in lines if "ERROR" in line]  # few, among much advice
        said = "\n".join(errors or lines[-15:])
        raise ServerError(f"{argv[0]} could not make a data directory in {directory}:\n{said}")


def _install_db(program: Program) -> str:
    root = program.path.resolve().parent.parent
    for name in ("mariadb-install-db", "mysql_install_db"):
        for folder in (program.path.parent, root / "bin", root / "scripts"):
            if os.access(folder / name, os.X_OK):
                return str(folder / name)
        found = shutil.which(name)
        if found:
            return found
    raise ServerError(f"mariadb-install-db, which belongs to {program.path}, is missing")


def copy_data(template: Path, directory: Path) -> None:
    """Copy a stopped server's data directory; the copy will make itself a server UUID of its own. What is a
    hole in a file is one in the copy: most of a new server's pages are zeros.
    """
    code, output = run(["cp", "-R", str(template), str(directory)])
    if code:
        raise ServerError(f"{template} could not be copied: {output.strip()}")
    (directory / "auto.cnf").unlink(missing_ok=True)
