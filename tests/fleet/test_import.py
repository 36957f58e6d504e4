"""`shardgate propose` and `shardgate fleet import`: a forum of one server, and the same over shards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
import yaml
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor
from typer.testing import CliRunner

from demo.programs import Program
from fleet.importing import ranges
from fleet.importing.importing import Importing
from fleet.importing.ranges import Ranges
from fleet.importing.rows import Rows
from proxy.cli import app
from tests.fleet.killed import Killer
from tests.support.demo import Demo, running_demo
from tests.support.filled import fill
from tests.support.forum import Forum
from tests.support.servers import LocalServer

TABLES = (
    "users forums topics posts attachments tags topic_tags tag_votes likes messages settings sessions badges"
)
#: What the source answers, and the proxy too: with names in the place of IDs, which are others now.
QUERIES = (
    *(f"SELECT COUNT(*) FROM {name}" for name in (*TABLES.split(), "countries")),
    "SELECT f.title, p.title, f.about FROM forums f LEFT JOIN forums p ON p.id = f.parent_id",
    "SELECT t.title, t.pinned, t.created_at, f.title, u.email FROM topics t"
    " JOIN forums f ON f.id = t.forum_id JOIN users u ON u.id = t.user_id",
    "SELECT t.title, p.body, p.edits, p.length, p.updated_at FROM posts p JOIN topics t ON t.id = p.topic_id",
    "SELECT p.body, u.email FROM posts p LEFT JOIN users u ON u.id = p.user_id",
    "SELECT c.body, p.body FROM posts c JOIN posts p ON p.id = c.parent_id",
    "SELECT u.email, u.name, c.name, u.karma, u.avatar, u.born, p.body FROM users u"
    " LEFT JOIN countries c ON c.code = u.country LEFT JOIN posts p ON p.id = u.best_post",
    "SELECT p.body, a.name, a.content, a.meta, a.flags + 0 FROM attachments a"
    " JOIN posts p ON p.id = a.post_id",
    "SELECT t.title, g.name FROM topic_tags m JOIN topics t ON t.id = m.topic_id"
    " JOIN tags g ON g.id = m.tag_id",
    "SELECT t.title, u.email, v.vote FROM tag_votes v JOIN topic_tags m ON m.topic_id = v.topic_id"
    " AND m.tag_id = v.tag_id JOIN topics t ON t.id = v.topic_id JOIN users u ON u.id = v.user_id",
    "SELECT u.email, p.body, l.created_at FROM likes l JOIN users u ON u.id = l.user_id"
    " JOIN posts p ON p.id = l.post_id",
    "SELECT s.email, r.email, m.body, m.cost, m.sent_at FROM messages m JOIN users s ON s.id = m.sender_id"
    " JOIN users r ON r.id = m.recipient_id",
    "SELECT u.email, s.name, s.value FROM settings s JOIN users u ON u.id = s.user_id",
    "SELECT kind, name, holders, ratio + 0 FROM badges",
    "SELECT s.token, s.data, u.email FROM sessions s LEFT JOIN users u ON u.id = s.user_id",
)


@dataclass
class Place:
    """A demo to import into, and a source with a database, which is called the same over shards."""

    demo: Demo
    source: LocalServer
    folder: Path
    database: str
    happen: Callable[[Cursor], None] = lambda cursor: None
    """Something in the source, like what its application does."""

    @property
    def plan(self) -> Path:
        return self.folder / "proposed" / "plan.yaml"

    def words(self, *arguments: str) -> list[str]:
        """Of the command that imports."""
        option_file = self.folder / "source.cnf"
        option_file.write_text(
            f'[client]\nuser = root\npassword = "{self.source.password}"\nhost = 127.0.0.1\n'
            f"port = {self.source.port}\ndatabase = {self.database}\n"
        )
        base = ["fleet", "import", "--config", str(self.demo.settings), "--plan", str(self.plan)]
        return [*base, "--source", str(option_file), "--yes", *arguments]

    def run(self, *arguments: str) -> tuple[int, str]:
        return shardgate(self.words(*arguments))

    def propose(self) -> None:
        """The proposal is taken as it is, beside what the demo has."""
        self.words()
        words = ["propose", "--source", str(self.folder / "source.cnf"), "--out", str(self.plan.parent)]
        status, text = shardgate([*words, "--first-type", "10"])
        assert status == 0, text
        self._make_room()
        schema = yaml.safe_load(self.demo.schema.read_text())
        proposed = yaml.safe_load((self.plan.parent / "schema.yaml").read_text())["databases"]
        proposed[self.database]["others"]["keyspace"] = f"{self.database}_global"
        for table in proposed[self.database]["tables"].values():
            table["keyspace"] = f"{self.database}_{table['keyspace']}"
        schema["databases"] |= proposed
        self.demo.schema.write_text(json.dumps(schema))
        status, text = shardgate(["fleet", "create", "--config", str(self.demo.settings), "--yes"])
        assert status == 0, text

    def _make_room(self) -> None:
        """Keyspaces beside those of the demo, which has a table `users` itself."""
        file = self.demo.directory / "topology.json"
        document = json.loads(file.read_text())
        document["version"] += 1
        for name in ("main", "lookup", "global"):
            made = document["keyspaces"][f"{self.database}_{name}"] = dict(document["keyspaces"][name])
            if "database" in made:
                made["database"] = f"{self.database[0]}{made['database']}"
        new = self.folder / "topology.json"
        new.write_text(json.dumps(document))
        file.write_text(new.read_text())

    def differences(self) -> dict[str, tuple[list[Any], list[Any]]]:
        """What the source and the proxy do not answer alike."""
        wrong = {}
        with (
            self.source.connect(database=self.database) as one,
            self.demo.connect(database=self.database) as other,
        ):
            for sql in QUERIES:
                expected, found = rows_of(one, sql), rows_of(other, sql.replace("m.message_id", "m.id"))
                if expected != found:
                    wrong[sql] = (expected[:3], found[:3])
        return wrong

    def clear(self) -> None:
        """As before the import, and with another forum."""
        status, text = self.run("--undo")
        assert status == 0, text


def rows_of(connection: Any, sql: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(sql)
        return sorted(repr(row) for row in cursor.fetchall())


def shardgate(words: Sequence[str]) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def target(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    options = ("--empty", "--shards", "8", "--no-page")
    with running_demo(program, tmp_path_factory.mktemp("import"), *options) as running:
        yield running


@pytest.fixture(scope="module")
def place(
    target: Demo, servers: list[LocalServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """With the schema of the forum, and nothing imported yet."""
    folder = tmp_path_factory.mktemp("source")
    connection = servers[0].connect()
    forum = Forum(connection, size=1200)
    forum.make()
    made = Place(target, servers[0], folder, "forum", forum.happen)
    made.propose()
    yield made
    with connection.cursor() as cursor:
        cursor.execute("SET GLOBAL read_only = OFF")
        cursor.execute("DROP DATABASE forum")


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "ROWS", 150)


def test_all_of_a_forum(place: Place) -> None:
    status, text = place.run("--dry-run")
    assert status == 0, text
    assert "copy posts to posts (object)" in text
    status, text = place.run()
    assert status == 0, text
    assert "0 rows differed in the last of 1 passes" in text
    assert place.differences() == {}
    status, text = place.run("--cut-over", "stopped")
    assert status == 0, text
    assert "verified: every row" in text
    assert place.run("--undo")[1].startswith("no import is unfinished")
    status, text = place.run()
    assert (status, "has rows" in text) == (2, True), text


def empty(place: Place) -> None:
    """What an import that was done has left, which nothing takes back."""
    with place.demo.connect(database=place.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET scatter_writes = 1")
        for name in (*TABLES.split(), "countries", "imported_ids"):
            cursor.execute(f"DELETE FROM {name}")


@pytest.mark.either_server
def test_killed_and_written_meanwhile(place: Place, tmp_path: Path) -> None:
    """Wherever it is killed, and whatever happens to the source meanwhile, the same command ends it."""
    empty(place)
    log = tmp_path / "log"
    constants = {"fleet.importing.ranges.ROWS": 60, "fleet.importing.importing.KEPT": 0.0}
    killed = 0
    killer = Killer()
    with place.source.connect() as connection, connection.cursor() as cursor:
        for at in (3, 6, 10, 15, 23, 34, 46, 58, 71, 90, 120, 160, 210):
            status = killer.run(place.words(), log, at, constants=constants)
            killed += status == -9
            assert status in (-9, 0), log.read_text()
            for _ in range(10):
                place.happen(cursor)
        assert killed > 8
        done = threading.Event()
        writer = threading.Thread(target=_write, args=(place, done))
        writer.start()
        try:
            assert killer.run(place.words(), log, constants=constants) == 0, log.read_text()
        finally:
            done.set()
            writer.join()
        for at in (9, 30):  # while the source is read-only
            assert killer.run(place.words("--cut-over", "read-only"), log, at, constants=constants) == -9
        assert killer.run(place.words("--cut-over", "read-only"), log, constants=constants) == 0, (
            log.read_text()
        )
        cursor.execute("SELECT @@GLOBAL.read_only")
        assert cursor.fetchone() == (1,)
        cursor.execute("SET GLOBAL read_only = OFF")
    assert place.differences() == {}


def _write(place: Place, done: threading.Event) -> None:
    with place.source.connect() as connection, connection.cursor() as cursor:
        while not done.wait(0.01):  # what is imported runs on the same machine
            with suppress(pymysql.OperationalError):
                place.happen(cursor)


@pytest.mark.one_server
def test_dask_does_the_same(place: Place, tmp_path: Path) -> None:
    """The rows are those, and where those are, that one machine has written."""
    import distributed  # 0.3 s of CPU time, in each process that collects tests

    empty(place)
    assert place.run()[0] == 0
    expected = everything(place)
    place.clear()
    assert not any(rows for name, rows in everything(place).items())
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        killer = Killer()  # its ranges may be at work still
        words = place.words("--dask", cluster.scheduler_address)
        small = {"fleet.importing.ranges.ROWS": 60}
        assert killer.run(words, tmp_path / "log", 30, constants=small) == -9
        status, text = place.run("--dask", cluster.scheduler_address)
        assert status == 0, text
        status, text = place.run("--dask", cluster.scheduler_address, "--cut-over", "stopped")
        assert status == 0, text
    assert everything(place) == expected


def everything(place: Place) -> dict[str, list[str]]:
    """The rows of each database of the shards."""
    found = {}
    for index in range(len(place.demo.masters)):
        with place.demo.direct(index) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW DATABASES")
            for (name,) in cursor.fetchall():
                if name.startswith(("fdb", "fmsdb", "forum_global")):
                    cursor.execute(f"SHOW TABLES FROM {name}")
                    for (table,) in cursor.fetchall():
                        key = f"{index}.{name}.{table}"
                        found[key] = rows_of(connection, f"SELECT * FROM {name}.{table}")
    return found


@pytest.mark.either_server
def test_ids_of_rows_that_are_not_there(place: Place) -> None:
    """It is told, and the plan says what is done with them."""
    empty(place)
    plan = yaml.safe_load(place.plan.read_text())
    before = place.plan.read_text()
    with place.source.connect(database="forum") as connection, connection.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        cursor.execute("INSERT INTO likes VALUES (1, 999999, NOW())")
        cursor.execute(
            "INSERT INTO posts (topic_id, user_id, parent_id, body) VALUES (1, 999999, 888888, 'lost')"
        )
        try:
            status, text = place.run()
            assert status == 1
            assert "likes (1, 999999): post_id = 999999" in text.replace(
                "likes (1,999999)", "likes (1, 999999)"
            )
            assert "user_id = 999999" in text
            plan["tables"]["likes"]["dangling"] = {"post_id": "skip"}
            plan["tables"]["posts"]["dangling"] = {"user_id": "null", "parent_id": "keep"}
            place.plan.write_text(yaml.safe_dump(plan))
            status, text = place.run("--cut-over", "stopped", "--rows-per-second", "1000000")
            assert status == 0, text
            assert "likes.post_id: 1 IDs of rows that are not there" in text
            with place.demo.connect(database="forum") as proxy:
                found = rows_of(proxy, "SELECT user_id, parent_id FROM posts WHERE body = 'lost'")
                assert found == ["(None, 888888)"]
        finally:
            place.plan.write_text(before)
            cursor.execute("DELETE FROM likes WHERE post_id = 999999")
            cursor.execute("DELETE FROM posts WHERE body = 'lost'")


def test_what_is_refused_before_anything_is_changed(place: Place) -> None:
    """IDs that cannot be local ones; a map that might say other shards."""
    empty(place)
    with (
        place.source.connect(database="forum") as source,
        place.demo.connect(database="forum") as proxy,
        source.cursor() as cursor,
        proxy.cursor() as target,
    ):
        cursor.execute("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute(
            "INSERT INTO attachments (id, post_id, name, content) SELECT 1 << 36, MIN(id), 'a', '' FROM posts"
        )
        cursor.execute("INSERT INTO messages VALUES (-1, 1, 2, 'minus one', 0, NOW())")
        target.execute("INSERT INTO imported_ids VALUES ('users:7', 1)")
        status, text = place.run()
        assert (status, "rows of another import, as 'users:7'" in text) == (2, True), text
        target.execute("DELETE FROM imported_ids WHERE old = 'users:7'")
        status, text = place.run()
        assert (status, "attachments.id 68719476736" in text, "messages.message_id -1" in text) == (
            2,
            True,
            True,
        ), text
        cursor.execute("DELETE FROM attachments WHERE id > 68719476735")
        cursor.execute("DELETE FROM messages WHERE message_id < 0")


@pytest.mark.either_server
def test_what_changes_at_a_bad_moment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that goes together with the one that it refers to is no error; a table that is made while all is
    verified is one.
    """
    lost: list[int] = []
    over, judged, verify = Ranges.over, Rows._judged, Importing._verify
    with place.source.connect(database="forum") as connection, connection.cursor() as cursor:

        async def likes_come(self: Ranges, table: Any, mode: Any, *arguments: Any) -> Any:
            if (table.name, mode) == ("likes", "mend"):
                cursor.execute("INSERT INTO posts (topic_id, body) VALUES (1, 'short-lived')")
                lost.append(connection.insert_id())
                cursor.execute("INSERT INTO likes VALUES (1, %s, NOW())", (lost[0],))
            return await over(self, table, mode, *arguments)

        async def post_goes(self: Rows, batch: Any) -> Any:
            if self.table.name == "likes" and lost and any(lost[0] in one.foreign for one in batch):
                cursor.execute("DELETE FROM posts WHERE id = %s", (lost.pop(),))
            return await judged(self, batch)

        async def table_comes(self: Importing, table: Any) -> Any:
            cursor.execute("CREATE TABLE IF NOT EXISTS later (id INT PRIMARY KEY)")
            return await verify(self, table)

        monkeypatch.setattr(Ranges, "over", likes_come)
        monkeypatch.setattr(Rows, "_judged", post_goes)
        status, text = place.run()
        assert status == 0, text
        assert lost == []
        monkeypatch.setattr(Ranges, "over", over)
        monkeypatch.setattr(Importing, "_verify", table_comes)
        status, text = place.run("--cut-over", "stopped")
        assert (status, "later: changed, made or dropped" in text) == (1, True), text
        cursor.execute("DROP TABLE later")
        monkeypatch.setattr(Importing, "_verify", verify)
        status, text = place.run("--cut-over", "stopped")
        assert status == 0, text
    assert place.differences() == {}


SCHEMA = Path(__file__).parents[2] / ".drivers/schemas/tt-rss/usr/share/tt-rss/schema/ttrss_schema_mysql.sql"


@pytest.fixture
def reader(target: Demo, servers: list[LocalServer], tmp_path: Path) -> Iterator[Place]:
    """The database of an application that is in use, a reader of feeds: 32 tables with references."""
    if not SCHEMA.exists():
        pytest.skip(f"no {SCHEMA}, which .ci/drivers gets from a Debian package")
    with servers[0].connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE ttrss CHARACTER SET utf8mb4")
        cursor.execute("USE ttrss")
        cursor.execute(SCHEMA.read_text())
        while cursor.nextset():
            pass
        fill(connection, "ttrss", 40)
        made = Place(target, servers[0], tmp_path, "ttrss")
        made.propose()
        yield made
        cursor.execute("DROP DATABASE ttrss")


@pytest.mark.either_server
def test_an_application_that_is_in_use(reader: Place) -> None:
    """The proposal is taken as it is."""
    status, text = reader.run()
    assert status == 0, text
    status, text = reader.run("--cut-over", "stopped")
    assert status == 0, text
    tables = list(yaml.safe_load(reader.plan.read_text())["tables"])
    assert len(tables) == 25
    queries = [
        *(f"SELECT COUNT(*) FROM {name}" for name in tables),
        "SELECT f.title, f.feed_url, u.login FROM ttrss_feeds f JOIN ttrss_users u ON u.id = f.owner_uid",
        "SELECT t.tag_name, u.login FROM ttrss_tags t JOIN ttrss_user_entries e ON e.int_id = t.post_int_id"
        " JOIN ttrss_users u ON u.id = t.owner_uid",
    ]
    with (
        reader.source.connect(database="ttrss") as one,
        reader.demo.connect(database="ttrss") as other,
    ):
        for sql in queries:
            assert rows_of(other, sql.replace("int_id =", "id =")) == rows_of(one, sql), sql
