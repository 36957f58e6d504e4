"""What conditions on information_schema tell a user with a list of databases about rows outside of it: MySQL
may evaluate them for rows that a derived table leaves out, and warns of the values.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rewriter.plain.views import VIEWS
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw
from tests.integration.test_access import one_account
from tests.support.demo import Demo

MARK = "qzxhidden"
LISTED = "legacy"
SETUP = (
    f"CREATE DATABASE {MARK}",
    f"CREATE TABLE {MARK}.{MARK}t ({MARK}c INT PRIMARY KEY COMMENT '{MARK}', d INT, KEY {MARK}k (d),"
    f" CONSTRAINT {MARK}f FOREIGN KEY (d) REFERENCES {MARK}t ({MARK}c), CHECK (d > 0)) COMMENT '{MARK}'",
    f"CREATE VIEW {MARK}.{MARK}v AS SELECT * FROM {MARK}.{MARK}t",
    f"CREATE PROCEDURE {MARK}.{MARK}p({MARK}a INT) SELECT '{MARK}'",
    f"CREATE FUNCTION {MARK}.{MARK}n(a INT) RETURNS INT RETURN '{MARK}'",
    f"CREATE TRIGGER {MARK}.{MARK}g BEFORE INSERT ON {MARK}.{MARK}t FOR EACH ROW SET @{MARK} = 1",
    f"CREATE EVENT {MARK}.{MARK}e ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM {MARK}.{MARK}t",
)
TEARDOWN = f"DROP DATABASE IF EXISTS {MARK}"
CONDITIONS = (
    "SELECT 1 FROM information_schema.{view} WHERE CONCAT('~', `{column}`) + 0 = 5",
    "SELECT 1 FROM information_schema.{view} x WHERE x.`{column}` <> '' AND CONCAT('~', x.`{column}`) * 1",
    "SELECT COUNT(*) FROM information_schema.{view} HAVING MAX(CONCAT('~', `{column}`) + 0)",
    "SELECT (SELECT COUNT(*) FROM information_schema.{view} WHERE CAST(CONCAT(1, `{column}`) AS SIGNED))",
    "SELECT 1 FROM (SELECT `{column}` FROM information_schema.{view}) z WHERE CONCAT(1, `{column}`) + 0",
    "SELECT 1 FROM information_schema.{view} WHERE EXTRACTVALUE(1, CONCAT('~', `{column}`))",
    "SELECT 1 FROM information_schema.{view} ORDER BY CONCAT('~', `{column}`) + 0 LIMIT 1",
)
SHOWS = (
    "SHOW DATABASES WHERE `Database` + 0 = 1",
    "SHOW PROCEDURE STATUS WHERE Db + 0 = 1 OR Name + 0 = 1",
    "SHOW FUNCTION STATUS WHERE EXTRACTVALUE(1, CONCAT('~', Name))",
)


@pytest.fixture(scope="module", params=["an account a list", "one account"])
def proxy(
    demo: Demo, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnProxy]:
    users = [
        {"name": "demo", "password": "demo", "role": "admin"},
        {"name": "listed", "password": "x", "role": "admin", "databases": [LISTED]},
    ]
    settings: dict[str, object] = {"users": users}
    if request.param == "one account":
        settings["backends"] = one_account(demo)
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute(TEARDOWN)
        try:
            for sql in SETUP:
                cursor.execute(sql)
            with OwnProxy(demo, tmp_path_factory.mktemp("hidden"), settings) as started:
                yield started
        finally:
            cursor.execute(TEARDOWN)


@pytest.fixture
def listed(proxy: OwnProxy) -> Iterator[Raw]:
    with proxy.raw(login=False) as client:
        assert client.login("listed", "x", LISTED).kind == "ok"
        yield client


def told(client: Raw, sql: str) -> str:
    """Everything that the statement and its warnings say."""
    return "\n".join(f"{one.message} {one.rows}" for one in (client.ask(sql), client.ask("SHOW WARNINGS")))


def test_no_view_warns_of_rows_outside_of_the_list(listed: Raw) -> None:
    wrong = []
    for view in VIEWS:
        columns = listed.ask(f"SELECT * FROM information_schema.{view} LIMIT 0")
        if columns.kind == "err":
            continue  # another server's, or not for these users
        for index, column in enumerate(columns.columns):
            for form in (CONDITIONS * 2)[index % len(CONDITIONS) :][:3]:
                sql = form.format(view=view, column=column)
                if MARK in told(listed, sql):
                    wrong.append(sql)
    assert wrong == []


@pytest.mark.parametrize("sql", SHOWS)
def test_nor_does_show(listed: Raw, sql: str) -> None:
    assert MARK not in told(listed, sql)
