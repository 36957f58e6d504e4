"""`shardgate fleet ddl` on real servers: done once, killed anywhere and run again, refused, told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from config.load import load_schema
from config.schema import Schema
from fleet import altering
from fleet.altering import Altering, lock_name
from fleet.core.errors import Refused
from fleet.ddl import Actual, alteration, digest
from fleet.faults import Definition, read_definition
from fleet.statement import read_statement
from tests.fleet.killed import Killer
from tests.fleet.world import SCHEMA, World
from tests.support.servers import LocalServer
from tests.support.waiting import wait_until

ADD = "ALTER TABLE pins ADD note VARCHAR(20) AFTER data, ADD KEY (note)"
SHARDS = [(0, "db00000"), (0, "db00001"), (1, "db00002"), (1, "db00003")]


@pytest.fixture
def world(tmp_path: Path, servers: list[LocalServer]) -> Iterator[World]:
    made = World(tmp_path, servers)
    assert made.run("create", "--yes")[0] == 0
    yield made
    made.clear()


def ddl(world: World, statement: str, *arguments: str) -> tuple[int, str]:
    return world.run("ddl", "--statement", statement, *(arguments or ("--yes",)))


def columns(
    world: World, table: str = "pins", shards: Sequence[tuple[int, str]] = tuple(SHARDS)
) -> list[str]:
    """The columns of each shard's table, then its indexes."""
    found = []
    for server, database in shards:
        names = [row[0] for row in world.execute(server, f"SHOW COLUMNS FROM {database}.{table}")]
        keys = [row[2] for row in world.execute(server, f"SHOW INDEX FROM {database}.{table}")]
        found.append(" ".join([*names, "|", *keys]))
    return found


BEFORE = ["local_id data | PRIMARY"] * 4
AFTER = ["local_id data note | PRIMARY note"] * 4


def test_on_all_shards(world: World) -> None:
    """Once; a second time there is nothing to do; what the schema is to say makes `verify` content."""
    status, output = ddl(world, ADD, "--dry-run")
    assert (status, columns(world)) == (0, BEFORE), output
    after = "ADD note VARCHAR(20) AFTER data, ADD KEY (note)"
    assert f"{world.servers[1].address}: ALTER TABLE `db00003`.`pins` {after}\n" in output
    assert "would alter 4 of 4 tables" in output
    status, output = ddl(world, ADD)
    assert (status, columns(world)) == (0, AFTER), output
    assert "app.pins: altered 4 of 4 tables\n" in output
    status, again = ddl(world, ADD)
    assert (status, columns(world)) == (0, AFTER), again
    assert "altered 0 of 4 tables; 4 have that definition already" in again

    assert world.run("verify")[0] == 1
    document = json.loads(json.dumps(SCHEMA))
    told = "{" + ", ".join(line.strip() for line in output.splitlines() if line.startswith('  "')) + "}"
    document["databases"]["app"]["tables"]["pins"] |= json.loads(told)
    assert json.loads(told)["columns"]["note"] == "VARCHAR(20)"
    (world.folder / "schema.json").write_text(json.dumps(document))
    assert world.run("verify") == (0, "ok  all is as it should be\n")
    assert "schema" not in ddl(world, ADD)[1]
    assert [held for held in world.state() if altering.COPIES in held] == []


@pytest.mark.either_server
def test_killed_anywhere_and_run_again(world: World, tmp_path: Path, servers: list[LocalServer]) -> None:
    """An index without a name: a second time it would be a second index."""
    World(tmp_path, servers, 2)
    world.clear()
    assert world.run("create", "--yes")[0] == 0
    shards = [(0, "db00000"), (1, "db00001")]
    before = columns(world, "likes", shards)
    log = tmp_path / "log"
    statement = "ALTER TABLE likes ADD KEY (pin_id)"
    run = ["fleet", "ddl", "--statement", statement, "--config", str(world.settings), "--yes"]
    killer = Killer()
    kill_at, status = -1, -9
    while status == -9:
        kill_at += 2  # after one change is as before the next
        status = killer.run(run, log, kill_at)
        if status == -9:
            assert killer.run(run, log) == 0, log.read_text()
        assert columns(world, "likes", shards) == [f"{one} pin_id" for one in before], kill_at
        for server, database in shards:
            world.execute(server, f"ALTER TABLE {database}.likes DROP KEY pin_id")
    assert status == 0
    assert kill_at > 16  # two shards and their copies, before and after, the journal's entries
    assert "unfinished" not in world.run("status", "--last", "100")[1]


def test_a_shard_that_cannot(world: World) -> None:
    """It is told, the rest is done; when it is repaired the same command finishes."""
    world.execute(0, "INSERT INTO db00001.likes VALUES (1, 2, 3), (1, 2, 4)")
    statement = "CREATE UNIQUE INDEX once ON likes (user_id, pin_id)"
    status, output = ddl(world, statement)
    assert status == 1
    assert f"{world.servers[0].address}: alter db00001.likes: Duplicate entry '1-2' for key " in output
    assert "(1062)" in output
    assert "operation 2 is not finished (3 of 4 steps): see to these, then run the same command" in output
    assert ["once" in one for one in columns(world, "likes")] == [True, False, True, True]
    world.execute(0, "DELETE FROM db00001.likes WHERE sequence = 4")
    status, output = ddl(world, statement)
    assert (status, "altered 1 of 4 tables; 3 have that definition" in output) == (0, True)
    assert all("once" in one for one in columns(world, "likes"))


def test_given_up(world: World) -> None:
    """It says which shards have the definition, changes none, and is unfinished no more."""
    world.execute(0, "INSERT INTO db00001.likes VALUES (1, 2, 3), (1, 2, 4)")
    statement = "CREATE UNIQUE INDEX once ON likes (user_id, pin_id)"
    assert ddl(world, statement, "--undo", "--yes")[0] == 0  # none is unfinished
    assert ddl(world, statement)[0] == 1
    before = columns(world, "likes")
    status, output = world.run("ddl", "--undo", "--dry-run")
    assert status == 0, output
    assert "give up operation 2: CREATE UNIQUE INDEX once ON `app`.`likes`" in output
    assert "3 of 4 tables likes have this one" in output
    first, second = (one.address for one in world.servers)
    assert f"  {first}: has it: db00000\n  {first}: has it not: db00001\n" in output
    assert f"  {second}: has it: db00002 to db00003\n" in output
    assert "unfinished" not in output
    assert "failed" in world.run("status")[1]
    status, output = ddl(world, ADD, "--undo", "--yes")
    assert (status, "there is nothing to take back" in output) == (0, True)
    status, output = ddl(world, statement, "--undo", "--yes")
    assert (status, "operation 2 is given up" in output) == (0, True), output
    assert columns(world, "likes") == before
    told = world.run("status")[1]
    assert ("given up" in told, "failed" in told, "unfinished" in told) == (True, False, False)


@pytest.mark.either_server
def test_given_up_of_a_table_that_is_gone(world: World) -> None:
    """Also when neither the schema nor a host knows it, and when a host cannot be asked or is still at it."""
    world.execute(0, "INSERT INTO db00001.likes VALUES (1, 2, 3), (1, 2, 4)")
    assert ddl(world, "CREATE UNIQUE INDEX once ON likes (user_id, pin_id)")[0] == 1
    schema = json.loads(json.dumps(SCHEMA))
    del schema["databases"]["app"]["tables"]["likes"]
    (world.folder / "schema.json").write_text(json.dumps(schema))
    world.execute(0, "DROP TABLE db00000.likes")
    world.servers[1].kill()
    try:
        with world.servers[0].connect() as dead, dead.cursor() as cursor:
            cursor.execute(f"SELECT GET_LOCK('{lock_name('db00001.likes')}', 0)")
            status, output = world.run("ddl", "--undo", "--yes")
    finally:
        world.servers[1].start()
    assert status == 0, output
    first, second = (one.address for one in world.servers)
    assert f"  {first}: has it not: db00001\n  {first}: has no such table: db00000\n" in output
    assert f"  {first}: is still at work on it, and finishes that: db00001\n" in output
    assert f"  {second}: cannot be told: cannot be reached: " in output
    assert "given up" in world.run("status")[1]


@pytest.mark.either_server
def test_shards_that_it_does_not_fit(world: World, servers: list[LocalServer]) -> None:
    """Without the table, without the column, without the host; done by hand before."""
    world.execute(0, "DROP TABLE db00000.pins", "ALTER TABLE db00001.pins ADD note INT, ADD note2 INT")
    statement = "ALTER TABLE pins DROP COLUMN note"
    servers[1].kill()
    try:
        status, output = ddl(world, statement)
    finally:
        servers[1].start()
    host = servers[0].address
    assert status == 1
    assert f"{host}: db00000: the table pins is missing: make it, shardgate fleet create" in output
    assert f"{servers[1].address}: cannot be reached: " in output
    assert columns(world, shards=[(0, "db00001")]) == ["local_id data note2 | PRIMARY"]
    status, output = ddl(world, "ALTER TABLE pins ADD note2 INT")
    assert status == 1
    assert "altered 2 of 4 tables" in output  # that of db00001 has what comes of it
    assert columns(world, shards=SHARDS[1:]) == ["local_id data note2 | PRIMARY"] * 3
    assert world.run("create", "--yes")[0] == 0
    world.execute(1, "ALTER TABLE db00003.pins DROP note2, ADD other INT")
    status, output = ddl(world, "ALTER TABLE pins DROP note2")
    assert status == 1
    assert f"{servers[1].address}: db00003.pins: Can't DROP" in output
    assert columns(world)[:3] == BEFORE[:3]


@pytest.mark.either_server
def test_a_table_in_use(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ALTER waits shortly, again and again, and holds nobody up meanwhile."""
    monkeypatch.setattr(altering, "LOCK_SECONDS", 1)
    monkeypatch.setattr(altering, "ATTEMPTS", 2)
    with world.servers[1].connect() as user, user.cursor() as cursor:

        def use() -> None:
            cursor.execute("BEGIN")
            cursor.execute("SELECT * FROM db00002.pins")

        async def pause(self: Altering) -> None:
            pauses.append(1)
            if len(pauses) > 1:
                user.rollback()

        pauses: list[int] = []
        monkeypatch.setattr(Altering, "_pause", pause)
        use()
        status, output = ddl(world, ADD)
        assert status == 1
        assert "alter db00002.pins: Lock wait timeout exceeded" in output
        assert "tried 2 times; end the transactions that use the table (1205)" in output
        assert columns(world) == [AFTER[0], AFTER[0], BEFORE[0], AFTER[0]]
        status, output = ddl(world, ADD)
        assert (status, pauses) == (0, [1, 1]), output
    assert columns(world) == AFTER


def test_what_a_killed_run_has_begun(world: World) -> None:
    """The server finishes it: the next run waits for that, and does not do it again."""
    likes = [f"{one} pin_id" for one in columns(world, "likes")]
    alter = "ALTER TABLE %s ADD KEY (pin_id)"
    status: list[int] = []
    with world.servers[0].connect() as dead, dead.cursor() as cursor:
        cursor.execute(f"SELECT GET_LOCK('{lock_name('db00001.likes')}', 0)")
        run = threading.Thread(target=lambda: status.append(ddl(world, alter % "likes")[0]))
        run.start()
        waiting = "SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'"
        wait_until(lambda: world.execute(0, waiting), "the run waits")
        cursor.execute(alter % "db00001.likes")
    run.join()
    assert status == [0]
    assert columns(world, "likes") == likes


#: Reads what it is given as the real one does, and alters the table at once.
PROGRAM = """#!{python}
import configparser, sys, pymysql
place = dict(one.split("=") for one in sys.argv[-1].split(","))
account = configparser.ConfigParser(interpolation=None)
account.read(place["F"])
user, password = (account["client"][name].strip('"') for name in ("user", "password"))
alter = sys.argv[sys.argv.index("--alter") + 1]
if place["D"] == "db00001":
    sys.exit("Creating new table...\\nThe table has triggers.")
with pymysql.connect(host=place["h"], port=int(place["P"]), user=user, password=password) as conn:
    conn.cursor().execute("ALTER TABLE " + place["D"] + "." + place["t"] + " " + alter)
"""


@pytest.mark.either_server
def test_by_a_program(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    status, output = ddl(world, ADD, "--online", "--yes")
    assert (status, "neither is installed here" in output) == (2, True)
    program = tmp_path / "pt-online-schema-change"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    status, output = ddl(world, ADD, "--online", "--dry-run")
    assert "pt-online-schema-change --execute " in output
    assert ",D=db00002,t=pins\n" in output
    status, output = ddl(world, ADD, "--online", "--yes")
    assert status == 1
    said = "pt-online-schema-change ended with 1: Creating new table... / The table has triggers."
    assert f"alter db00001.pins: {said}" in output
    assert columns(world) == [AFTER[0], BEFORE[0], AFTER[0], AFTER[0]]
    status, output = ddl(world, "CREATE INDEX i ON pins (ts)", "--online", "--yes")
    assert (status, "--online is for ALTER TABLE" in output) == (2, True)


REFUSED = {
    "": "the statement is empty",
    "ALTER TABLE pins ADD a INT; ALTER TABLE pins ADD b INT": "there are several statements",
    "ALTER TABLE pins ADD a INT COMMENT 'x": "the statement cannot be read from",
    "UPDATE pins SET data = 1": "UPDATE defines no table: give ALTER TABLE, CREATE INDEX or DROP INDEX",
    "CREATE VIEW v AS SELECT 1": "CREATE VIEW defines no table",
    "CREATE TABLE IF NOT EXISTS news (a INT)": "make it everywhere with `shardgate fleet create`",
    "DROP TABLE pins": "drop it through the proxy",
    "TRUNCATE pins": "it takes rows away",
    "RENAME TABLE pins TO p": "a table is called as the schema calls it",
    "ALTER TABLE pins ADD a INT, RENAME AS p": "pins cannot be renamed",
    "ALTER TABLE pins NOWAIT RENAME p": "pins cannot be renamed",
    "ALTER TABLE pins EXCHANGE PARTITION p WITH TABLE q": "EXCHANGE PARTITION changes rows",
    "ALTER TABLE news ADD a INT": "the schema names no table news",
    "ALTER TABLE db00000.pins ADD a INT": "the schema has no database db00000: there are app",
    "ALTER TABLE pins MODIFY id INT": "`id` of pins is not stored: write local_id",
    "ALTER TABLE likes ADD FOREIGN KEY (user_id) REFERENCES app.x (a)": "without its database",
    "ALTER TABLE pins ADD": "db00000.pins and 1 more: You have an error in your SQL syntax",
    "ALTER TABLE pins DROP nothing": "(1091)",
    "ALTER TABLE pins DROP local_id": "'local_id' of pins says on which shard a row is: it cannot go",
    "ALTER TABLE pins ADD a INT FIRST": "'local_id' is the first column of pins: put none before it",
    "ALTER TABLE likes RENAME COLUMN user_id TO u": "'user_id' of likes says on which shard a row is",
    "ALTER TABLE likes MODIFY pin_id INT": "leave it as it is. It would be `pin_id` int",
    "ALTER TABLE likes DROP sequence, DROP KEY user_id": "'sequence' of likes is named in the schema",
    "ALTER TABLE emails CONVERT TO CHARACTER SET latin1": "'email' of emails says on which shard a row is",
    "CREATE UNIQUE INDEX u ON emails (user_id)": "cannot hold over shards",
    "ALTER TABLE emails ADD n INT AUTO_INCREMENT, ADD KEY (n)": "AUTO_INCREMENT of 'n' cannot hold over",
    "ALTER TABLE likes ADD FOREIGN KEY (pin_id) REFERENCES emails (user_id)": "its rows may be on different",
}


def test_refused(world: World) -> None:
    """Before anything changes: no journal, no copies, exit status 2."""
    before, journal = world.state(), world.run("status")[1]
    found = {statement: ddl(world, statement) for statement in REFUSED}
    assert {one: output for one, (status, output) in found.items() if status != 2} == {}
    assert {one: found[one][1] for one, text in REFUSED.items() if text not in found[one][1]} == {}
    assert (world.state(), world.run("status")[1]) == (before, journal)
    for arguments in ((), ("--statement", ADD, "--file", "x"), ("--file", str(world.folder / "none"))):
        assert world.run("ddl", "--yes", *arguments)[0] == 2
    assert columns(world) == BEFORE


def test_all_kinds_of_tables(tmp_path: Path, servers: list[LocalServer]) -> None:
    """Single, reference and timed ones, from a file; names as clients have them."""
    world = World(tmp_path, servers)
    column = {"code": "CHAR(2) PRIMARY KEY", "name": "VARCHAR(64)"}
    tables = {
        "countries": {"kind": "reference", "keyspace": "global", "columns": column},
        "names": {"kind": "single", "keyspace": "global", "columns": column},
        "photos": {"kind": "timed", "keyspace": "media", "shard_key": "user_id"}
        | {"columns": {"id": "BIGINT UNSIGNED PRIMARY KEY", "user_id": "BIGINT UNSIGNED NOT NULL"}},
    }
    schema = {"databases": SCHEMA["databases"] | {"other": {"tables": tables}}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    world.document["keyspaces"] |= {
        "global": {"master": servers[0].address},
        "media": {
            "layout": "instagram",
            "shards": 2,
            "database": "md{shard:05d}",
            "ranges": [{"range": [n, n], "master": servers[n].address} for n in (0, 1)],
        },
    }
    world.topology.write_text(json.dumps(world.document))
    try:
        status, output = world.run("create", "--yes")
        assert status == 0, output
        file = tmp_path / "statement.sql"
        for table, count in (("countries", 2), ("names", 1), ("photos", 2)):
            file.write_text(f"-- why\nalter table `other`.{table}\n  add note INT;\n")
            status, output = world.run("ddl", "--file", str(file), "--yes")
            assert (status, f"altered {count} of {count} tables" in output) == (0, True), output
        for n, name in ((0, "global.countries"), (1, "global.countries"), (0, "global.names")):
            assert "note" in [row[0] for row in world.execute(n, f"SHOW COLUMNS FROM {name}")]
        assert columns(world, "photos", [(1, "md00001")]) == ["id user_id note | PRIMARY"]
    finally:
        world.clear()


# --- without servers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(SCHEMA)


def defined(*columns: str) -> Definition:
    return read_definition("CREATE TABLE `pins` (\n" + ",\n".join(columns) + "\n) ENGINE=InnoDB")


def test_which_shards_are_done(schema: Schema) -> None:
    """Those whose definition comes of another's, or is known from the journal."""
    statement = read_statement("ALTER TABLE pins ADD KEY (a)", schema)
    first, second, third = defined("`a` int"), defined("`a` int", "KEY `a`"), defined("`a` int", "KEY `a_2`")
    tables = {"h:1": {"db00000": first, "db00001": second}, "h:2": {"db00002": second}}
    results: dict[str, Definition | str] = {digest(first): second, digest(second): third}

    def left(actual: Actual, known: frozenset[str] = frozenset()) -> tuple[list[str], int]:
        found = alteration(statement, actual, known)
        return [one.text for one in found.steps], found.done

    assert left(Actual(tables, dict.fromkeys(tables, results))) == (["alter db00000.pins"], 2)
    done = Actual({"h:1": {"db00001": second}}, {"h:1": {digest(second): third}})
    assert left(done, frozenset({digest(second)})) == ([], 1)
    assert left(done) == (["alter db00001.pins"], 0)
    back: dict[str, Definition | str] = {digest(first): second, digest(second): first}
    with pytest.raises(Refused, match="nobody can tell which shards are done"):
        left(Actual(tables, dict.fromkeys(tables, back)))


def test_a_program_ends_with_the_tool(tmp_path: Path) -> None:
    """Also with one that is killed: it would go on where the next run begins."""
    program, began, ended = (tmp_path / name for name in ("gh-ost", "began", "ended"))
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, signal, sys\n"
        f"end = lambda *_: (pathlib.Path({str(ended)!r}).touch(), sys.exit(1))\n"
        f"signal.signal(signal.SIGTERM, end)\n"
        f"pathlib.Path({str(began)!r}).write_text(' '.join(sys.argv[2:]))\nsignal.pause()\n"
    )
    program.chmod(0o755)
    code = (
        "import asyncio, sys; from config.backends import Backends; from fleet.online import Online\n"
        "one = Online(sys.argv[1], Backends(user='u', password='p'), lambda host: ('u', 'p'))\n"
        "asyncio.run(one.run('h:3306', 'db00001', 'pins', 'ADD a INT'))"
    )
    tool = subprocess.Popen([sys.executable, "-c", code, str(program)], cwd=Path(__file__).parents[2])
    wait_until(lambda: began.exists() and began.read_text(), "the program runs")
    tool.kill()
    tool.wait()
    wait_until(ended.exists, "the program has ended")
    assert began.read_text().startswith("--host=h --port=3306 --database=db00001 --table=pins --alter=ADD a")
