"""Sequences of statements in several sessions through the proxy and on one server: same answers, same state.

A fixed seed and some 300 statements a server; `make fuzz WHAT=sessions` goes on.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.sessions.arena import comparing
from tests.fuzz.sessions.mangle import Mangler
from tests.fuzz.sessions.runner import Cases
from tests.support.demo import Demo
from tests.support.servers import LocalServer

SEED = 8
STATEMENTS = 300
WITHOUT = ()


def test_answers_and_state_are_those_of_one_server(demo: Demo, plain: LocalServer, flavour: str) -> None:
    mariadb = flavour == "mariadb"
    cases = Cases(SEED, mariadb=mariadb, without=WITHOUT)
    with comparing(demo, plain, mariadb=mariadb) as runner:
        number = 0
        while runner.tally.statements < STATEMENTS:
            case = cases.case(number)
            difference = runner.run(case)
            if difference is not None:
                runner.restart()
                raise AssertionError(runner.shrink(case, difference).describe(SEED))
            number += 1
        assert runner.tally.refused.total() < 0.15 * runner.tally.statements, runner.tally.refused
        assert runner.tally.outcomes["err"] < 0.25 * runner.tally.statements, runner.tally.errors


def test_a_case_depends_on_its_seed_and_number_alone() -> None:
    one, other = Cases(5, mariadb=True), Cases(5, mariadb=True)
    one.case(3)
    assert one.case(8) == other.case(8)
    assert one.case(8) != one.case(9)


def test_a_mangled_statement_has_its_plain_form() -> None:
    text = "SELECT F:GET_LOCK ( 'a' , 0 ) FROM T:legacy.f0 WHERE id = 1"
    for seed in range(50):
        mangled = Mangler(Random(seed), mariadb=True).statement("rule", text, "legacy", much=1.0)
        assert mangled.plain().text == "SELECT GET_LOCK ( 'a' , 0 ) FROM f0 WHERE id = 1"
        assert all(one.plain() == mangled.plain() for one in mangled.simpler())
