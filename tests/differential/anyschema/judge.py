"""What differs between two answers, and what only looks so."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.differential.answers import Answer, ColumnInfo, RawRow
from tests.differential.anyschema.tree import Form

UNSIGNED, ENUM, SET = 32, 256, 2048
FLOATS = (4, 5)  # FLOAT and DOUBLE on the wire
BY_ROWS = frozenset(
    (
        1690,
        1292,
        1525,
        1365,
        3141,
        3140,
        3143,
        1242,
        4038,
        3146,
        3903,
        1441,
        1264,
        1366,
        1406,
        1411,
        1267,
        1270,
        1271,
        4037,
        1139,
        3685,
        3690,
        3692,
        3144,
        3150,
        3819,
    )
)
"""Errors that a server meets or not according to which rows and conditions it looks at first."""


@dataclass(frozen=True)
class Difference:
    """One difference. `soft`: it may be only another way to the same answer, and is counted."""

    aspect: str
    detail: str
    soft: bool = False

    def __str__(self) -> str:
        return f"{self.aspect}: {self.detail}"


def judge(form: Form, expected: Answer, got: Answer) -> list[Difference]:
    """How `got` differs from `expected`."""
    if expected.error is not None or got.error is not None:
        return _errors(expected, got)
    if bool(expected.columns) != bool(got.columns):
        return [Difference("kind of answer", f"columns {len(expected.columns)}, got {len(got.columns)}")]
    found: list[Difference] = []
    if not expected.columns:
        found += _outcome(expected, got)
    else:
        found += columns(expected.columns, got.columns, len(expected.rows))
        if len(expected.columns) == len(got.columns):
            found += rows(form, expected, got)
    if bool(expected.warnings) != bool(got.warnings):
        found.append(Difference("warnings", f"expected {expected.warnings}, got {got.warnings}", soft=True))
    return found


def _errors(expected: Answer, got: Answer) -> list[Difference]:
    one = expected.error.code if expected.error else 0
    two = got.error.code if got.error else 0
    if one == two:
        return []
    detail = f"expected {expected.error or 'none'}; got {got.error or 'none'}"
    both = bool(one and two and 1064 not in (one, two))  # which of two mistakes is met first
    return [Difference(f"error {one} {two}", detail, soft=both or {one, two} <= BY_ROWS | {0})]


def _outcome(expected: Answer, got: Answer) -> list[Difference]:
    found = []
    if expected.affected != got.affected:
        found.append(Difference("affected rows", f"expected {expected.affected}, got {got.affected}"))
    if expected.insert_id != got.insert_id:
        found.append(Difference("insert id", f"expected {expected.insert_id}, got {got.insert_id}"))
    one, two = (one.info.partition(b"Warnings")[0].strip() for one in (expected, got))
    if expected.info and one != two:
        found.append(Difference("info", f"expected {expected.info!r}, got {got.info!r}"))
    return found


def columns(expected: Sequence[ColumnInfo], got: Sequence[ColumnInfo], counted: int = 1) -> list[Difference]:
    """Names, types, flags and the rest of the definitions. `counted`: the rows there are."""
    names = [one.name.decode() for one in expected], [one.name.decode() for one in got]
    if names[0] != names[1]:
        return [Difference("column names", f"expected {names[0]}, got {names[1]}")]
    found = []
    for one, two in zip(expected, got, strict=True):
        for aspect, left, right in (
            ("type", one.type, two.type),
            ("flags", one.flags & (UNSIGNED | ENUM | SET), two.flags & (UNSIGNED | ENUM | SET)),
            ("character set", one.charset, two.charset),
            ("decimals", one.decimals, two.decimals),
        ):
            if left != right:
                detail = f"of {one.name.decode()!r}: expected {left}, got {right}"
                # whether a text column has 0 or 39 decimals depends on the server's using a temporary table
                soft = (aspect == "decimals" and one.type >= 249) or (not counted and aspect == "type")
                soft = soft or one.name.startswith(b"@")  # a user variable has the type that it had first
                # so do the types of a truth value, on MySQL, and of a BLOB
                soft = (
                    soft
                    or {one.type, two.type} == {3, 8}
                    or any(
                        {one.type, two.type} <= same for same in ({249, 250, 251, 252}, {253, 254, 250, 252})
                    )
                )
                found.append(Difference(f"column {aspect}", detail, soft))
    return found


def rows(form: Form, expected: Answer, got: Answer) -> list[Difference]:
    if len(expected.rows) != len(got.rows):
        one, two = Counter(expected.rows), Counter(got.rows)
        missing, extra = list((one - two).elements())[:3], list((two - one).elements())[:3]
        return [
            Difference(
                "number of rows",
                f"expected {len(expected.rows)}, got {len(got.rows)}; missing {missing}, extra {extra}",
            )
        ]
    if form.counted or expected.rows == got.rows:
        return []
    floats = [index for index, one in enumerate(expected.columns) if one.type in FLOATS]
    wanted, found = (_plain(answer.rows, form, floats) for answer in (expected, got))
    if Counter(wanted) != Counter(found):
        one, two = Counter(wanted), Counter(found)
        detail = f"missing {list((one - two).elements())[:3]}, extra {list((two - one).elements())[:3]}"
        return [Difference("rows", detail)]
    if form.order is not None:
        chosen = form.order or tuple(range(len(expected.columns)))
        for place, (left, right) in enumerate(zip(wanted, found, strict=True)):
            if any(left[index] != right[index] for index in chosen):
                return [Difference("order of rows", f"row {place}: expected {left}, got {right}")]
    return []


def _plain(found: Sequence[RawRow], form: Form, floats: Sequence[int]) -> list[RawRow]:
    """Rows with what is not certain made alike."""
    if not floats and not form.loose:
        return list(found)
    made = []
    for row in found:
        values = list(row)
        for index in floats:
            values[index] = _rounded(values[index])
        made.append(tuple(_folded(one) for one in values) if form.loose else tuple(values))
    return made


def _rounded(value: bytes | None) -> bytes | None:
    if value is None:
        return None
    try:
        return b"%.7g" % (float(value) + 0.0)
    except ValueError:
        return value


def _folded(value: bytes | None) -> bytes | None:
    """A text without what collations overlook."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.lower().rstrip(b" ")
    text = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(
        one
        for one in text
        if not unicodedata.combining(one) and one not in "\0\t\n\ufffd" and ord(one) < 0x10000
    )
    return letters.replace("ss", "s").strip(" ").encode()
