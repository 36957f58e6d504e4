"""Data directories that are made once a run: a server needs seconds for one."""

from __future__ import annotations

import atexit
import functools
import shlex
import shutil
import tempfile
from pathlib import Path

from demo.programs import Program, initialise

#: In the place of a program: told to make a data directory, it copies the one that was made before.
_SCRIPT = """#!/bin/sh
case "${{0##*/}} $* " in mariadb-install-db*|*" --initialize-insecure "*)
  for one do case $one in --datadir=*) exec cp -R {template} "${{one#--datadir=}}" ;; esac; done ;;
esac
exec {program} "$@"
"""


@functools.cache
def template_of(program: Program) -> Path:
    """An initialised data directory to copy; removed after the tests."""
    folder = Path(tempfile.mkdtemp(prefix="shardgate-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    initialise(program, folder / "data")
    return folder / "data"


@functools.cache
def prepared(program: Program) -> Path:
    """A program in the place of this one, which has data directories at once."""
    template = template_of(program)
    words = {"template": shlex.quote(str(template)), "program": shlex.quote(str(program.path))}
    for name in ("mysqld", "mariadb-install-db"):
        path = template.with_name(name)
        path.write_text(_SCRIPT.format(**words))
        path.chmod(0o755)
    return template.with_name("mysqld")
