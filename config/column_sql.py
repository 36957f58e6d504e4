"""A strict reader of column definitions: finds what neither MySQL nor MariaDB would take.

    VARCHAR            a VARCHAR needs its length: VARCHAR(255)
    INT NOT NUL        'NUL' is nothing that a column's definition can have there
    TEXT UNSIGNED      UNSIGNED is for numbers

It knows the types and attributes of both servers, and is content when one of them would be. Expressions
(DEFAULT (…), CHECK (…), AS (…)) are the servers' to judge.
"""

from __future__ import annotations

from typing import Final

from config.sqltext import END, SqlError, SqlToken, by_commas, closing, tokens_of
from config.type_rules import TYPES, TypeRule

_NUMBERS: Final = ("integer", "exact", "real")
_WITH_CHARSET: Final = ("string", "text", "list")
_NOW: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
_KNOWN: Final = (
    *("NOT", "NULL", "DEFAULT", "ON", "AUTO_INCREMENT", "UNIQUE", "PRIMARY", "KEY", "COMMENT", "COLLATE"),
    *("CHARACTER", "CHARSET", "CHECK", "GENERATED", "REFERENCES", "UNSIGNED"),
)


def definition_problem(definition: str) -> str | None:
    """Why no server would take `definition` (the SQL behind a column's name); None when one may."""
    try:
        tokens = tokens_of(definition)
        _Reader(tokens).read()
    except SqlError as error:
        return str(error)
    return None


def index_problem(index: str) -> str | None:
    """Why no server would take `index` (an element of CREATE TABLE that is no column); None when one may."""
    try:
        tokens = tokens_of(index)
    except SqlError as error:
        return str(error)
    opens = next((at for at, token in enumerate(tokens) if token.is_op("(")), None)
    if opens is None:
        return "has no columns in parentheses"
    if any(token.is_op(",", ";") for token in tokens[:opens]):
        return "is more than one definition"
    depth = 0
    for token in tokens:
        depth += token.is_op("(") - token.is_op(")")
        if depth == 0 and token.is_op(",", ";"):
            return "is more than one definition"
    parts = by_commas(tokens[opens + 1 : closing(tokens, opens)])
    if not parts or not all(parts):
        return "a column is missing in the parentheses"
    return None


class _Reader:
    """Reads one definition from its first token to the last; raises SqlError."""

    def __init__(self, tokens: list[SqlToken]) -> None:
        self.tokens = tokens
        self.at = 0
        self.type = ""
        self.family = ""
        self.seen: set[str] = set()

    # the tokens

    def word(self, ahead: int = 0) -> str:
        return self.token(ahead).word

    def token(self, ahead: int = 0) -> SqlToken:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else END

    def take(self, *words: str) -> bool:
        """Step over one of these words, if it stands here."""
        found = self.word() in words
        self.at += found
        return found

    def need(self, *words: str) -> None:
        if not self.take(*words):
            raise SqlError(f"{' or '.join(words)} is expected {self._where()}")

    def name(self, what: str) -> str:
        token = self.token()
        if not token.is_name and token.kind != "string":
            raise SqlError(f"{what} is expected {self._where()}")
        self.at += 1
        return token.text

    def parentheses(self, what: str) -> list[SqlToken]:
        """What is in the parentheses that open here."""
        if not self.token().is_op("("):
            raise SqlError(f"{what} in parentheses is expected {self._where()}")
        end = closing(self.tokens, self.at)
        inside = self.tokens[self.at + 1 : end]
        if not inside:
            raise SqlError(f"{what} is missing in the parentheses")
        self.at = end + 1
        return inside

    def _where(self) -> str:
        token = self.token()
        return "at its end" if token is END else f"before {token.text!r}"

    # the definition

    def read(self) -> None:
        """The type, then attributes in any order."""
        self._type()
        while self.at < len(self.tokens):
            self._attribute()
        nullable = "NULL" in self.seen or self.family == "serial"
        if "DEFAULT NULL" in self.seen and not nullable and {"NOT NULL", "KEY"} & self.seen:
            raise SqlError("NULL cannot be the DEFAULT of a column that takes no NULL")
        if "AUTO_INCREMENT" in self.seen and {"DEFAULT", "AS"} & self.seen:
            raise SqlError("AUTO_INCREMENT goes with no DEFAULT and no expression")
        if {"AS", "DEFAULT"} <= self.seen:
            raise SqlError("a generated column has no DEFAULT")

    def _type(self) -> None:
        token = self.token()
        self.type = token.word
        known = TYPES.get(self.type)
        if known is None and token.kind == "word" and self.word() == "NATIONAL":
            self.at += 1
            self.type, known = self.word(), TYPES["CHAR"]
            if self.type not in ("CHAR", "CHARACTER", "VARCHAR"):
                raise SqlError("NATIONAL is for CHAR and VARCHAR")
            known = TYPES[self.type]
        if known is None:
            raise SqlError(f"{token.text!r} is no column type" if token is not END else "has no column type")
        self.at += 1
        if self.type == "DOUBLE":
            self.take("PRECISION")
        if self.type in ("CHAR", "CHARACTER", "NCHAR") and self.take("VARYING", "VARCHAR"):
            self.type, known = "VARCHAR", TYPES["VARCHAR"]
        if self.type == "LONG" and self.take("VARCHAR", "VARBINARY"):
            pass
        self.family = known.family
        if self.family == "list":
            self._listed()
        else:
            self._numbers(known)
        self._of_number()

    def _listed(self) -> None:
        """The values of ENUM and SET."""
        inside = self.parentheses(f"the list of values of {self.type}")
        for index, token in enumerate(inside):
            strings = index % 2 == 0
            if strings is not (token.kind == "string") or (not strings and not token.is_op(",")):
                raise SqlError(f"the values of {self.type} must be strings with commas between them")
        if len(inside) % 2 == 0:
            raise SqlError(f"a value of {self.type} is missing behind the last comma")

    def _numbers(self, known: TypeRule) -> None:
        """The numbers in the parentheses behind a type."""
        if not self.token().is_op("("):
            if known.least:
                raise SqlError(f"{self.type} needs its length: {self.type}(255)")
            return
        if not known.most:
            raise SqlError(f"{self.type} has no length in parentheses")
        inside = self.parentheses(f"the length of {self.type}")
        numbers = [token for token in inside if token.kind == "number" and token.text.isdigit()]
        if len(inside) != 2 * len(numbers) - 1 or not all(token.is_op(",") for token in inside[1::2]):
            raise SqlError(f"the parentheses of {self.type} must have whole numbers")
        if len(numbers) > known.most:
            raise SqlError(f"{self.type} has at most {known.most} numbers in its parentheses")
        values = [int(token.text) for token in numbers]
        if values[0] > known.highest:
            raise SqlError(f"{self.type}({values[0]}) is too much: at most {known.highest}")
        if len(values) > 1 and (values[1] > values[0] or values[1] > 38):
            raise SqlError(f"{self.type}({values[0]},{values[1]}) has more decimals than it may")

    def _of_number(self) -> None:
        """UNSIGNED and ZEROFILL, which stand right behind the type."""
        while self.word() in ("UNSIGNED", "SIGNED", "ZEROFILL"):
            if self.type != "YEAR" and (self.family not in _NUMBERS or self.type in ("BOOL", "BOOLEAN")):
                raise SqlError(f"{self.word()} is for numbers, not for {self.type}")
            self.at += 1
        while self.word() in ("BINARY", "ASCII", "UNICODE", "BYTE"):
            if self.family not in _WITH_CHARSET:
                raise SqlError(f"{self.word()} is for texts, not for {self.type}")
            self.at += 1

    def _attribute(self) -> None:
        reader = _ATTRIBUTES.get(self.word())
        if reader is None:
            raise SqlError(f"{self.token().text!r} is nothing that can stand in a column's definition there")
        self.at += 1
        reader(self)

    # one reader for each word

    def _not(self) -> None:
        if not self.take("ENFORCED", "SECONDARY"):
            self.need("NULL")
            self.seen.add("NOT NULL")

    def _null(self) -> None:
        self.seen.add("NULL")

    def _default(self) -> None:
        self.seen.add("DEFAULT")
        token = self.token()
        if token.is_op("("):
            self.parentheses("an expression")
            return
        if token.is_op("-", "+"):
            self.at += 1
            if self.token().kind != "number":
                raise SqlError("a number is expected behind the sign of DEFAULT")
        elif token.word == "NULL":
            self.seen.add("DEFAULT NULL")
        elif token.word in _NOW:
            self._now()
            return
        elif token.kind == "word" and token.text.startswith("_") and self.token(1).kind == "string":
            self.at += 1
        elif token.is_name and token.word not in _KNOWN:
            self._function()
            return
        elif token.kind not in ("string", "number"):
            raise SqlError(f"a value is expected behind DEFAULT, {self._where()}")
        self.at += 1

    def _function(self) -> None:
        """TRUE, FALSE, and MariaDB's functions without parentheses around them: DEFAULT uuid()."""
        if self.word() in ("TRUE", "FALSE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_USER", "CURRENT_ROLE"):
            self.at += 1
            if self.token().is_op("("):
                self.at = closing(self.tokens, self.at) + 1
            return
        named = self.token().text
        self.at += 1
        if self.word() == "VALUE" and named.upper() == "NEXT":
            self.at = len(self.tokens)
            return
        if not self.token().is_op("("):
            raise SqlError(f"{named!r} is no value for DEFAULT: write a string in quotes")
        self.at = closing(self.tokens, self.at) + 1

    def _now(self) -> None:
        """CURRENT_TIMESTAMP, with its digits."""
        word = self.word()
        self.at += 1
        if self.token().is_op("("):
            end = closing(self.tokens, self.at)
            if end - self.at > 2 or (end - self.at == 2 and self.token(1).kind != "number"):
                raise SqlError(f"{word} takes a number of digits")
            self.at = end + 1

    def _on(self) -> None:
        self.need("UPDATE")
        if self.family != "moment" or self.word() not in _NOW:
            raise SqlError("ON UPDATE is for TIMESTAMP and DATETIME, and takes CURRENT_TIMESTAMP")
        self._now()

    def _counts(self) -> None:
        if self.family not in ("integer", "real", "serial"):
            raise SqlError(f"AUTO_INCREMENT is for integers, not for {self.type}")
        self.seen.add("AUTO_INCREMENT")

    def _unique(self) -> None:
        self.take("KEY")

    def _primary(self) -> None:
        self.take("KEY")
        self.seen.add("KEY")

    def _key(self) -> None:
        self.seen.add("KEY")

    def _comment(self) -> None:
        if self.token().kind != "string":
            raise SqlError(f"a string is expected behind COMMENT, {self._where()}")
        self.at += 1

    def _collate(self) -> None:
        self.at += self.token().is_op("=")
        self.name("a collation")

    def _character(self) -> None:
        self.need("SET")
        self._charset()

    def _charset(self) -> None:
        if self.family not in _WITH_CHARSET:
            raise SqlError(f"a character set is for texts, not for {self.type}")
        self.at += self.token().is_op("=")
        self.name("a character set")

    def _binary(self) -> None:
        if self.family not in _WITH_CHARSET:
            raise SqlError(f"BINARY is for texts, not for {self.type}")

    def _generated(self) -> None:
        self.need("ALWAYS")
        self.need("AS")
        self._as()

    def _as(self) -> None:
        if self.take("ROW"):  # MariaDB's system versioning
            self.need("START", "END")
            return
        self.seen.add("AS")
        self.parentheses("an expression")
        self.take("VIRTUAL", "STORED", "PERSISTENT")

    def _check(self) -> None:
        self.parentheses("a condition")

    def _constraint(self) -> None:
        if self.word() != "CHECK":
            self.name("a constraint's name")
        self.need("CHECK")
        self._check()

    def _references(self) -> None:
        self.name("a table")
        if self.token().is_op("."):
            self.at += 1
            self.name("a table")
        if self.token().is_op("("):
            self.parentheses("the columns")
        if self.take("MATCH"):
            self.need("FULL", "PARTIAL", "SIMPLE")
        while self.take("ON"):
            self.need("DELETE", "UPDATE")
            if self.take("SET"):
                self.need("NULL", "DEFAULT")
            elif self.take("NO"):
                self.need("ACTION")
            else:
                self.need("CASCADE", "RESTRICT")

    def _value(self) -> None:
        """An attribute with a value: COLUMN_FORMAT DYNAMIC, SRID 4326, ENGINE_ATTRIBUTE = '…'."""
        self.at += self.token().is_op("=")
        if self.token() is END or self.token().kind == "op":
            raise SqlError("an attribute's value is missing at its end")
        self.at += 1

    def _compressed(self) -> None:
        if self.token().is_op("="):
            self._value()

    def _with(self) -> None:
        self.need("SYSTEM")
        self.need("VERSIONING")

    def _serial(self) -> None:
        self.need("DEFAULT")
        self.need("VALUE")
        self.seen.add("AUTO_INCREMENT")

    def _nothing(self) -> None:
        pass


_ATTRIBUTES: Final = {
    "NOT": _Reader._not,
    "NULL": _Reader._null,
    "DEFAULT": _Reader._default,
    "ON": _Reader._on,
    "AUTO_INCREMENT": _Reader._counts,
    "UNIQUE": _Reader._unique,
    "PRIMARY": _Reader._primary,
    "KEY": _Reader._key,
    "COMMENT": _Reader._comment,
    "COLLATE": _Reader._collate,
    "CHARACTER": _Reader._character,
    "CHARSET": _Reader._charset,
    "BINARY": _Reader._binary,
    "GENERATED": _Reader._generated,
    "AS": _Reader._as,
    "CHECK": _Reader._check,
    "CONSTRAINT": _Reader._constraint,
    "REFERENCES": _Reader._references,
    "COLUMN_FORMAT": _Reader._value,
    "STORAGE": _Reader._value,
    "SRID": _Reader._value,
    "REF_SYSTEM_ID": _Reader._value,
    "ENGINE_ATTRIBUTE": _Reader._value,
    "SECONDARY_ENGINE_ATTRIBUTE": _Reader._value,
    "COMPRESSED": _Reader._compressed,
    "SERIAL": _Reader._serial,
    "WITH": _Reader._with,
    "WITHOUT": _Reader._with,
    **dict.fromkeys(("VISIBLE", "INVISIBLE", "ENFORCED", "VIRTUAL", "STORED"), _Reader._nothing),
}
