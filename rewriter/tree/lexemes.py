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
    OPERATOR,
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
_KINDS: Final = _KEYWORDS | {
    word: found for word, found in MySQL.Tokenizer.KEYWORDS.items() if word[:1] == "_"
}
"""With the character sets that stand before a string."""
_SECOND: Final[dict[str, dict[str, TokenType]]] = {}
for _pair in _PAIRS:
    _first, _, _second = _pair.partition(" ")
    _SECOND.setdefault(_first, {})[_second] = MySQL.Tokenizer.KEYWORDS[_pair]

_TEXT: Final = "$"
"""Stands for the inside of any string: also a path, a format and no unit of time."""


class Untranslated(Exception):
    """sqlglot has no token for something in the statement."""


class Lexemes(NamedTuple):
    """sqlglot's `tokens`; of each the index of its first exact token, and of the one behind its last."""

    tokens: list[Token]
    first: list[int]
    end: list[int]


# each stands for all such tokens: places in the text are not asked for
_SIGNS: Final = {text: Token(kind, text) for text, kind in _OPERATORS.items()}
_VALUES: Final = {
    STRING: Token(T.STRING, _TEXT),
    INTEGER: Token(T.NUMBER, "1"),
    HEX: Token(T.HEX_STRING, "1"),
}


def translated(source: Source) -> Lexemes:
    """The tokens of a statement. Raises Untranslated."""
    found = Lexemes([], [], [])
    tokens, firsts, ends = found
    at, exact = 0, source.tokens
    while at < len(exact):
        first, token = at, exact[at]
        at += 1
        one: Token | None
        if token.kind == WORD:
            text = token.text
            pair = _SECOND[text].get(source.at(at).text) if text in _SECOND else None
            if pair is not None and exact[at].kind == WORD:
                one, at = Token(pair, token.name), at + 1
            else:
                kind = _KINDS.get(text, T.VAR)
                if kind is T.LATERAL and not source.is_op(at, "("):
                    kind = T.VAR  # a name to MariaDB
                one = Token(kind, token.name)
        elif token.kind == OPERATOR:
            one = _SIGNS.get(token.text)
        elif token.kind == NAME:
            one = Token(T.IDENTIFIER, token.name)
        else:
            one = _VALUES.get(token.kind)
        for piece in _pieces(token) if one is None else (one,):
            tokens.append(piece)
            firsts.append(first)
            ends.append(at)
    return found


def _pieces(token: Exact) -> list[Token]:
    """What becomes of a token that is not one for one."""
    kind, text = token.kind, token.text
    if kind == HINT:
        return []
    if kind == OPERATOR:
        if text in ("<<", ">>"):
            return [_SIGNS[text[0]]] * 2
        raise Untranslated(text)
    if kind == LIST:
        return [_VALUES[STRING if text == STRING else INTEGER]]
    if kind == PREFIXED:
        return [Token({"x": T.HEX_STRING, "b": T.BIT_STRING}.get(text[0].lower(), T.NATIONAL_STRING), "1")]
    if kind == VARIABLE:
        return [Token(T.PARAMETER, "@"), Token(T.VAR, text or "_")]
    if kind == SYSTEM:
        names = [Token(T.VAR, part) for part in text[2:].split(".")]
        dotted = [one for name in names for one in (name, _SIGNS["."])][:-1]
        return [Token(T.SESSION_PARAMETER, "@@"), *dotted]
    if text == "\\N":
        return [Token(T.NULL, "NULL")]
    return [Token(T.BIT_STRING, "1") if text[:2] == "0b" else Token(T.NUMBER, text)]
