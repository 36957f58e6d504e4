"""Nothing that a statement takes or sets on its connection is another session's, however it is written."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeOwn
from tests.support.demo import Demo

ASKED = "SELECT @left, IS_USED_LOCK('left'), GET_LOCK('left', 0), RELEASE_LOCK('left')"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE left_over AS SELECT GET_LOCK('left', 0) AS a, @left := 5 AS b",
        "CREATE OR REPLACE TABLE left_over (a INT) SELECT GET_LOCK('left', 0) AS a, (@left := 5) AS b",
        "SELECT GET_LOCK/*+ x */('left', 0), @left/*+ x */:= 5",
        "SELECT GET_LOCK('left', 0) INTO /*+ x */ @left",
        "DO GET_LOCK('left', 0), @left := 5",
    ],
)
def test_a_lock_and_a_variable(own: MakeOwn, demo: Demo, flavour: str, sql: str) -> None:
    """The session has them, and whoever gets its connection then has not."""
    if flavour == "mysql9" and "OR REPLACE" in sql:
        pytest.skip("MariaDB's")
    proxy = own({"backends": {"max_connections": 1}})
    try:
        client = proxy.raw(database="legacy")
        assert client.ask(sql).kind != "err"
        assert client.ask("SELECT @left > 0, IS_USED_LOCK('left') = CONNECTION_ID()").rows == [(b"1", b"1")]
        client.close()
        proxy.wait_idle()
        assert proxy.raw(database="legacy").ask(ASKED).rows == [(None, None, b"1", b"1")]
    finally:
        with demo.direct() as server, server.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS legacy.left_over")
