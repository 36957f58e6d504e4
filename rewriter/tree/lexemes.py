"""Exact tokens to sqlglot's: one for one, but for a few words that are one token there.

What a literal says is not passed on: values of constants are read by `route/values.py`, from exact tokens.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlglot.dialects.mysql import MySQL
from sqlglot.tokenizer_core import Token, TokenType

from rewriter.text.tokens import (
    HEX,
    HINT,
    INTEGER,
    LIST,
    NAME,
    PREFIXED,
    STRING,
    SYSTEM,
    VARIABLE,
    WORD,
    Source,
)
from rewriter.text.tokens import Token as Exact

T = TokenType

_OPERATORS: Final = {
    "(": T.L_PAREN, ")": T.R_PAREN, "{": T.L_BRACE, "}": T.R_BRACE, ",": T.COMMA, ".": T.DOT,
    "?": T.PLACEHOLDER,
    "=": T.EQ, "<=>": T.NULLSAFE_EQ, ">": T.GT, "<": T.LT, "<=": T.LTE, ">=": T.GTE, "<>": T.NEQ, "!=": T.NEQ,
    "+": T.PLUS, "-": T.DASH, "*": T.STAR, "/": T.SLASH, "%": T.MOD, "^": T.CARET, "&": T.AMP, "|": T.PIPE,
    "!": T.NOT, "~": T.TILDE, "&&": T.DAMP, "||": T.DPIPE, ":=": T.COLON_EQ, "->": T.ARROW, "->>": T.DARROW,
}  # fmt: skip

_WORDS = """
ALL ALTER ANALYZE AND AS ASC BETWEEN BIGINT BINARY BLOB CALL CASE CHAR CHARACTER COLLATE COLUMN CONSTRAINT
CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEC DECIMAL DEFAULT DELETE DESC DESCRIBE
DISTINCT DISTINCTROW DIV DOUBLE DROP ELSE EXCEPT EXISTS EXPLAIN FALSE FETCH FLOAT FLOAT4 FLOAT8 FOR FORCE FROM
GRANT HAVING IGNORE IN INDEX INNER INSERT INT INT1 INT2 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IS JOIN KEY
KILL LATERAL LEFT LIKE LIMIT LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT MEDIUMBLOB MEDIUMINT
MEDIUMTEXT MOD NATURAL NOT NULL NUMERIC ON OPTIMIZE OR OUT OUTER OVER PARTITION PROCEDURE RANGE REAL RECURSIVE
REFERENCES REGEXP RENAME REPLACE RETURNING REVOKE RIGHT RLIKE ROW ROWS SELECT SEPARATOR SET SHOW SMALLINT
STRAIGHT_JOIN TABLE THEN TINYBLOB TINYINT TINYTEXT TRIGGER TRUE UNION UNIQUE UNSIGNED UPDATE USE USING VALUES
VARBINARY VARCHAR WHEN WHERE WINDOW WITH XOR
DATE DATETIME END ESCAPE JSON NCHAR OFFSET ROLLUP SIGNED TIME TIMESTAMP YEAR
"""
"""What MySQL reserves, and what its grammar of queries and changes needs besides. All other keywords of
sqlglot's are other dialects', or of other statements: names here.
"""
_PAIRS: Final = ("GROUP BY", "ORDER BY", "PARTITION BY", "MEMBER OF", "SIGNED INTEGER", "UNSIGNED INTEGER")

_KEYWORDS: Final[dict[str, TokenType]] = {
    word: found for word, found in MySQL.Tokenizer.KEYWORDS.items() if word in _WORDS.split()
}
_INTRODUCERS: Final[dict[str, TokenType]] = {
    word: found for word, found in MySQL.Tokenizer.KEYWORDS.items() if word[:1] == "_"
}
_SECOND: Final[dict[str, dict[str, TokenType]]] = {}
for _pair in _PAIRS:
    _first, _, _second = _pair.partition(" ")
    _SECOND.setdefault(_first, {})[_second] = MySQL.Tokenizer.KEYWORDS[_pair]

_TEXT: Final = "$"
"""Stands for the inside of any string: also a path, a format and no unit of time."""

_LITERALS: Final = {
    NAME: T.IDENTIFIER,
    STRING: T.STRING,
    INTEGER: T.NUMBER,
    HEX: T.HEX_STRING,
}


class Untranslated(Exception):
    """sqlglot has no token for something in the statement."""


class Lexemes(NamedTuple):
    """sqlglot's `tokens`; of each the index of its first exact token, and of the one behind its last."""

    tokens: list[Token]
    first: list[int]
    end: list[int]


def translated(source: Source) -> Lexemes:
    """The tokens of a statement. Raises Untranslated."""
    found = Lexemes([], [], [])
    at, exact = 0, source.tokens
    while at < len(exact):
        token = exact[at]
        if token.kind == WORD:
            second = _SECOND.get(token.text)
            pair = second.get(exact[at + 1].text) if second is not None and at + 1 < len(exact) else None
            if pair is not None and exact[at + 1].kind == WORD:
                _put(found, exact, at, at + 2, pair, token.name)
                at += 2
                continue
            kind = _KEYWORDS.get(token.text) or _INTRODUCERS.get(token.text, T.VAR)
            if kind is T.LATERAL and not source.is_op(at + 1, "("):
                kind = T.VAR  # a name to MariaDB
            _put(found, exact, at, at + 1, kind, token.name)
        elif token.kind != HINT:
            for kind, text in _pieces(token):
                _put(found, exact, at, at + 1, kind, text)
        at += 1
    return found


def _put(found: Lexemes, exact: tuple[Exact, ...], first: int, end: int, kind: TokenType, text: str) -> None:
    found.tokens.append(Token(kind, text, 1, 1, exact[first].start, exact[end - 1].end - 1))
    found.first.append(first)
    found.end.append(end)


def _pieces(token: Exact) -> list[tuple[TokenType, str]]:
    """What any token but a word becomes."""
    kind, text = token.kind, token.text
    if kind == "operator":
        if text in ("<<", ">>"):
            return [(_OPERATORS[text[0]], text[0])] * 2
        if text not in _OPERATORS:
            raise Untranslated(text)
        return [(_OPERATORS[text], text)]
    if kind in _LITERALS:
        return [(_LITERALS[kind], token.name if kind == NAME else _TEXT if kind == STRING else "1")]
    if kind == LIST:
        return [(T.STRING, _TEXT) if text == STRING else (T.NUMBER, "1")]
    if kind == PREFIXED:
        return [({"x": T.HEX_STRING, "b": T.BIT_STRING}.get(text[0].lower(), T.NATIONAL_STRING), "1")]
    if kind == VARIABLE:
        return [(T.PARAMETER, "@"), (T.VAR, text or "_")]
    if kind == SYSTEM:
        parts = text[2:].split(".")
        names = [(T.VAR, part) for part in parts]
        dotted = [one for name in names for one in (name, (T.DOT, "."))][:-1]
        return [(T.SESSION_PARAMETER, "@@"), *dotted]
    if text == "\\N":
        return [(T.NULL, "NULL")]
    return [(T.BIT_STRING, "1") if text[:2] == "0b" else (T.NUMBER, text)]
