"""`shardgate propose` of a dump, and what is refused of a plan: without any server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from config.document import ConfigError, Document
from config.load import load_schema, load_topology, open_document
from config.schema import Kind
from fleet.core.errors import Refused
from fleet.importing.definitions import read_dump
from fleet.importing.plan import read_plan
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


def proposed(folder: Path, *options: str) -> tuple[dict, dict]:
    (folder / "dump.sql").write_text(DUMP)
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
    for text in ("http://db/x", "mysql://db", str(tmp_path / "none"), "mysql://db:x/y"):
        with pytest.raises(Refused):
            read_source(text, None)
