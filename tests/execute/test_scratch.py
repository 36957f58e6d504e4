"""The tables that gathered rows go into."""

from __future__ import annotations

import pytest

from proxy.execute.gathering.scratch import shape_of

MYSQL = """CREATE TABLE `t` (
  `a` int NOT NULL,
  `b` char(12) DEFAULT 'x' /*!80023 INVISIBLE */,
  PRIMARY KEY (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"""
MARIADB = MYSQL.replace("/*!80023 INVISIBLE */", "INVISIBLE")


@pytest.mark.parametrize("created", [MYSQL, MARIADB])
def test_a_table_shows_some_column(created: str) -> None:
    shape = shape_of(created, is_object=False, routing=frozenset({"a"}))
    assert b"INVISIBLE" in shape.select(None).create(b"g1", real=False)
    assert b"INVISIBLE" not in shape.select({"b"}).create(b"g1", real=False)
