"""Texts that hide a table of another database from the proxy, but not from a server: none gives its row away.

The user may read one database only. What each text would do is written for a server; if the proxy read it in
another way, it would let it pass. It must refuse, or answer without the secret.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import STMT_PREPARE, Raw
from tests.support.demo import Demo

SECRET = b"stolen"
FROM = b"s FROM canary.secret"
FEW = {"name": "few", "password": "few", "role": "read", "databases": ["legacy"]}

#: ~ stands for what is hidden.
TEXTS = [
    b"SELECT 1e5~", b"SELECT 1.5~", b"SELECT 1.~", b"SELECT .5~", b"SELECT 1e+5~", b"SELECT 1.5e5~",
    b"SELECT 0x1g~", b"SELECT 1.e(SELECT s~)", b"SELECT 1.5e(SELECT s~)", b"SELECT s, 1.e.x~",
    b"SELECT \\N~", b"SELECT .1e1~", rb"SELECT @'a\'', s~ -- '", rb"SELECT @'a\'', s~ # '",
    b"SELECT @'a''', s~ -- ' ", b"SELECT @`a``', s~ -- '`", rb'SELECT @"a\"", s~ -- "',
    rb"SELECT 1 AS `a\`, s~ -- `", rb"SELECT 'a\', s~ -- '", rb"SELECT 'a\'', s~ -- '",
    rb'SELECT "a\", s~ -- "', rb'SELECT "\"", s~ -- "', b'SELECT "a""", s~ -- "',
    b"SELECT N'a\\'', s~ -- '", b"SELECT 1 /*!, s~ */", b"SELECT 1 /*!50701, s~ */",
    b"SELECT 1 /*M!50701, s~ */", b"SELECT 1 /*!080000, s~*/", b"SELECT 1 /*M!, s~ */",
    b"SELECT 1 /*M!50700 /*M!99999 */, s~", b"SELECT 1 /*!99999 /*/* */ */, s~ -- */",
    b"SELECT 1 /* /*! */, s~ -- */ */", b"SELECT 1 /*!99999 ' */, s~ -- '", b"SELECT 1 /*! '*/' */, s~",
    b"SELECT 1 /*/*/, s~ -- */", b"SELECT 1 /*!50000 /*!99999 */ */, s~", b"SELECT 1--/*!*/1, s~",
    b"SELECT 1 /*!--*/ 1\n, s~", b"SELECT 1 /*! -- */\n, s~ */", b"SELECT 1 /*! # */\n, s~ */",
    b"SELECT 1 /*!999999 -- */, s~", b"SELECT 1 /*!0500001, s~ */", b"SELECT 1 /*!100000 , s~ */",
    b"SELECT /*+ QB_NAME(`a*/, s~ -- `) */ 1", b"SELECT /*+ x '*/ s~ /*' */", b"SELECT /*+ /*! */ s~ /* */",
    b"SELECT $a$, s~ -- $a$", b"SELECT $$', s~ -- '$$", b"SELECT $a$ ' $a$, s~ -- '",
    b"SELECT x'41'', s~ -- '", b"SELECT b'1'', s~ -- '", b"SELECT 1 -- \n, s~", b"SELECT 1 # ' \n, s~ -- '",
    b"SELECT 1 --\x0b'\n, s~ -- '", b"SELECT 1--\x01'\n, s~ -- '", b"SELECT 1--\x7f'\n, s~ -- '",
    b"SELECT 1 --\r'\n, s~ -- '", b"SELECT 1\x1a, s~", b"SELECT 1 /*\x00*/, s~", b"SELECT '\x00', s~",
    b"SELECT _binary'\\'', s~ -- '", b"SELECT {d '2020-01-01'}, s~", b"SELECT @@`version`, s~",
    b"SELECT @@'x', s~", b"SELECT @ 'a', s~", b"SELECT 1 AS '', s~", b"TABLE canary.secret",
    b"SELECT `s`FROM`canary`.`secret`", b"SELECT(s)FROM(canary.secret)", b"SELECT s FROM canary . secret",
    b"SELECT s FROM/**/canary/**/./**/secret",
]  # fmt: skip

#: # stands for a byte, which a character set may take for white space, a letter or half a character.
AROUND = [
    b"SELECT 1--#'\n, s~ -- '", rb"SELECT '#\', s~ -- '", rb"SELECT '#\'', s~ -- '",
    rb"SELECT '\#\', s~ -- '", rb"SELECT 1 AS `\#`, s~ -- `", b"SELECT 1 AS `#`, s~ -- `",
    b"SELECT 1#FROM#canary.secret", b"SELECT s#FROM#canary#.secret", rb'SELECT "#\", s~ -- "',
    b"SELECT @`#`, s~ -- `", b"SELECT 1 AS a#'', s~ -- '", b"SELECT 1#, s~",
]  # fmt: skip

CHARSETS = ("latin1", "latin2", "cp852", "hp8", "binary", "utf8mb4", "gbk", "sjis", "big5", "euckr", "ujis")
MODES = ("", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES")


@pytest.fixture(scope="module")
def only(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnProxy]:
    """A proxy with that user, and the secret behind it."""
    with demo.direct() as direct, direct.cursor() as cursor:
        cursor.execute("CREATE DATABASE canary")
        try:
            cursor.execute("CREATE TABLE canary.secret (s VARCHAR(9))")
            cursor.execute("INSERT INTO canary.secret VALUES ('stolen')")
            with OwnProxy(demo, tmp_path_factory.mktemp("narrow"), {"users": [FEW]}) as proxy:
                yield proxy
        finally:
            cursor.execute("DROP DATABASE canary")
    assert log_problems(proxy.log.read_text(errors="replace")) == []


@pytest.fixture
def narrow(only: OwnProxy, unharmed: None) -> Iterator[OwnProxy]:
    """It, with nobody connected."""
    yield only
    only.close_clients()
    only.wait_idle(clients=0)


def stolen(client: Raw, sql: bytes) -> bool:
    reply = client.ask(sql)
    return any(SECRET in (value or b"") for row in reply.rows for value in row)


def written(text: bytes) -> bytes:
    return text.replace(b"s~", FROM).replace(b"~", b"FROM canary.secret")


def log_in(proxy: OwnProxy) -> Raw:
    client = proxy.raw(login=False)
    assert client.login("few", "few", "legacy").kind == "ok"
    return client


@pytest.mark.parametrize("mode", MODES)
def test_hidden(narrow: OwnProxy, mode: str) -> None:
    client = log_in(narrow)
    for results in ("utf8mb4", "NULL", "utf16", "binary"):
        assert client.ask(f"SET character_set_results = {results}").kind == "ok"
        assert client.ask(f"SET sql_mode = '{mode}'").kind == "ok"
        found = [text for text in TEXTS if stolen(client, written(text))]
        assert not found


def test_hidden_when_prepared(narrow: OwnProxy) -> None:
    """Nor is such a text prepared: a server would tell what columns there are."""
    client = log_in(narrow)
    found = []
    for text in TEXTS:
        client.write(bytes([len(written(text)) + 1, 0, 0, 0, STMT_PREPARE]) + written(text))
        first = client.packet()
        if first[:1] == b"\0":
            columns, parameters = int.from_bytes(first[5:7], "little"), int.from_bytes(first[7:9], "little")
            names = [client.packet() for _ in range(columns + parameters + bool(columns) + bool(parameters))]
            if any(b"\x06secret\x06secret" in name for name in names):  # its table
                found.append(text)
    assert not found


@pytest.mark.parametrize("charset", CHARSETS)
def test_bytes(narrow: OwnProxy, charset: str) -> None:
    client = log_in(narrow)
    found: list[bytes] = []
    assert client.ask(f"SET NAMES {charset}").kind == "ok"
    for byte in (*range(1, 0x20, 5), 0x7F, *range(0x80, 0x100, 3), 0xA0, 0xFF):
        for text in AROUND:
            sql = written(text.replace(b"#", bytes((byte,))))
            found += [sql] if stolen(client, sql) else []
    assert not found
