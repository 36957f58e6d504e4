"""A limit that is set to nonsense is refused at its place: every number of the settings, by their models, so
that a new one is tried, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import pytest

from config.document import ConfigError, parse
from config.load import load_schema, load_settings
from tests.config.test_docs import ROWS, document_with, settings_of

NONSENSE = (
    *("-1", "-0.5", "-1s", "-1MB", ".nan", ".inf", "-.inf", "1.0e+400", "1e400", "true", "false"),
    *("lots", '""', '" "', '"10 GB "', "5 parsecs", "1_000", '"1,000"', '"٣"', '"5"', '"5\\n"', "1e3s"),
    *("[]", "[5]", "{}", "{limit: 5}", "2026-01-01"),
    *("1" + 30 * "0", '"' + 5000 * "9" + '"', '"' + 30 * "9" + 'd"', '"' + 30 * "9" + 'T"'),
)
"""As YAML."""


def is_number(annotation: Any) -> bool:
    """Whether a setting is one number, which may be written with a unit."""
    found = set()
    for one in get_args(annotation) or (annotation,):
        found.add(getattr(one, "__origin__", one))
    return found - {NoneType} in ({int}, {float})


NUMBERS = [
    name
    for name, info in settings_of()
    if is_number(info.annotation) and name != "layouts.NAME.epoch_ms"  # which is no limit
]
MEANING = {row[0]: (row[1], row[2], row[3]) for row in ROWS}


def place_of(name: str) -> str:
    """Where a problem of the setting is."""
    return name.replace("[]", "[0]").replace("HOST", "HOST:3306")


def with_value(name: str, written: str) -> dict[str, Any]:
    document, holder, key = document_with(name)
    value = parse(f"x: {written}").value
    assert isinstance(value, dict)
    holder[key] = value["x"]
    return document


def refused(name: str, written: str) -> str:
    """The problem, at its place; "" when there is none."""
    try:
        load_settings(with_value(name, written), base=Path("/base"))
    except ConfigError as error:
        (problem,) = error.problems
        assert problem.place == place_of(name), problem
        return problem.message
    return ""


def test_there_are_numbers() -> None:
    assert {"limits.max_connections", "timeouts.login", "backends.user_share", "tracing.queue"} <= set(
        NUMBERS
    )
    assert len(NUMBERS) > 40


@pytest.mark.parametrize("name", NUMBERS)
def test_nonsense(name: str) -> None:
    form = MEANING[name][0]
    for written in NONSENSE:
        if written == '"5"' and form == "size":
            continue
        message = refused(name, written)
        assert message, (name, written)
        assert re.search(r"must|at most", message), (name, written, message)
        assert len(message) < 150
    if "null" not in form and MEANING[name][1] != "`null`":
        assert refused(name, "null")


@pytest.mark.parametrize("name", NUMBERS)
def test_zero_is_refused_unless_it_is_documented(name: str) -> None:
    form, _, meaning = MEANING[name]
    documented = re.search(r"\b0`?:", meaning) is not None or form == "number, 0 to 1"
    assert documented is not bool(refused(name, "0")), MEANING[name]


@pytest.mark.parametrize("field", ["ttl", "lease"])
@pytest.mark.parametrize("written", [*NONSENSE, "0"])
def test_nonsense_of_a_tables_cache(field: str, written: str) -> None:
    table = f"{{kind: object, keyspace: main, type: 1, cache: {{memcached: 'c:11211', {field}: {written}}}}}"
    text = f"databases: {{shop: {{tables: {{pins: {table}}}}}}}"
    with pytest.raises(ConfigError) as caught:
        load_schema(text.encode())
    (problem,) = caught.value.problems
    assert problem.place.startswith(f"databases.shop.tables.pins.cache.{field}"), problem
