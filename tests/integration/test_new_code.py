"""Code that is made on a server just before it is used: what it sets is the session's on all hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import MakeOwn
from tests.integration.second_host import Sides, second_host
from tests.support.demo import Demo
from tests.support.servers import LocalServer

MADE = (
    "CREATE PROCEDURE crm2.new_p() SET @new_v = 'C', sort_buffer_size = 500000",
    "CREATE FUNCTION crm2.new_f(x INT) RETURNS INT NO SQL BEGIN SET @new_v = x; RETURN x; END",
)
USES = ("CALL crm2.new_p()", "SELECT crm2.new_f(7)", "DO crm2.new_f(8)", "SET @b = crm2.new_f(9)")
SEEN = "SELECT a, @new_v FROM crm.kept"


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, own: MakeOwn, tmp_path_factory: Any) -> Iterator[Sides]:
    with second_host(demo, plain, own, tmp_path_factory.mktemp("schema")) as sides:
        yield sides


@pytest.mark.parametrize("use", USES)
def test_its_variables_are_seen_on_another_host(
    sides: Sides, demo: Demo, plain: LocalServer, use: str
) -> None:
    with demo.direct(0) as direct, plain.connect() as server:
        for connection in (direct, server):
            for sql in MADE:
                assert answer(connection, sql) == ()
    ours, theirs = sides.sessions(database="crm")
    with ours, theirs:
        for sql in (use, SEEN, use, SEEN):
            assert answer(ours, sql) == answer(theirs, sql), sql
