"""The cases of a seed through the binary protocol: prepared, with literals as parameters, compared by bits."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from tests.differential.answers import Answer
from tests.differential.anyschema import judge
from tests.differential.anyschema.judge import Difference
from tests.differential.anyschema.loop import Case, Finding, Loop
from tests.differential.anyschema.steps import ID, Step
from tests.differential.prepared import Parameter, Prepared, run, with_parameters

_SYNTAX, _AUTOCOMMIT = 1064, 2
_WHOLE = {1, 2, 3, 8, 9}
_AS_TEXT = ("set", "transaction")


class BinaryLoop(Loop):
    """Runs the cases of a seed as prepared statements."""

    _last: tuple[Prepared, Prepared | None]

    def got(self, case: Case, step: Step) -> Answer:
        if step.kind in _AS_TEXT:
            return super().got(case, step)
        sql, parameters = self._prepared(case, step)
        found = run(self.arena.proxy, sql, parameters)
        error = found.answer.error
        if error is not None and error.code == _SYNTAX and parameters:
            plain = run(self.arena.plain, sql, parameters).answer.error
            if plain is not None and plain.code == _SYNTAX:  # where no parameter may stand
                self._without = True
                found = run(self.arena.proxy, step.sql)
        self._last = found, None
        return found.answer

    def expected(self, case: Case, step: Step, got: Answer) -> Answer:
        if step.kind in _AS_TEXT:
            return super().expected(case, step, got)
        sql, parameters = self._prepared(case, step)
        if step.twin is not None:
            sql, parameters = step.twin.replace(ID, str(got.insert_id)), ()
        found = run(self.arena.plain, sql, parameters)
        self._last = self._last[0], found
        return found.answer

    def asked(self, case: Case, step: Step) -> str:
        sql, parameters = self._prepared(case, step)
        return f"{sql}  {[(one.type, one.data) for one in parameters]}" if parameters else sql

    def judge(self, step: Step, expected: Answer, got: Answer) -> list[Difference]:
        found = super().judge(step, expected, got) + self._more(step)
        return [replace(one, soft=one.soft or _overlooked(one)) for one in found]

    def _more(self, step: Step) -> list[Difference]:
        """What only the binary protocol shows."""
        if step.kind in _AS_TEXT:
            return []
        got, expected = self._last
        if expected is None or expected.answer.error is not None or got.answer.error:
            return []
        found = []
        if got.parameters != expected.parameters:
            found.append(Difference("parameters", f"expected {expected.parameters}, got {got.parameters}"))
        if expected.answer.columns:
            found += [
                replace(one, aspect=f"promised {one.aspect}")
                for one in judge.columns(expected.promised, got.promised)
            ]
        if got.status != expected.status and expected.status & _AUTOCOMMIT:
            # without autocommit a server begins a transaction even for a write that can match nothing
            found.append(Difference("status", f"expected {expected.status}, got {got.status}"))
        return found

    def check(self, case: Case, *, count: bool = False) -> Finding | None:
        self._without = False
        return super().check(case, count=count)

    def _prepared(self, case: Case, step: Step) -> tuple[str, tuple[Parameter, ...]]:
        rng = random.Random(f"parameters of {self.seed}:{case.number}")
        share = rng.choice((0.0, 0.5, 1.0, 1.0))
        if step.twin is not None or self._without or not share:
            return step.sql, ()
        before = case.steps[: case.steps.index(step)]
        modes = [one.sql for one in before if re.match("SET sql_mode", one.sql)]
        return with_parameters(step.sql, rng, share, backslashes=not any("BACKSLASH" in one for one in modes))


def _overlooked(one: Difference) -> bool:
    """A parameter that is shown has the type of its value's literal (docs/sql.md), in a CTE, too; which of the
    types of text and bytes an expression has follows from the largest length of its parameters.
    """
    types = re.search(r"expected (\d+), got (\d+)$", one.detail)
    both = (
        set(map(int, types.groups())) if types is not None and one.aspect.endswith("column type") else set()
    )
    return "of '?'" in one.detail or bool(both and (min(both) >= 249 or both <= _WHOLE))
