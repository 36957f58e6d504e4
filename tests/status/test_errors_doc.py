"""docs/errors.md lists every error of the registry, and only those."""

from __future__ import annotations

import functools
import re
import string

import pytest

from proxy.errors import REGISTRY, ErrorKind, ProxyError

from .errors_doc import DOCUMENT, cell, document


@functools.cache
def lines() -> list[str]:
    return DOCUMENT.read_text().splitlines()


def test_the_table_is_the_registry() -> None:
    current = DOCUMENT.read_text()
    assert current == document(current), "run: python -m tests.status.errors_doc"


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=REGISTRY)
def test_every_error_is_documented(kind: ErrorKind) -> None:
    row = next(line for line in lines() if line.startswith(f"| `{kind.name}` |"))
    cells = [one.strip() for one in re.split(r"(?<!\\)\|", row)[1:-1]]
    assert cells == [f"`{kind.name}`", str(kind.code), kind.sqlstate, cell(kind.text), cell(kind.remedy)]


def test_errors_named_in_the_text_exist() -> None:
    text = DOCUMENT.read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| `\w+`(,| \|)", line)]
    named = {name for line in rows for name in re.findall(r"`(\w+)`", line.split(" | ")[0])}
    assert named == set(REGISTRY)


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=REGISTRY)
def test_an_error_has_all_that_the_protocol_needs(kind: ErrorKind) -> None:
    names = {
        name for text in (kind.text, kind.remedy) for _, name, _, _ in string.Formatter().parse(text) if name
    }
    error = ProxyError(kind.name, **{name: f"<{name}>" for name in names})
    assert "{" not in str(error)
    assert 1000 <= error.code < 10_000
    assert not 2000 <= error.code < 3000, "the C clients' own: libmariadb takes the packet for a broken one"
    assert re.fullmatch(r"[0-9A-Z]{5}", error.sqlstate)
    assert kind.remedy == "" or kind.remedy.startswith("{") or kind.remedy.endswith(".")


#: After these the connection is closed; or what a session had on its server's is gone, of which drivers that
#: make a new one lose no more.
ENDING = {
    "too_many_connections", "handshake_error", "shutting_down", "client_too_old", "packet_too_large",
    "uncompress_error", "packet_memory", "too_many_logins", "transaction_cut",
}  # fmt: skip


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=REGISTRY)
def test_only_what_ends_the_connection_looks_like_it(kind: ErrorKind) -> None:
    """By SQLSTATE 08… pools and drivers throw a connection away. (1047 is so on every server.)"""
    assert kind.sqlstate.startswith("08") == (kind.name in ENDING | {"unknown_command"})
