"""Schema documents: the tables they give, and what is refused with which problems (cases/schema.yaml)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.load import ConfigError, load_schema
from config.schema import Colocation, Column, KeyType, Kind, Table
from tests.support.cases import cases_in

REFUSED = cases_in(Path(__file__).parent / "cases" / "schema.yaml")

DEMO = b"""
version: 3
databases:
  demo:
    tables:
      pins: {kind: object, keyspace: main, type: 1, colocate: "data:$.board_id"}
      boards: {kind: object, keyspace: main, type: 2, colocate: {column: user_id, stored: false}}
      board_has_pins: {kind: mapping, keyspace: main, from: board_id, to: pin_id, orderable: true}
      email_to_user:
        kind: hashed
        keyspace: lookup
        key: email
        columns: {email: VARCHAR(255) PRIMARY KEY, user_id: BIGINT UNSIGNED NOT NULL}
      photos:
        kind: timed
        keyspace: media
        shard_key: user_id
        columns: {user_id: BIGINT UNSIGNED NOT NULL, caption: VARCHAR(255), taken_at: DATETIME}
      usernames: {kind: single, keyspace: global}
      countries:
        kind: reference
        keyspace: global
        columns: {code: CHAR(2) PRIMARY KEY, name: VARCHAR(64)}
        indexes: [UNIQUE KEY (name)]
  legacy: {keyspace: legacy}
"""


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_schema(case["document"].encode())
    assert sorted(map(str, caught.value.problems)) == sorted(case["problems"])


def table(name: str) -> Table:
    found = load_schema(DEMO).table("demo", name)
    assert found is not None
    return found


def test_objects_get_three_columns_and_a_virtual_fourth() -> None:
    pins = table("pins")
    assert (pins.database, pins.name, pins.kind, pins.keyspace) == ("demo", "pins", Kind.OBJECT, "main")
    assert (pins.type, pins.routing, pins.key_type) == (1, "id", KeyType.INTEGER)
    assert pins.columns == (
        Column("local_id", "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"),
        Column("data", "JSON NOT NULL"),
        Column("ts", "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"),
    )
    assert pins.logical_columns == ("id", "data", "ts")
    assert pins.colocate == Colocation("data", "$.board_id")
    assert table("boards").colocate == Colocation("user_id", stored=False)
    assert pins.column("DATA") is pins.columns[1]
    assert pins.column("id") is None


def test_mappings_get_three_columns_and_an_index() -> None:
    mapping = table("board_has_pins")
    assert (mapping.routing, mapping.from_column, mapping.to_column) == ("board_id", "board_id", "pin_id")
    assert (mapping.sequence_column, mapping.orderable) == ("sequence", True)
    assert (mapping.procedure, mapping.dated) == ("reorder_board_pin", True)
    assert mapping.columns == (
        Column("board_id", "BIGINT UNSIGNED NOT NULL"),
        Column("pin_id", "BIGINT UNSIGNED NOT NULL"),
        Column("sequence", "DECIMAL(38,0) NOT NULL"),
    )
    assert mapping.indexes == ("KEY (`board_id`, `sequence`, `pin_id`)",)
    assert mapping.logical_columns == ("board_id", "pin_id", "sequence")


def test_timed_tables_store_the_whole_id() -> None:
    photos = table("photos")
    assert (photos.routing, photos.shard_key) == ("id", "user_id")
    assert photos.columns[0] == Column("id", "BIGINT UNSIGNED NOT NULL PRIMARY KEY")
    assert photos.logical_columns == ("id", "user_id", "caption", "taken_at")


def test_hashed_text_keys_are_made_binary_without_padding() -> None:
    emails = table("email_to_user")
    assert (emails.routing, emails.key_type, emails.key_length) == ("email", KeyType.TEXT, 255)
    assert emails.columns[0].definition == (
        "VARCHAR(255) CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */"
        " /*M!100202 COLLATE utf8mb4_nopad_bin */ PRIMARY KEY"
    )


@pytest.mark.parametrize(
    ("definition", "stored", "kind", "length"),
    [
        ("VARBINARY(16) NOT NULL", "VARBINARY(16) NOT NULL", KeyType.BINARY, 16),
        ("BIGINT UNSIGNED", "BIGINT UNSIGNED", KeyType.INTEGER, None),
        ("int(11)", "int(11)", KeyType.INTEGER, None),
        (
            "varchar(9) COLLATE utf8mb4_0900_bin",
            "varchar(9) COLLATE utf8mb4_0900_bin",
            KeyType.TEXT,
            9,
        ),
        (
            "VARCHAR ( 45 )  CHARSET utf8mb4\n NOT NULL",
            "VARCHAR ( 45 ) CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */"
            " /*M!100202 COLLATE utf8mb4_nopad_bin */ NOT NULL",
            KeyType.TEXT,
            45,
        ),
    ],
)
def test_hashed_keys(definition: str, stored: str, kind: KeyType, length: int | None) -> None:
    document = {"kind": "hashed", "keyspace": "l", "key": "K", "columns": {"v": "INT", "k": definition}}
    made = load_schema({"databases": {"d": {"tables": {"t": document}}}}).table("d", "t")
    assert made is not None
    assert (made.columns[1].name, made.columns[1].definition) == ("k", stored)
    assert (made.key_type, made.key_length) == (kind, length)


def test_further_columns_are_kept_in_order() -> None:
    document = {
        "kind": "object",
        "keyspace": "main",
        "type": 5,
        "columns": {"data": "TEXT", "score": "INT", "ts": "TIMESTAMP"},
        "indexes": ["KEY (score)"],
    }
    made = load_schema({"databases": {"d": {"tables": {"t": document}}}}).table("d", "t")
    assert made is not None
    assert made.logical_columns == ("id", "data", "score", "ts")
    assert made.create_sql("db`1") == (
        "CREATE TABLE IF NOT EXISTS `db``1`.`t` (\n"
        "  `local_id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,\n"
        "  `data` TEXT,\n"
        "  `score` INT,\n"
        "  `ts` TIMESTAMP,\n"
        "  KEY (score)\n"
        ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    )


def test_columns_may_be_a_list_for_tools_that_sort_keys() -> None:
    document = {"kind": "hashed", "keyspace": "l", "key": "k", "columns": [{"v": "INT"}, {"k": "VARCHAR(9)"}]}
    made = load_schema({"databases": {"d": {"tables": {"t": document}}}}).table("d", "t")
    assert made is not None
    assert made.logical_columns == ("v", "k")
    assert made.key_length == 9


def test_single_tables_may_leave_their_columns_undeclared() -> None:
    usernames = table("usernames")
    assert (usernames.columns, usernames.logical_columns, usernames.routing) == ((), (), "")
    with pytest.raises(ValueError, match=r"demo\.usernames are not declared"):
        usernames.create_sql("global")


def test_databases() -> None:
    schema = load_schema(DEMO)
    assert schema.version == 3
    assert not schema.databases["demo"].passes_through
    assert schema.databases["legacy"].passes_through
    assert schema.table("legacy", "x") is None
    assert schema.table("Demo", "pins") is None
    assert schema.table("demo", "Pins") is None


def test_without_a_version_the_content_is_the_version() -> None:
    one = load_schema(b"databases: {a: {keyspace: x}}").version
    assert one == load_schema(b'{"databases": {"a": {"keyspace": "x"}}}').version
    assert one != load_schema(b"databases: {a: {keyspace: y}}").version
    assert load_schema(b"{version: v7, databases: {}}").version == "v7"


def test_models_compare_by_identity() -> None:
    assert table("pins") != table("pins")
    assert len({table("pins"), table("pins")}) == 2
