"""Fingerprints: nothing is lost, nothing but literals is lifted, and types stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter.env import Env
from rewriter.fingerprint import digest, lift
from rewriter.text.tokens import LIST, Unreadable, read

MODES = [Env(ansi_quotes=ansi, no_backslash_escapes=raw) for ansi in (False, True) for raw in (False, True)]

LIFTED = [
    ("SELECT 1", ["1"]),
    ("SELECT 1.5, 1.5e-3, .5, 5., 1e5", ["1", "5", "3"]),
    ("SELECT 0x1F, x'0a', 0xZ, 0b1, b'01'", ["1F", "0a'", "01'"]),
    ("SELECT 1a, a1, a$5, db03429.t, t.1e5, t.5, @a1, @@x.5, `1`, 1.2.3", []),
    ("SELECT 'it''s', '\\'', \"a\"\"b\", ''", ["it''s'", "\\''", 'a""b"', "'"]),
    ("SELECT 'a' 'b'", ["a'", "b'"]),
    ("SELECT _utf8'x', N'x'", ["x'", "x'"]),
    ("SELECT @'x y', @\"5\", @`z 5`", []),
    ("SELECT 1--5", ["1", "5"]),
    ("SELECT 1-- 5", ["1"]),
    ("SELECT 1 --\t5\n, 6", ["1", "6"]),
    ("SELECT 1 # 'x\n, 2", ["1", "2"]),
    ("SELECT /* it's 5 */ 1", [" it's 5 */", "1"]),
    ("SELECT /**/ 1", ["*/", "1"]),
    ("SELECT /*+ shard(5) */ 1", ["1"]),
    ("SELECT 2*5, 6/3, a.*, 7", ["2", "5", "6", "3", "7"]),
    ("a IN (1, 2,3)", ["1, 2,3"]),
    ("a IN (1)", ["1"]),
    ("a in(1,-2)", ["1,-2"]),
    ("a IN ( 1 , 2 )", ["1 , 2"]),
    ("a IN ('x', 'y''z')", ["x', 'y''z'"]),
    ("a IN ('x')", ["x'"]),
    ("a IN (1, 'x')", ["1", "x'"]),
    ("a IN (1, 2.5)", ["1", "2", "5"]),
    ("a IN (-1, 2)", ["1", "2"]),
    ("MIN (1, 2)", ["1", "2"]),
    ("a_IN (1, 2)", ["1", "2"]),
    ("`IN` (1, 2)", ["1", "2"]),
    ("LIMIT 1, 2", ["1", "2"]),
    ("(1, 2)", ["1", "2"]),
]


@pytest.mark.parametrize(("sql", "expected"), LIFTED)
def test_what_is_lifted(sql: str, expected: list[str]) -> None:
    _, literals = lift(sql.encode())
    assert [one.decode() for one in literals[:-1]] == expected


def test_modes() -> None:
    ansi = MODES[2]
    assert lift(b"SELECT \"5\", '6'", ansi.findall)[1] == (b"6'", b"")
    raw = MODES[1]
    assert lift(rb"SELECT '\', '6'", raw.findall)[1] == (b"\\'", b"6'", b"")


NO_FINGERPRINT = [
    "SELECT 'abc",
    "SELECT `abc",
    'SELECT "abc',
    "SELECT 1 /* open",
    "SELECT /*!80000 1 */",
    "/*M! x */",
    "a\0b",
]


@pytest.mark.parametrize("sql", NO_FINGERPRINT)
def test_no_fingerprint(sql: str) -> None:
    assert lift(sql.encode()) == (b"", ())


DIFFERENT = [
    "a = 1", "a = '1'", 'a = "1"', "a = 0x1", "a = 1.1", "a = x'1'", "a = .1", "a = -1", "a = /*1*/1",
    "a IN (1)", "a IN ('1')", "a IN (1.1)", "a IN (1, '1')", "a IN (1.1, 1)", "a = 1 ", "a =", "a = '1",
]  # fmt: skip


def test_types_have_fingerprints_of_their_own() -> None:
    fingerprints = [lift(sql.encode())[0] for sql in DIFFERENT if sql != "a = '1"]
    assert len(set(fingerprints)) == len(fingerprints)


def test_lists_share_a_fingerprint() -> None:
    fingerprints = {lift(f"a IN ({', '.join(map(str, range(1, n)))})".encode())[0] for n in range(2, 40)}
    assert len(fingerprints) == 1


PIECES = st.sampled_from(
    [
        "SELECT ",
        "'",
        '"',
        "`",
        "''",
        "\\",
        "\\'",
        "/*",
        "*/",
        "/*!",
        "/*!80000 ",
        "/*M!",
        "/*+ ",
        "-- ",
        "--",
        "\n",
        "#",
        "IN (",
        "IN(",
        "in ( ",
        ")",
        "1",
        "2, 3",
        "0x",
        "1F",
        ".",
        "e5",
        "@",
        "@@",
        "a",
        "é",
        "$",
        "\x00",
        " ",
        ",",
        "-5",
        "'a', 'b'",
        "x'",
        "N'",
        "_utf8",
        "1.5",
        "t.",
        ";",
        "(",
        "=",
        "?",
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=25).map(lambda parts: "".join(parts).encode()), st.binary(max_size=60)
)


@given(TEXTS, st.sampled_from(MODES))
def test_joined_again_it_is_the_statement(sql: bytes, env: Env) -> None:
    fingerprint, literals = lift(sql, env.findall)
    if not fingerprint:
        return
    texts = fingerprint.split(b"\0")
    assert len(texts) == len(literals) + 1
    whole = b"".join(text + literal for text, literal in zip(texts, literals, strict=False))
    assert whole == sql


@given(TEXTS, st.from_regex(rb"[0-9]{1,25}", fullmatch=True), st.sampled_from(MODES))
def test_other_digits_at_the_end_are_cut_alike(before: bytes, digits: bytes, env: Env) -> None:
    """What the planner's short way counts on."""
    fingerprint, literals = lift(before + b" 7", env.findall)
    if literals == (b"7", b""):
        assert lift(before + b" " + digits, env.findall) == (fingerprint, (digits, b""))


@given(TEXTS, st.sampled_from(MODES))
def test_tokens_agree_with_literals(sql: bytes, env: Env) -> None:
    """No literal reaches over a token's end, unless the token is the whole list."""
    fingerprint, literals = lift(sql, env.findall)
    if not fingerprint:
        return
    try:
        source = read(sql, literals, env)
    except Unreadable:
        return
    for token in source.tokens:
        if token.literal >= 0:
            text = sql[token.start : token.end]
            assert text.endswith(literals[token.literal])
    for start, end, index in source.pieces:
        if index < 0:
            continue
        around = [token for token in source.tokens if token.start < end and start < token.end]
        assert len(around) <= 1, "a literal is in one token, or in a comment"
        if around and around[0].kind == LIST:
            assert around[0].literal == index


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        (b"SELECT 2/* c */*3 FROM t WHERE id = 5", b"SELECT 2 *3 FROM t WHERE id = 5"),
        (b"SELECT 2/* c */*3, 4 /* d */", b"SELECT 2 *3, 4 "),
        (b"SELECT 2 */*5*/3", b"SELECT 2 * 3"),
        (b"SELECT 2 */* 5 */3", b"SELECT 2 * 3"),
        (b"SELECT id/**/*/**/2", b"SELECT id * 2"),
        (b"SELECT id/**/*/*2*/3", b"SELECT id * 3"),
    ],
)
def test_stars_beside_comments(sql: bytes, plain: bytes) -> None:
    """Behind a comment a star looks as if it began one."""
    found = [
        [(token.kind, token.text) for token in read(one, lift(one)[1], Env()).tokens] for one in (sql, plain)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT 12.5e0, 4111111111111111E0, 1e-5, .5, 5., -.5e+3", "SELECT ?, ?, ?, ?, ?, -?"),
        ("SELECT 0b1101, 0X7365, b'01', N'x'", "SELECT ?, ?, b?, N?"),
        ("SELECT /*+ SET_VAR(a = 'secret') */ 1", "SELECT /*+ SET_VAR(a = ?) */ ?"),
        ("SELECT 1e5FROM t1", "SELECT ?FROM t1"),
        (
            "SELECT 12abc, 1_000, a$5, t.1e5, t.5, @a1, @`5`, `5 e`, @'5 x', db03429.t",
            "SELECT 12abc, 1_000, a$5, t.1e5, t.5, @a1, @`5`, `5 e`, @'5 x', db03429.t",
        ),
        ("SELECT'secret", "SELECT"),
        (" (SELECT \"secret', 1", "SELECT"),
        ("'secret", ""),
        (
            "SELECT 1.5, t.5 FROM a.b WHERE x > -2.25 AND y IN (1.5, 2)",
            "SELECT ?, t.5 FROM a.b WHERE x > -? AND y IN (?, ?)",
        ),
        ("SELECT 'a'.'b', 1 . 5", "SELECT ?.?, ? . ?"),
    ],
)
def test_digests_have_no_values(sql: str, shown: str) -> None:
    assert digest(sql.encode()) == shown


SECRETS = st.sampled_from(
    [
        *(
            "'secret'",
            "'a''secret'",
            "'a\\'secret'",
            '"secret"',
            '"a""secret"',
            "/* secret */",
            "-- secret\n",
        ),
        *(
            "'a\\\\', ' secret",
            "IN ('secret', 'secret')",
            "/*+ x('secret') */",
            "`a 'b`",
            " , ",
            "a",
            "1 ",
            "'",
            "`",
        ),
    ]
)


@given(st.lists(SECRETS, max_size=12), st.sampled_from(MODES))
def test_the_digest_of_a_beginning_tells_no_more(pieces: list[str], env: Env) -> None:
    """Wherever a statement is cut through, what is a literal of the whole is none of the digest's."""
    sql = f"SELECT {' '.join(pieces)}".encode()
    if not lift(sql, env.findall)[0] or "secret" in digest(sql, env.findall, 10_000):
        return
    for most in range(6, len(sql)):
        assert "secret" not in digest(sql, env.findall, 10_000, most)


@given(
    st.lists(
        st.one_of(SECRETS, st.sampled_from(["1.5", "1e", ".5", "1e5", "0x1f", ", ", "\n "])), max_size=60
    ),
    st.sampled_from(MODES),
    st.integers(10, 60),
)
def test_a_digest_is_the_beginning_of_a_longer_one(pieces: list[str], env: Env, limit: int) -> None:
    """Of a long fingerprint only so much is read as is told."""
    sql = f"SELECT {' '.join(pieces)}".encode()
    assert digest(sql, env.findall, limit) == digest(sql, env.findall, 10_000)[:limit]


def test_the_beginning_of_a_long_statement() -> None:
    sql = b"SELECT a FROM t WHERE id IN (1, 2, 3) AND name = 'x y' AND b = " + b"1 + " * 100_000 + b"1"
    assert digest(sql, limit=80, most=30) == "SELECT a FROM t WHERE id IN …"
    assert digest(sql, limit=80, most=55) == "SELECT a FROM t WHERE id IN (?) AND name = ? …"
    assert digest(sql, limit=80, most=1 << 15).startswith(
        "SELECT a FROM t WHERE id IN (?) AND name = ? AND b"
    )
    assert len(digest(sql, limit=80, most=1 << 15)) <= 80
    assert digest(b"SELECT a", most=8) == "SELECT a"


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT a FROM t WHERE b = 5 /* page 7 */", "SELECT a FROM t WHERE b = ?"),
        ("/*traceparent='00-ab-cd-01'*/ SELECT 'x'", "SELECT ?"),
        ("SELECT/**/a, 0x1F /* one *//* two */ FROM t", "SELECT a, 0x? FROM t"),
        ("SELECT /*+ NO_ICP(t) */ a FROM t # 5", "SELECT /*+ NO_ICP(t) */ a FROM t"),
        ("SELECT '/*', a FROM t WHERE b = 'x*/'", "SELECT ?, a FROM t WHERE b = ?"),
        ("/* ping */", "/* */"),
    ],
)
def test_digests_have_no_comments(sql: str, shown: str) -> None:
    assert digest(sql.encode()) == shown
