"""How `ddl --online` calls the programs, and the programs themselves where they are installed."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.backends import Backends
from demo.certificates import LocalAuthority
from demo.programs import Program
from fleet import online
from fleet.core.errors import HostError, Refused
from fleet.online import Online
from tests.fleet.world import World
from tests.support.servers import LocalServer

PASSWORD = "p%\"\\#;x$ 'y`${HOME}"  # what option files may read otherwise
ALTER = "ADD note VARCHAR(20) DEFAULT 'a b'"

#: Says what it is given.
RECORDER = """#!{python}
import json, os, sys
words = [part for word in sys.argv[1:] for part in word.split(",")]
file = next(one.split("=", 1)[1] for one in words if one.startswith(("F=", "--conf=")))
environment = {{name: value for name, value in os.environ.items() if name.startswith("SHARDGATE")}}
print(json.dumps([sys.argv[1:], open(file).read(), environment]))
sys.exit(3)
"""


def backends_of(**tls: Any) -> Backends:
    return Backends.model_validate({"user": "sg", "password": "", "tls": tls or None})


def recorded(folder: Path, name: str, backends: Backends) -> tuple[list[str], str, dict[str, str]]:
    """The arguments that a program gets, its option file, and what is ours of its environment."""
    path = folder / name
    path.write_text(RECORDER.format(python=sys.executable))
    path.chmod(0o755)
    program = Online(str(path), backends, lambda _: ("root", PASSWORD))
    with pytest.raises(HostError, match=f"{name} ended with 3: ") as caught:
        asyncio.run(program.run("db1.example:3307", "db00001", "pins", ALTER))
    arguments, file, environment = json.loads(str(caught.value).partition("ended with 3: ")[2])
    return arguments, file, environment


@pytest.fixture
def authority(tmp_path: Path) -> LocalAuthority:
    return LocalAuthority(tmp_path)


def test_what_pt_online_schema_change_gets(tmp_path: Path, authority: LocalAuthority) -> None:
    arguments, file, environment = recorded(tmp_path, online.PROGRAMS[0], backends_of())
    assert arguments[-3:-1] == ["--alter", ALTER]
    place, database, table = arguments[-1].rsplit(",", 2)
    assert (place.partition(",")[2], database, table) == ("h=db1.example,P=3307", "D=db00001", "t=pins")
    assert file.splitlines()[1:] == ['user="root"', 'password="p%\\"\\\\#;x$ \'y`${HOME}"']
    assert PASSWORD not in " ".join(arguments)
    assert "SHARDGATE_PASSWORD" not in environment
    cert, key = authority.issue(client=True)
    tls = {"ca": str(authority.ca), "cert": str(cert), "key": str(key)}
    _, file, _ = recorded(tmp_path, online.PROGRAMS[0], backends_of(**tls))
    assert file.splitlines()[3:] == [
        "ssl-enforce=1",
        "ssl-mode=VERIFY_IDENTITY",
        "tls-version=TLSv1.2,TLSv1.3",
        "ssl-verify-server-cert=1",
        f'ssl-ca="{authority.ca}"',
        f'ssl-cert="{cert}"',
        f'ssl-key="{key}"',
    ]
    _, file, _ = recorded(tmp_path, online.PROGRAMS[0], backends_of(verify="none", min_version="TLSv1.3"))
    assert file.splitlines()[3:] == ["ssl-enforce=1", "ssl-mode=REQUIRED", "tls-version=TLSv1.3"]


def test_what_gh_ost_gets(tmp_path: Path, authority: LocalAuthority) -> None:
    """A replica's id for each table of a host, since two are altered at a time; passwords as they are."""
    arguments, file, environment = recorded(tmp_path, "gh-ost", backends_of(ca=str(authority.ca)))
    assert {"--host=db1.example", "--port=3307", "--database=db00001", "--table=pins"} <= {*arguments}
    assert {f"--alter={ALTER}", "--ssl", f"--ssl-ca={authority.ca}", "--execute"} <= {*arguments}
    assert file == '[client]\nuser="${SHARDGATE_USER}"\npassword="${SHARDGATE_PASSWORD}"\n'
    assert environment["SHARDGATE_PASSWORD"] == PASSWORD
    ids = set()
    for table in ("pins", "likes"):
        words = online.command("gh-ost", "h:1", "db00001", table, ALTER, "FILE", None)
        assert not [one for one in words if one.startswith("--ssl")]
        number = next(int(one.partition("=")[2]) for one in words if one.startswith("--replica-server-id="))
        assert 2**31 <= number < 2**32
        assert [one for one in words if one.startswith("--serve-socket-file=") and str(number) in one]
        ids.add(number)
    assert len(ids) == 2
    tls = backends_of(verify="none").tls
    assert "--ssl-allow-insecure" in online.command("gh-ost", "h:1", "db00001", "pins", ALTER, "FILE", tls)


@pytest.mark.parametrize(
    ("name", "host", "tls", "said"),
    [
        (online.PROGRAMS[0], "h:1", {"verify": "ca"}, "cannot do `verify: ca` of backends.tls"),
        ("gh-ost", "h:1", {"verify": "ca"}, "h:1: gh-ost cannot do `verify: ca`"),
        ("gh-ost", "h:1", {"min_version": "TLSv1.3"}, "cannot do `min_version: TLSv1.3`"),
        ("gh-ost", "unix:/run/m.sock", {}, "gh-ost connects by TCP only: leave --online out"),
    ],
)
def test_what_they_cannot_do_is_refused(name: str, host: str, tls: dict[str, str], said: str) -> None:
    program = Online(f"/usr/bin/{name}", backends_of(**tls), lambda _: ("root", ""))
    with pytest.raises(Refused, match=said):
        program.check([host])


# --- the programs themselves --------------------------------------------------------------------------


@pytest.fixture(params=online.PROGRAMS)
def installed(request: pytest.FixtureRequest, flavour: str) -> str:
    """Its path; asked for before a server is started for it."""
    name: str = request.param
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    if name == "gh-ost" and flavour == "mariadb":
        pytest.skip("gh-ost does not know it")
    return path


@pytest.fixture
def server(
    installed: str, program: Program, template: Path, tmp_path: Path, authority: LocalAuthority
) -> Iterator[LocalServer]:
    """One that asks `osc` for TLS."""
    certificate, key = authority.issue()
    options = [f"--ssl-cert={certificate}", f"--ssl-key={key}", "--performance-schema=ON"]
    made = LocalServer(program, tmp_path / "server", template=template, binlog=True, options=options)
    made.start()
    try:
        with made.connect() as conn, conn.cursor() as cursor:
            cursor.execute("CREATE USER osc@'%%' IDENTIFIED BY %s REQUIRE SSL", [PASSWORD])
            cursor.execute("GRANT ALL ON *.* TO osc@'%' WITH GRANT OPTION")
        yield made
    finally:
        made.stop()


def test_over_tls(
    server: LocalServer,
    installed: str,
    authority: LocalAuthority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tables at a time, as an account that must use TLS; not to a server that is not trusted."""
    (tmp_path / "other").mkdir()
    other = backends_of(ca=str(LocalAuthority(tmp_path / "other").ca))
    monkeypatch.setattr(online, "PROGRAMS", (Path(installed).name,))
    world = World(tmp_path, [server, server])
    settings = json.loads(world.settings.read_text())
    settings["backends"]["tls"] = {"ca": str(authority.ca)}
    settings["fleet"] = {"user": "osc", "password": PASSWORD}
    world.settings.write_text(json.dumps(settings))
    status, output = world.run("create", "--yes")
    assert status == 0, output
    rows = [f"INSERT INTO db{shard:05d}.pins (data) VALUES ('1'), ('2')" for shard in range(4)]
    world.execute(0, *rows)
    program = Online(installed, other, lambda _: ("osc", PASSWORD))
    with pytest.raises(HostError, match="certificate"):
        asyncio.run(program.run(server.address, "db00000", "pins", ALTER))
    status, output = world.run("ddl", "--statement", f"ALTER TABLE pins {ALTER}", "--online", "--yes")
    assert (status, "altered 4 of 4 tables" in output) == (0, True), output
    assert PASSWORD not in output
    for shard in range(4):
        assert world.execute(0, f"SELECT note FROM db{shard:05d}.pins") == [("a b",), ("a b",)]
