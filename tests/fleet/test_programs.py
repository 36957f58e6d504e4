"""Finding and telling apart the servers' programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.programs import Flavour, Program, ServerError, find_program, identify


def script(path: Path, says: str, code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return path


MYSQL = "/opt/bin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))"
MARIADB = "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"


@pytest.mark.parametrize(
    ("says", "kind", "version", "title"),
    [
        (MYSQL, Flavour.MYSQL, (9, 7, 4), "MySQL 9.7.4"),
        (MARIADB, Flavour.MARIADB, (10, 11, 19), "MariaDB 10.11.19"),
        ("mysqld  Ver 8.0.36 for Linux on x86_64 (Source)", Flavour.MYSQL, (8, 0, 36), "MySQL 8.0.36"),
    ],
)  # fmt: skip
def test_identify(
    tmp_path: Path, says: str, kind: Flavour, version: tuple[int, int, int], title: str
) -> None:
    program = identify(script(tmp_path / "server", says))
    assert (program.flavour, program.version, program.title) == (kind, version, title)


def test_identify_refuses_other_programs(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="is not a MySQL or MariaDB server"):
        identify(script(tmp_path / "server", "hello"))
    with pytest.raises(ServerError, match="is not a MySQL or MariaDB server"):
        identify(script(tmp_path / "server", MYSQL, code=1))
    with pytest.raises(ServerError, match="cannot be run"):
        identify(tmp_path / "missing")


def test_the_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = script(tmp_path / "given" / "mysqld", MYSQL)
    variable = script(tmp_path / "variable" / "bin" / "mariadbd", MARIADB)
    on_path = script(tmp_path / "path" / "mysqld", MYSQL)
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.delenv("SHARDGATE_MYSQLD", raising=False)
    assert find_program().path == on_path
    monkeypatch.setenv("SHARDGATE_MYSQLD", str(variable.parent.parent))
    assert find_program().path == variable
    assert find_program(given.parent).path == given
    assert find_program(given).path == given


def test_nothing_found_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHARDGATE_MYSQLD", raising=False)
    monkeypatch.setattr("demo.programs.SYSTEM_FOLDERS", (str(tmp_path / "sbin"),))
    with pytest.raises(
        ServerError, match=r"No MySQL or MariaDB server found on the PATH or in .*sbin: install"
    ):
        find_program()
    with pytest.raises(ServerError, match="holds neither mysqld nor mariadbd"):
        find_program(tmp_path)


def test_the_machine_s_own(program: Program, flavour: str) -> None:
    assert program.flavour is (Flavour.MARIADB if flavour == "mariadb" else Flavour.MYSQL)
