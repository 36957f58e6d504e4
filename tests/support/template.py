"""Data directories that are made once a run: a server needs seconds for one."""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.process import run
from demo.programs import Program, ServerError, initialise

#: In the place of a program: told to make a data directory, it copies the one that was made before.
_SCRIPT = """#!/bin/sh
case "${{0##*/}} $* " in mariadb-install-db*|*" --initialize-insecure "*)
  for one do case $one in --datadir=*) exec cp -R {template} "${{one#--datadir=}}" ;; esac; done ;;
esac
exec {program} "$@"
"""


#: Names a folder that all processes of a run of the tests share; tests/conftest.py makes and removes it.
VARIABLE = "SHARDGATE_TEST_RUN"


def run_folder() -> Path | None:
    """What this run of the tests shares; None without a run."""
    name = os.environ.get(VARIABLE)
    return Path(name) if name else None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Of all processes with the same file, one is within."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def with_holes(data: Path, target: Path) -> None:
    """Move a stopped server's data directory to `target`, without what is zeros in its files: three quarters,
    which each copy would have to write again.
    """
    code, output = run(["cp", "-R", "--sparse=always", str(data), str(target)])
    if code:
        raise ServerError(f"{data} could not be copied: {output.strip()}")
    shutil.rmtree(data)


@functools.cache
def template_of(program: Program) -> Path:
    """An initialised data directory to copy, made once a run."""
    shared = run_folder()
    if shared is None:
        folder = Path(tempfile.mkdtemp(prefix="shardgate-template-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        initialise(program, folder / "data")
        return folder / "data"
    folder = shared / f"{program.flavour}-{'.'.join(map(str, program.version))}"
    with locked(folder.with_suffix(".lock")):
        if not (folder / "data").exists():
            shutil.rmtree(folder, ignore_errors=True)  # of one that was killed at it
            initialise(program, folder / "made")
            with_holes(folder / "made", folder / "draft")
            (folder / "draft").rename(folder / "data")
    return folder / "data"


@functools.cache
def prepared(program: Program) -> Path:
    """A program in the place of this one, which has data directories at once."""
    template = template_of(program)
    words = {"template": shlex.quote(str(template)), "program": shlex.quote(str(program.path))}
    for name in ("mysqld", "mariadb-install-db"):
        path = template.with_name(name)
        draft = template.with_name(f"{name}-{os.getpid()}")  # others may run it at this moment
        draft.write_text(_SCRIPT.format(**words))
        draft.chmod(0o755)
        draft.replace(path)
    return template.with_name("mysqld")
