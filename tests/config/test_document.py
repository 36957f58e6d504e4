"""Texts to values: YAML 1.2's scalars, JSON, lines, digests, addresses, durations and sizes."""

from __future__ import annotations

import doctest
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import units
from config.address import Address, parse_address
from config.document import ConfigError, dotted, from_value, parse
from config.units import parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("12:30:45", "12:30:45"),
        ("2012-01-01", "2012-01-01"),
        ("1_000", "1_000"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("127.0.0.1:3306", "127.0.0.1:3306"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    got = parse(f"a: {text}\n").value
    assert got == {"a": value}
    assert isinstance(got, dict)
    assert type(got["a"]) is type(value)


def test_a_byte_order_mark_is_fine_and_other_encodings_are_not() -> None:
    assert parse(b"\xef\xbb\xbfa: 1").value == {"a": 1}
    with pytest.raises(ConfigError, match="byte 3: the text is not UTF-8"):
        parse(b"a: \xff")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\nc: 3", "line 3, column 2"),
        ("a: *nowhere", "line 1, column 4: found undefined alias"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("a: \x07", "control characters are not allowed"),
        ("? [a]\n: 5", "has a key that is not a plain text"),
        ("[" * 500, "did not find expected node"),
        ("[" * 1_000_000, "too large or nested too deeply"),
        ('{"a":' * 1_000_000, "too large or nested too deeply"),
        ("- " * 1_000_000, "too large or nested too deeply"),
        ("[" * 4000 + "]" * 4000, "is nested"),
        ("- " * 1900, "is nested"),
        ("\n".join(" " * n + "a:" for n in range(5000)), "is nested"),
        ("#" * (16 << 20) + "#", "too large or nested too deeply"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_no_document(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text).raise_problems()


def test_tags_make_no_objects() -> None:
    assert parse("a: !!python/object/apply:os.system [x]").value == {"a": ["x"]}


def test_places() -> None:
    document = parse("a:\n  - b: 1\n    c:\n      d: 2\n")
    assert document.place(("a", 0, "c", "d")) == "a[0].c.d (line 4)"
    assert document.place(("a", 0, "missing")) == "a[0].missing (line 2)"
    assert document.place(()) == "document (line 1)"
    assert dotted(("a", 0, 1, "b")) == "a[0][1].b"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.sampled_from([None, 1, "\t"]))
def test_json_is_read_as_json_and_its_lines_are_found(value: dict[str, Any], indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    document = parse(text)
    assert document.value == value
    assert document.digest == from_value(value).digest
    for key in value:
        line = document.line_of((key,))
        assert line is None or json.dumps(key) in text.split("\n")[line - 1]


@pytest.mark.parametrize(
    ("text", "address", "written"),
    [
        ("db1", Address("db1", 3306), "db1:3306"),
        ("db1.example.com:33", Address("db1.example.com", 33), "db1.example.com:33"),
        ("10.0.0.1:65535", Address("10.0.0.1", 65535), "10.0.0.1:65535"),
        ("[::1]", Address("::1", 3306), "[::1]:3306"),
        ("[0:0::1]:7", Address("::1", 7), "[::1]:7"),
        ("unix:/run/a b.sock", Address(path="/run/a b.sock"), "unix:/run/a b.sock"),
    ],
)
def test_addresses(text: str, address: Address, written: str) -> None:
    assert parse_address(text) == address
    assert str(address) == written
    assert parse_address(written) == address
    assert address.is_unix == written.startswith("unix:")


@pytest.mark.parametrize(
    "text",
    ["", ":", ":3306", "a:", "a:0", "a:65536", "a:-1", "a:x", "a:1:2", "::1", "[::1", "[::1]x", "[x]:1"],
)
def test_bad_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="bad address"):
        parse_address(text)


@pytest.mark.parametrize(
    "text", ["-a:1", "a b:1", "a/b:1", "unix:", "unix:a", "unix:/" + "x" * 107, "unix:/a\0b", "a:１"]
)
def test_more_bad_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="bad address"):
        parse_address(text)


def test_a_listener_may_take_a_free_port_but_must_name_one() -> None:
    assert parse_address("127.0.0.1:0", None, any_port=True).port == 0
    with pytest.raises(ValueError, match="the port is missing"):
        parse_address("127.0.0.1", None, any_port=True)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0),
        (2, 2),
        (1.5, 1.5),
        ("500ms", 0.5),
        ("30s", 30),
        ("1h30m", 5400),
        ("1.5 d", 129600),
    ],
)
def test_durations(value: object, seconds: float) -> None:
    assert parse_duration(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", ["", "5", "s", "5x", "-5s", -1, True, None, [], float("nan"), float("inf"), "5s!", "250us"]
)
def test_bad_durations(value: object) -> None:
    with pytest.raises(ValueError, match="must be a number of seconds"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (0, 0),
        (512, 512),
        ("512", 512),
        ("1K", 1024),
        ("64MB", 64 << 20),
        ("1 GiB", 1 << 30),
        ("2tb", 2 << 40),
    ],
)
def test_sizes(value: object, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize("value", ["", "MB", "1.5MB", "-1", -1, True, None, 1.0, "1XB", "1MBs"])
def test_bad_sizes(value: object) -> None:
    with pytest.raises(ValueError, match="must be a number of bytes"):
        parse_size(value)


def test_the_examples_run() -> None:
    assert doctest.testmod(units).failed == 0
