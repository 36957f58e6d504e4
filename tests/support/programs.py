"""Which database servers the tests run on, and their ZooKeeper.

"mariadb" is a `mariadbd` of this machine; "mysql9" is MySQL 9 from the folder in $SHARDGATE_MYSQL9, or a
`mysqld` on the PATH that is one. Both may also be what $SHARDGATE_MYSQLD names. In CI a missing one fails.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.certificates import LocalAuthority
from demo.programs import Flavour, Program, ServerError, find_program
from demo.zookeeper import LocalZooKeeper

FLAVOURS = ("mariadb", "mysql9")

_HINTS = {
    "mariadb": "no mariadbd on the PATH or in $SHARDGATE_MYSQLD",
    "mysql9": "$SHARDGATE_MYSQL9 names no folder with MySQL 9, and none is on the PATH",
}


def _candidates() -> Iterator[Program]:
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    places = (
        os.environ.get("SHARDGATE_MYSQL9"),
        os.environ.get("SHARDGATE_MYSQLD"),
        shutil.which("mariadbd", path=path),
        shutil.which("mysqld", path=path),
    )
    for place in places:
        if place:
            try:
                yield find_program(place)
            except ServerError as error:
                if "CI" in os.environ:
                    raise
                print(f"not used: {error}")


@functools.cache
def program_of(flavour: str) -> Program | None:
    """The program of "mariadb" or "mysql9", or None."""
    for program in _candidates():
        if flavour == "mariadb" and program.flavour is Flavour.MARIADB:
            return program
        if flavour == "mysql9" and program.flavour is Flavour.MYSQL and program.version >= (9, 0, 0):
            return program
    return None


def need_program(flavour: str) -> Program:
    """Like `program_of`; skips the test when there is none, or fails it in CI."""
    program = program_of(flavour)
    if program is None:
        message = f"needs {flavour}: {_HINTS[flavour]}"
        if "CI" in os.environ:
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return program


def started_zookeeper(folder: Path) -> LocalZooKeeper:
    """One with a port for TLS beside the plain one. Skips where ZooKeeper is not installed."""
    server = LocalZooKeeper(folder, LocalAuthority(folder))
    try:
        server.start()
    except ServerError as error:
        if "install it" not in str(error):
            raise
        pytest.skip(str(error))
    return server
