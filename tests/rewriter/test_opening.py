"""Texts that servers could read otherwise: what becomes of them, and what the servers say."""

from __future__ import annotations

import pytest

from config.flavour import flavour_of
from rewriter.env import Env
from rewriter.text.characters import SPACES, WORD_BYTES
from rewriter.text.opening import opened
from rewriter.text.tokens import Unreadable, read
from tests.rewriter.byte_classes import classes
from tests.rewriter.support import rewriter
from tests.support.servers import LocalServer

MARIADB = Env(flavour=flavour_of("MariaDB"), server_version=101119)
MYSQL = Env(server_version=90700)

#: A text, and what MariaDB and MySQL make of it; None: refused.
OPENED: list[tuple[bytes, bytes | None, bytes | None]] = [
    (b"SELECT 1", b"SELECT 1", b"SELECT 1"),
    (b"/*!40101 SET a = 1 */;", b"         SET a = 1   ;", b"         SET a = 1   ;"),
    (b"1 /*!50701 + 1*/", b"1               ", b"1          + 1  "),
    (b"1 /*M!50701 + 1*/", b"1           + 1  ", b"1                "),
    (b"1 /*M!40101 /* x */ + 1 */", b"1           /* x */ + 1   ", b"1" + b" " * 19 + b"+ 1 */"),
    (b"1 /*m!50701 + 1*/", b"1 /*m!50701 + 1*/", b"1 /*m!50701 + 1*/"),
    (b"1 /*!080000 +1*/", b"1               ", b"1           +1  "),
    (b"1 /*!080000+1*/", b"1              ", b"1         0+1  "),
    (b"1 /*!100000+1*/", b"1          +1  ", b"1         0+1  "),
    (b"1 /*!5070+1*/", b"1    5070+1  ", b"1    5070+1  "),
    (b"1 /*! /* */ */ 2", b"1     /* */    2", b"1     /* */    2"),
    (b"1 /*! /*! */ */", b"1            */", b"1            */"),
    (b"1 /*!99999 /* ' */ ' */ 2", b"1" + b" " * 23 + b"2", b"1" + b" " * 23 + b"2"),
    (b"1 /*!99999 '*/' */ 2", b"1             ' */ 2", b"1             ' */ 2"),
    (b"1 /*! '*/' */ 2", b"1     '*/'    2", b"1     '*/'    2"),
    (b"1 /* /*! */ 2", b"1 /* /*! */ 2", b"1 /* /*! */ 2"),
    (b"'/*! */' -- /*!\n# /*!\n`/*!`", b"'/*! */' -- /*!\n# /*!\n`/*!`", b"'/*! */' -- /*!\n# /*!\n`/*!`"),
    (b"1 /*!99999 a\nb*/\n2", b"1           \n   \n2", b"1           \n   \n2"),
    (b"1 --\n/*! + 1 */", b"1 --\n    + 1   ", b"1 --\n    + 1   "),
    (b"*/*! + 1 */", b"*    + 1   ", b"*    + 1   "),
    (b"*/* ' */ + /*! 1 */", b"*/* ' */ +     1   ", b"*/* ' */ +     1   "),
    (b"1--/*!*/1", None, None),
    (b"1 /*!-*/-/*!-*/1", b"1    -  -   -  1", b"1    -  -   -  1"),
    (b"1 /*! --*/ 1", None, None),
    (b"1 /*! +", None, None),
    (b"1 /*!99999 +", None, None),
    (b"1 --\x7f'", None, None),
    (b"1 \x01", None, None),
    (b"-- \x01\x7f\xff\n'\x01\xff'", b"-- \x01\x7f\xff\n'\x01\xff'", b"-- \x01\x7f\xff\n'\x01\xff'"),
    (b"caf\xc3\xa9 \xff", None, None),
]


@pytest.mark.parametrize(("sql", "mariadb", "mysql"), OPENED)
def test_opened(sql: bytes, mariadb: bytes | None, mysql: bytes | None) -> None:
    for env, expected in ((MARIADB, mariadb), (MYSQL, mysql)):
        if expected is None:
            with pytest.raises(Unreadable):
                opened(sql, env)
        else:
            assert opened(sql, env) == expected
            assert opened(expected, env) == expected


BYTES: list[tuple[str, bytes, bytes | None]] = [
    ("latin1", b"SELECT\xa01", b"SELECT 1"),
    ("latin1", b"'\xa0' \xe9 # \xa0", b"'\xa0' \xe9 # \xa0"),
    ("latin1", b"1--\xa0'", b"1-- '"),  # a comment there
    ("latin1", b"\x80", None),
    ("cp852", b"SELECT\xff1", b"SELECT 1"),
    ("latin2", b"\xa0", None),  # not in all of its collations
    ("latin2", b"1--\x80'", None),
    ("utf8mb4", "é 中 😀".encode(), "é 中 😀".encode()),
    ("utf8mb4", b"\xc0\xa0", None),
    ("utf8mb4", b"\xed\xa0\x80", None),
    ("utf8mb3", "中".encode(), "中".encode()),
    ("utf8mb3", "😀".encode(), None),
    ("binary", b"\xe9", None),
    ("binary", b"'\xe9'", b"'\xe9'"),
    ("gbk", b"`\x5c\x81\x60'`", b"`\x5c\x81\x60'`"),
    ("gbk", b"`\x5c\x81\x60/*!*/`'", b"`\x5c\x81\x60/*!*/`'"),
    ("gbk", b"'\x81\x5c' /*!*/", b"'\x81\x5c'      "),
    ("gbk", b"\x81 ", None),
    ("sjis", b"\xb1", None),
    ("euckr", b"\x81A", b"\x81A"),
    ("euckr", b"\x81(", None),
]


@pytest.mark.parametrize(("charset", "sql", "expected"), BYTES)
def test_bytes(charset: str, sql: bytes, expected: bytes | None) -> None:
    env = Env(charset=charset)
    if expected is None:
        with pytest.raises(Unreadable):
            opened(sql, env)
    else:
        assert opened(sql, env) == expected


def test_the_table_is_what_servers_say(servers: list[LocalServer]) -> None:
    """Nothing is in it that a server reads in another way."""
    found = classes(servers[0].connect())
    for charset, kinds in found.items():
        assert WORD_BYTES[charset] <= kinds["word"], charset
        assert SPACES[charset] <= kinds["space"], charset


#: Texts whose tokens are not what spaces suggest.
TOKENS = {
    "1.5FROM t": ["1.5", "FROM", "T"],
    "1.FROM t": ["1.", "FROM", "T"],
    ".5FROM t": [".5", "FROM", "T"],
    "1e5FROM t": ["1e5", "FROM", "T"],
    "1e-5FROM t": ["1e-5", "FROM", "T"],
    "1.5e5a": ["1.5e5", "A"],
    "1FROM t": ["1FROM", "T"],
    "0x4FROM": ["0X4FROM"],
    "0X41": ["0X41"],
    "t.1e5, t.5FROM": ["t", ".", "1e5", ",", "t", ".", "5FROM"],
    "@`a``b`": ["a`b"],
    "@'a b'": ["a b"],
    "1.e(1)": None,
    "1.5ex": None,
    "@'a\\'b'": None,
    "@'a''b'": None,
    "$a$b": None,
    "a$$b": ["A$$B"],
}


@pytest.mark.parametrize(("sql", "expected"), TOKENS.items())
def test_tokens(sql: str, expected: list[str] | None) -> None:
    raw = sql.encode()
    literals = tuple(one for _, one in MYSQL.findall(raw + b"\0"))
    if expected is None:
        with pytest.raises(Unreadable):
            read(raw, literals, MYSQL)
    else:
        assert [one.text for one in read(raw, literals, MYSQL).tokens] == expected


@pytest.mark.parametrize(
    "sql", ["SELECT 1 @'@a", "SELECT 1 .\\N", "SELECT @", "SELECT @'", 'SELECT @"', "SELECT .\\N"]
)
def test_nothing_raises(sql: str) -> None:
    for env in (MARIADB, MYSQL):
        plan, _ = rewriter().plan(sql.encode(), env)
        assert plan.kind in ("reject", "any_host"), plan
