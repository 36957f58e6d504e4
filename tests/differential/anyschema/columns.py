"""Types of columns, and values for them that make answers go wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from tests.differential.catalog import Value

WORDS = ("apple", "Apple", "ÄPFEL", "apfel", "apple ", "", " ", "zebra", "Zoë", "zoe", "straße", "STRASSE", "a", "A",
         "b", "a\t", "naïve", "%", "_x", "it's", 'say "hi"', "back\\slash", "10", "9", "0", "1e1", "0x1",
         "2012-02-23", "10:11:12", "null", "\n", "a\0b")  # fmt: skip
ASCII = tuple(one for one in WORDS if one.isascii())
LATIN = tuple(one for one in WORDS if all(ord(letter) < 256 for letter in one))
WIDE = (*WORDS, "x😀", "日本", "ﬀ", "\u00e9", "e\u0301")
DOCUMENTS = ("{}", "[]", "null", "1", '"a"', '{"a": 1, "b": "x"}', '{"a": 2, "b": "X", "c": [1, 2, {"d": null}]}',
             '{"a": "1", "b": null}', '{"b": "ä", "a": 1.5}', "[1, 2, 3]", '{"a": true}',
             '{"a": 12345678901234567890}')  # fmt: skip

INTEGERS = {
    "TINYINT": (-128, 127), "SMALLINT": (-32768, 32767), "MEDIUMINT": (-8388608, 8388607),
    "INT": (-2147483648, 2147483647), "BIGINT": (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip


@dataclass(frozen=True)
class Type:
    """A column's type: its SQL, its family (a letter of terms.py) and the values put there.

    n number, f floating, t text, x binary, d date or time, j JSON, e ENUM or SET, b BIT.
    """

    sql: str
    family: str
    values: Sequence[Value]
    collation: str = ""


def integer(rng: random.Random) -> Type:
    name = rng.choice(list(INTEGERS))
    low, high = INTEGERS[name]
    if rng.random() < 0.35:
        low, high = 0, high - low
        name += " UNSIGNED"
        if rng.random() < 0.1:
            name += " ZEROFILL"
    return Type(name, "n", (low, high, 0, 1, 1, 2, 3, 5, 7, 10, 100, -1 if low else 4, 9))


def decimal(rng: random.Random) -> Type:
    digits = rng.choice((4, 10, 12, 20, 38, 65))
    scale = rng.choice([one for one in (0, 1, 2, 6, 10, 30) if one <= digits])
    whole = digits - scale
    point = "." + "0" * (scale - 1) if scale else ""
    values = [Decimal("0"), Decimal(f"{point}1" if scale else "1")]
    if whole:
        values += [
            Decimal("1"),
            Decimal("9" * min(whole, 9) + ("." + "9" * min(scale, 9) if scale else "")),
            Decimal("2"),
        ]
    if scale:
        values.append(Decimal("0.5"))
    name = f"DECIMAL({digits},{scale})"
    if rng.random() < 0.8:
        return Type(name, "n", [*values, *(-one for one in values[1:])])
    return Type(f"{name} UNSIGNED", "n", values)


def floating(rng: random.Random) -> Type:
    name = rng.choice(("DOUBLE", "FLOAT", "DOUBLE", "REAL"))
    return Type(name, "f", (0.0, 0.25, -0.5, 1.5, 3.0, 1024.0, 1000000.0, -2.0, 7.75))


def rounded(rng: random.Random) -> Type:
    """A type whose text has fewer digits than its values, which differ in just those."""
    name = rng.choice(
        (
            "FLOAT",
            "FLOAT",
            "FLOAT(9,2)",
            "FLOAT UNSIGNED",
            "FLOAT ZEROFILL",
            "DOUBLE(12,3)",
            "DOUBLE(9,2) ZEROFILL",
        )
    )
    numbers = [
        0.1,
        0.10000001,
        1234567.0,
        1234568.0,
        0.3333333,
        16777216.0,
        0.0,
        2.5,
        1e-3,
        123456.7,
    ]
    if not name.endswith(("UNSIGNED", "ZEROFILL")):
        numbers += [-0.1, -1234567.0]
    if "(9,2)" not in name and "DOUBLE" not in name:
        numbers += [3.4e38, 1.17549435e-38, 1e10]
    if "(9,2)" in name:
        numbers = [one for one in numbers if abs(one) < 1e6]
    return Type(name, "f", numbers)


def text(rng: random.Random, *, mysql: bool) -> Type:
    name = rng.choice(
        ("VARCHAR(40)", "VARCHAR(40)", "CHAR(12)", "TEXT", "LONGTEXT", "TINYTEXT", "VARCHAR(255)")
    )
    choices: list[tuple[str, Sequence[str]]] = [
        ("", WIDE), ("", WIDE), ("utf8mb4_bin", WIDE), ("utf8mb4_unicode_ci", WIDE),
        ("latin1_swedish_ci", LATIN), ("latin1_bin", LATIN), ("ascii_general_ci", ASCII),
        ("utf8mb4_general_ci", WIDE), ("utf8mb4_unicode_520_ci", WIDE),
    ]  # fmt: skip
    if mysql:
        choices += [("utf8mb4_0900_ai_ci", WIDE), ("utf8mb4_0900_as_cs", WIDE), ("utf8mb4_0900_bin", WIDE),
                    ("utf8mb4_de_pb_0900_ai_ci", WIDE)]  # fmt: skip
    else:
        choices += [("utf8mb4_nopad_bin", WIDE), ("utf8mb4_unicode_nopad_ci", WIDE),
                    ("utf8mb4_general_nopad_ci", WIDE)]  # fmt: skip
    collation, words = rng.choice(choices)
    if name == "CHAR(12)":
        words = [one.rstrip(" ") for one in words]
    charset = collation.partition("_")[0]
    sql = f"{name} CHARACTER SET {charset} COLLATE {collation}" if collation else name
    return Type(sql, "t", [one for one in words if len(one) <= 12], collation)


def binary(rng: random.Random) -> Type:
    name = rng.choice(("VARBINARY(16)", "BINARY(4)", "BLOB", "VARBINARY(255)", "TINYBLOB"))
    values = (b"", b"\0", b"a", b"A", b"\xff\xfe", b"a ", b"abc\0", b"'\"", b"\\", b"10")
    return Type(name, "x", values)


def moment(rng: random.Random) -> Type:
    digits = rng.choice(("", "", "(3)", "(6)", "(1)"))
    fraction = {"": "", "(3)": ".125", "(6)": ".000001", "(1)": ".5"}[digits]
    name = rng.choice(("DATE", "DATETIME", "TIME", "TIMESTAMP", "YEAR"))
    days = ("2012-02-23", "2012-02-29", "1999-12-31", "2012-02-23", "2024-01-01", "2012-12-31")
    match name:
        case "DATE":
            return Type("DATE", "d", (*days, "9999-12-31", "1000-01-01"))
        case "YEAR":
            return Type("YEAR", "n", (1999, 2012, 2012, 2155, 1901, 2000))
        case "TIME":
            values: list[Value] = [
                "00:00:00",
                f"12:30:00{fraction}",
                "-01:00:00",
                "838:59:59",
                "09:00:00",
                "100:00:00",
            ]
            return Type("TIME" + digits, "d", values)
    values = [f"{day} {time}" for day in days for time in ("00:00:00", f"10:11:12{fraction}", "23:59:59")]
    return Type(f"{name}{digits}", "d", values)


def choice(rng: random.Random) -> Type:
    if rng.random() < 0.5:
        return Type(
            "ENUM('new','paid','Sent','Äther','1')", "e", ("new", "paid", "Sent", "Äther", "1", "new")
        )
    return Type("SET('a','b','C','d e')", "e", ("", "a", "a,b", "C", "a,C", "b", "d e", "a,b,C,d e"))


def bits(rng: random.Random) -> Type:
    width = rng.choice((1, 5, 9, 64))
    return Type(f"BIT({width})", "b", (0, 1, (1 << width) - 1, 1 << (width - 1)))


def document(_: random.Random) -> Type:
    return Type("JSON", "j", DOCUMENTS)


def some_type(rng: random.Random, *, mysql: bool) -> Type:
    """Any type."""
    form = rng.random()
    if form < 0.22:
        return integer(rng)
    if form < 0.32:
        return decimal(rng)
    if form < 0.38:
        return floating(rng)
    if form < 0.62:
        return text(rng, mysql=mysql)
    if form < 0.69:
        return binary(rng)
    if form < 0.84:
        return moment(rng)
    if form < 0.91:
        return choice(rng)
    return bits(rng) if form < 0.94 else document(rng)


def json_object(rng: random.Random) -> str:
    """A document as an object table holds."""
    made = {
        "name": rng.choice(WIDE), "n": rng.choice((0, 1, 2, 2.5, -1, "3", None)), "tags": rng.sample(["a", "b", "c"], 2),
        "in": {"k": rng.choice(("x", "X", "y"))},
    }  # fmt: skip
    for name in list(made):
        if rng.random() < 0.2:
            del made[name]
    return json.dumps(made, ensure_ascii=rng.random() < 0.3)
