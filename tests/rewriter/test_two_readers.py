"""The two readers agree: on tables, on the ends of clauses, on comparisons that route, on the routes.

Where they differ a plan is wider than it need be; what only one of them reads wrongly is found here.
"""

from __future__ import annotations

import contextlib

import pymysql
import pytest

from config.flavour import MARIADB, MYSQL
from rewriter.env import Env
from rewriter.tree import lexemes
from tests.rewriter import words
from tests.rewriter.corpus import differs, mutants, read_twice, statements
from tests.rewriter.support import rewriter
from tests.support.demo import Demo

#: Words that no grammar knows: one stands for all that neither reader has a meaning for.
SOME = 40


def compared(corpus: list[tuple[str, Env]]) -> tuple[list[str], int, int]:
    """The statements that are read otherwise, how many the first reader reads, and how many of these the
    second does not.
    """
    wrong, known, unread = [], 0, 0
    for sql, env in corpus:
        blocks, tree = read_twice(sql, env)
        known += blocks is not None
        unread += blocks is not None and tree is None
        if blocks is not None and tree is not None and differs(blocks, tree):
            wrong.append(sql)
    return wrong, known, unread


def test_statements_of_all_tests() -> None:
    wrong, known, unread = compared(list(statements()))
    assert wrong == []
    assert known > 900
    assert unread / known < 0.05  # half of them are no statements


def test_plans_of_all_tests() -> None:
    """No comparison, and no route, is another one to the second reader."""
    told: list[tuple[str, tuple[str, ...]]] = []
    planner = rewriter()
    planner._differ = lambda digest, differences: told.append((digest, differences))
    for sql, env in statements():
        planner.plan(sql.encode("utf-8", "surrogateescape"), env)
    assert told == []


@pytest.mark.parametrize("mariadb", [True, False], ids=["MariaDB", "MySQL"])
def test_words_as_names(mariadb: bool) -> None:
    """Where a server takes a keyword for a name, both readers do. (words.py has asked the servers.)"""
    env = Env(database="demo", flavour=MARIADB if mariadb else MYSQL)
    special = {*lexemes._KEYWORDS, "ANY", "SOME", "UNKNOWN", "SOUNDS", "SHARE", "NOWAIT", "SKIP", "OF", "ROW"}
    some = sorted({word for word, _ in words.cases(mariadb)} - special)
    chosen = special | set(some[:: len(some) // SOME])
    texts = [
        place.format(w=word)
        for word, place in words.cases(mariadb)
        if word in chosen and place.startswith(("SELECT", "WITH", "UPDATE", "DELETE", "("))
    ]
    wrong, known, unread = compared([(text, env) for text in texts])
    assert wrong == []
    assert known > 2000
    assert unread / known < 0.01


def test_other_operators() -> None:
    """Whatever binds how: the clauses end where they end."""
    wrong, known, unread = compared(list(mutants(1, 3000, wild=False)))
    assert wrong == []
    assert unread / known < 0.04


#: No syntax; and no variable of that name after INTO or of the system, or no date in a CAST, which are told
#: before what is wrong behind them.
_NO_STATEMENT = (1064, 1327, 1193, 1584)


@pytest.mark.slow
def test_servers_refuse_what_is_read_in_two_ways(demo: Demo) -> None:
    """Statements with anything changed: where the readers differ, it is no statement to the server."""
    master = demo.masters[0]
    accepted = []
    with contextlib.closing(
        pymysql.connect(
            unix_socket=master.socket, user=master.user, password=master.password, database="db00000"
        )
    ) as connection:
        cursor = connection.cursor()
        version = connection.get_server_info().lower()
        for seed in (1, 2):
            for sql in _differing(seed, mariadb="mariadb" in version):
                try:
                    cursor.execute("PREPARE s FROM %s", (sql,))
                    accepted.append(sql)
                except pymysql.MySQLError as error:
                    if error.args[0] not in _NO_STATEMENT:
                        accepted.append(f"{error.args}: {sql}")
    assert accepted == []


def _differing(seed: int, *, mariadb: bool) -> list[str]:
    found = [
        (sql, Env(database="demo", flavour=MARIADB if mariadb else MYSQL))
        for sql, env in mutants(seed, 8000, wild=True)
        if not (env.ansi_quotes or env.pipes_as_concat or env.high_not_precedence or env.no_backslash_escapes)
    ]
    return compared(found)[0]
