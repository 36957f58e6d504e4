"""`shardgate propose` of a dump, and what is refused of a plan: without any server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from config.document import ConfigError, Document
from config.load import load_schema, load_topology, open_document
from config.schema import Kind
from fleet.core.errors import Refused
from fleet.importing.definitions import SourceTable, read_dump, read_table
from fleet.importing.plan import read_plan
from fleet.importing.ranges import Pace
from fleet.importing.second import differences
from fleet.importing.source import read_source
from fleet.importing.tables import after, joined
from tests.fleet.test_import import shardgate
from tests.support.forum import TABLES

TOPOLOGY = """
version: 1
keyspaces:
  main: {layout: pinterest, database: "db{shard:05d}", ranges: [{range: [0, 3], master: a}]}
  lookup: {hash: md5, shards: 4, database: "ms{shard:05d}", ranges: [{range: [0, 3], master: a}]}
  global: {master: a}
"""
DUMP = f"""
-- a dump
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `odd`;
CREATE TABLE `odd` (
  `a` int NOT NULL /*!80023 INVISIBLE */,
  `b` varchar(20) COLLATE latin1_bin NOT NULL DEFAULT 'x;
y' COMMENT 'it''s, (odd);',
  `user_id` int DEFAULT NULL,
  PRIMARY KEY (`a`),
  KEY `b` (`b`(5))
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1;
INSERT INTO `odd` VALUES (1, 'CREATE TABLE x (', 2);
/*!50001 CREATE VIEW `v` AS SELECT 1 AS `a` */;
{TABLES.replace("KEY best_post (best_post)", "FOREIGN KEY (best_post) REFERENCES posts (id)")}"""


def proposed(folder: Path, *options: str, dump: str = DUMP) -> tuple[dict, dict]:
    (folder / "dump.sql").write_text(dump)
    words = [
        "propose",
        str(folder / "dump.sql"),
        "--database",
        "forum",
        "--out",
        str(folder / "out"),
        *options,
    ]
    status, text = shardgate(words)
    assert status == 0, text
    files = [(folder / "out" / name).read_text() for name in ("schema.yaml", "plan.yaml")]
    schema, plan = map(yaml.safe_load, files)
    return schema, plan


def test_what_a_forum_could_be(tmp_path: Path) -> None:
    document, plan = proposed(tmp_path)
    schema = load_schema(document)
    load_topology(yaml.safe_load(TOPOLOGY), schema=schema)
    tables = schema.databases["forum"].tables
    kinds = {name: table.kind for name, table in tables.items()}
    objects = ("users", "forums", "topics", "posts", "attachments", "tags", "messages")
    assert {name for name, kind in kinds.items() if kind is Kind.OBJECT} == set(objects)
    assert kinds["likes"] is kinds["topic_tags"] is kinds["tag_votes"] is Kind.MAPPING
    assert (tables["settings"].routing, tables["sessions"].routing) == ("user_id", "token")
    assert kinds["odd"] is Kind.HASHED
    assert plan["skip"] == ["logs"]
    assert plan["tables"]["tag_votes"]["ids"] == {"topic_id": "topics", "tag_id": "tags", "user_id": "users"}
    assert plan["tables"]["odd"]["ids"] == {"user_id": "users"}
    follows = {name: one.colocate.column for name, one in tables.items() if one.colocate}
    assert follows["topics"] == "user_id"
    assert follows["posts"] == "topic_id"
    assert "users" not in follows
    status, text = shardgate(["propose", str(tmp_path / "dump.sql"), "--out", str(tmp_path / "out")])
    assert (status, "nothing is overwritten" in text) == (2, True)


def test_definitions_are_kept_as_they_stand(tmp_path: Path) -> None:
    odd = read_dump(DUMP.splitlines(keepends=True), "dump")[0]
    assert [one.name for one in odd.columns] == ["a", "b", "user_id"]
    assert odd.columns[0].definition == "int NOT NULL /*!80023 INVISIBLE */"
    assert odd.columns[1].definition.endswith("COMMENT 'it''s, (odd);'")
    assert (odd.primary, odd.counter, odd.charset) == (("a",), 3, "latin1")
    with pytest.raises(Refused, match=r"has no end|lists no columns|cannot be read"):
        read_dump(["CREATE TABLE x;\n"], "dump")


APART = """
CREATE TABLE `wp_users` (
  `ID` bigint(20) unsigned NOT NULL,
  `login` varchar(60) NOT NULL DEFAULT ''
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS blog.posts (id int NOT NULL, author bigint unsigned, body text);
CREATE TABLE drafts LIKE posts;
DELIMITER ;;
CREATE PROCEDURE p() BEGIN
CREATE TABLE inner_one (a int);
END;;
DELIMITER ;
ALTER TABLE `wp_users` ADD PRIMARY KEY (`ID`), ADD UNIQUE KEY `login` (`login`);
ALTER TABLE `wp_users` MODIFY `ID` bigint(20) unsigned NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=5000;
ALTER TABLE posts ADD COLUMN title varchar(9) AFTER id, ADD CONSTRAINT PRIMARY KEY (id),
  ADD CONSTRAINT f FOREIGN KEY (author) REFERENCES wp_users (ID) ON DELETE CASCADE;
CREATE INDEX titles ON posts (title(4), id);
"""


def test_keys_that_a_dump_puts_behind_its_tables() -> None:
    found = {one.name: one for one in read_dump(APART.splitlines(keepends=True), "dump")}
    assert sorted(found) == ["drafts", "posts", "wp_users"]
    users, posts = found["wp_users"], found["posts"]
    assert (users.primary, users.counted, users.counter) == (("ID",), "ID", 5000)
    assert [one.name for one in users.columns] == ["ID", "login"]
    assert [str(key) for key in posts.keys] == ["PRIMARY KEY (id)", "KEY (title(…), id)"]
    assert [(one.columns, one.table) for one in posts.references] == [(("author",), "wp_users")]
    assert found["drafts"].columns == posts.columns[:3]


@pytest.mark.parametrize(
    ("dump", "told"),
    [
        ("CREATE TABLE t (a int);\nALTER TABLE t DROP COLUMN a;\n", "changes what there was"),
        ("ALTER TABLE t ADD KEY (a);\n", "makes no table 't' before"),
        ("CREATE TABLE t (a int);\nCREATE TABLE t (b int);\n", "twice"),
        ("CREATE TABLE t (a int COMMENT '\udce4');\n", "not in UTF-8"),
        ("CREATE TABLE t (a int\n", "has no end"),
    ],
)
def test_dumps_that_are_refused(dump: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        read_dump(dump.splitlines(keepends=True), "dump")


NAMES = """
CREATE TABLE `Größe` (`id` int NOT NULL AUTO_INCREMENT PRIMARY KEY, `名前` int, `d e` int);
CREATE TABLE `user-ref` (
  `nr` int NOT NULL AUTO_INCREMENT,
  `id` varchar(10) NOT NULL,
  `größe-id` int NOT NULL,
  `a b` varchar(20) GENERATED ALWAYS AS (concat(`id`, 'id')) STORED,
  PRIMARY KEY (`nr`), KEY k (`größe-id`, `a b`), UNIQUE KEY `id` (`id`),
  FOREIGN KEY (`größe-id`) REFERENCES `Größe` (`id`)
);
CREATE TABLE tags (name varchar(20) COLLATE utf8mb4_general_ci NOT NULL PRIMARY KEY, nr int,
  size int REFERENCES sizes (id) MATCH FULL ON DELETE SET NULL ON UPDATE NO ACTION COMMENT 'x');
"""


def test_names_that_a_schema_cannot_have(tmp_path: Path) -> None:
    """They are changed, in keys and expressions, too."""
    schema, plan = proposed(tmp_path, dump=NAMES)
    tables = schema["databases"]["forum"]["tables"]
    load_schema(schema)
    assert tables.keys() == {"imported_ids", "Groe", "user_ref", "tags"}
    assert tables["user_ref"]["columns"] == {
        "id_2": "varchar(10) NOT NULL",
        "groe_id": "BIGINT UNSIGNED NOT NULL",
        "a_b": "varchar(20) GENERATED ALWAYS AS (concat(`id_2`, 'id')) STORED",
    }
    assert tables["user_ref"]["indexes"] == ["KEY k (`groe_id`, `a_b`)", "UNIQUE KEY `id_2` (`id_2`)"]
    assert (tables["user_ref"]["unique"], tables["user_ref"]["colocate"]) == (
        {"id_2": "per_shard"},
        "groe_id",
    )
    assert plan["tables"]["user_ref"]["ids"] == {"größe-id": "Groe"}
    assert plan["tables"]["tags"]["ids"] == {"nr": "user_ref"}  # it is called like the other's own ID
    assert tables["tags"]["columns"]["size"] == "int COMMENT 'x'"
    text = (tmp_path / "out" / "schema.yaml").read_text()
    assert "name was compared by utf8mb4_general_ci: here by its bytes" in text


def test_sqlglot_reads_the_same(tmp_path: Path) -> None:
    """And what it sees otherwise is told."""
    seen: dict[str, list[str]] = {}

    def look(table: SourceTable, text: str) -> None:
        seen[table.name] = differences(table, text)

    for text in (DUMP, NAMES):
        read_dump(text.splitlines(keepends=True), "dump", look)
    assert {name: found for name, found in seen.items() if found} == {}
    assert len(seen) > 15
    one, other = "CREATE TABLE t (a INT PRIMARY KEY, b INT)", "CREATE TABLE t (a INT, b INT, PRIMARY KEY (b))"
    assert differences(read_table(one, "dump"), other) == ["the PRIMARY KEY"]
    other = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, c INT REFERENCES u (id))"
    assert differences(read_table(one, "dump"), other) == ["columns", "FOREIGN KEYs", "AUTO_INCREMENT"]
    assert differences(read_table(one, "dump"), "CREATE TABLE t (a INT) PARTITION BY (((") == []


async def test_rows_per_second() -> None:
    now, slept = [100.0], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(1000, lambda: now[0], sleep)
    for _ in range(3):
        await pace.take(4000)
    assert slept == [4.0, 4.0]
    await Pace(0, lambda: now[0], sleep).take(10**9)
    assert len(slept) == 2


def refusals(folder: Path, change: dict) -> str:
    """What is said of a plan that was changed."""
    document, plan = proposed(folder)
    schema = load_schema(document)
    topology = load_topology(yaml.safe_load(TOPOLOGY), schema=schema)
    for name, fields in change.items():
        plan["tables"][name] = (plan["tables"].get(name) or {}) | fields
    there = {one.name: one for one in read_dump(DUMP.splitlines(keepends=True), "dump")}
    opened: Document = open_document(plan, "plan.yaml")
    try:
        made = joined(read_plan(opened), opened, schema, topology, there)
    except ConfigError as error:
        return str(error)
    assert (made is None) == bool(opened.problems)
    return "\n".join(map(str, opened.problems))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ""),
        ({"likes": {"sequence": "post_id"}}, ""),
        ({"likes": {"from": "gone"}}, "the source has no table 'gone'"),
        ({"nobody": {}}, "the schema has no table forum.nobody"),
        ({"posts": {"ids": {"topic_id": "likes"}}}, "is no object table that is imported"),
        ({"posts": {"colour": 1}}, "unknown field"),
        ({"posts": {"leave": ["body"]}}, "nothing gives a value for the column 'body'"),
        ({"posts": {"key": ["topic_id"]}}, "is no unique key without NULLs"),
        ({"posts": {"rename": {"edits": "changes"}}}, "has no column 'changes'"),
        ({"posts": {"dangling": {"topic_id": "null"}}}, "'topic_id' is NOT NULL"),
        ({"posts": {"dangling": {"body": "keep"}}}, "'body' is none of the `ids`"),
        ({"posts": {"place": "body"}}, "none of the `ids`"),
        ({"settings": {"place": "user_id"}}, "is for object tables"),
        ({"users": {"place": "best_post"}, "topics": {"place": "user_id"}}, "share each other's shard"),
    ],
)
def test_plans_that_cannot_be(tmp_path: Path, change: dict, told: str) -> None:
    found = refusals(tmp_path, change)
    assert told in found if told else not found, found


def test_bounds_of_ranges() -> None:
    assert after(["a"], ["1"]) == "a > 1"
    assert after(["a", "b"], ["1", "'x'"]) == "(a >= 1 AND (a > 1 OR (a = 1 AND b > 'x')))"
    assert after(["a", "b"], ["1", "2"], last=True) == "(a <= 1 AND (a < 1 OR (a = 1 AND b <= 2)))"


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_source("mysql://me:se%40cret@[::1]:3307/forum", None)
    assert (found.address, found.user, found.password, found.database) == (
        "[::1]:3307",
        "me",
        "se@cret",
        "forum",
    )
    assert "cret" not in found.name
    monkeypatch.setenv("PW", "other")
    assert read_source("mysql://db/forum", "PW").password == "other"
    (tmp_path / "my.cnf").write_text("[client]\nsocket = /run/x.sock\npassword = 'a b'\ndatabase=forum\n")
    found = read_source(str(tmp_path / "my.cnf"), None)
    assert (found.address, found.password) == ("unix:/run/x.sock", "a b")
    (tmp_path / "ca.pem").write_text("no certificate")
    (tmp_path / "my.cnf").write_text(f"[client]\nhost=db\ndatabase=forum\nssl-ca={tmp_path}/ca.pem\n")
    found = read_source(str(tmp_path / "my.cnf"), None)
    with pytest.raises(Refused, match=r"ca\.pem"):
        found.backends()
    for text in ("http://db/x", "mysql://db", str(tmp_path / "none"), "mysql://db:x/y"):
        with pytest.raises(Refused):
            read_source(text, None)
