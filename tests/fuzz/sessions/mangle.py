"""The same statement in other letters: blanks, comments, quotes and letters' case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

_WORD = re.compile(r"[A-Z][A-Z_]*\Z")
_NO_QUOTES = frozenset(
    {"COUNT", "CAST", "MIN", "MAX", "SUM", "VALUES", "IF", "CONVERT", "DATABASE", "REPLACE"}
)
"""Words of the grammar, which are no functions when they are quoted."""

_HINTED = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"})
"""Words of the grammar that a server reads hints behind."""

BLANKS = ("  ", "\t", "\n", " \n ", "\r\n")
COMMENTS = (
    "/* app */",
    "-- x\n",
    "# x\n",
    "/* it's */",
    "/**/",
    '/* " */',
    "-- it's `\n",
    "/*! */",
    "/* SELECT 1; */",
    "#\n",
    "--\n",
)
MARIADB_COMMENTS = ("/*M! */",)
MYSQL_COMMENTS = ("/*M! x */",)
#: Before a token, where no server reads it as a hint.
LOST_HINTS = ("/*+ x */", "/*+ MAX_EXECUTION_TIME(5000) */")


@dataclass(frozen=True)
class Piece:
    """A token, `plain` as the grammar has it, and what is in front of it."""

    glue: str
    token: str
    plain: str


@dataclass(frozen=True)
class Statement:
    """`name`: of the rule that made it. `tail`: what is behind the last token."""

    name: str
    pieces: tuple[Piece, ...]
    tail: str = ""

    @property
    def text(self) -> str:
        return "".join(one.glue + one.token for one in self.pieces) + self.tail

    @property
    def ordered(self) -> bool:
        """Whether the order of its rows is said."""
        return any(one.plain == "ORDER" for one in self.pieces)

    def plain(self) -> Statement:
        """Without what mangling has put in."""
        pieces = tuple(Piece(" " if n else "", one.plain, one.plain) for n, one in enumerate(self.pieces))
        return Statement(self.name, pieces)

    def simpler(self) -> list[Statement]:
        """With one decoration less, each."""
        found = []
        for number, one in enumerate(self.pieces):
            glue = " " if number else ""
            if one.glue != glue and "!" not in one.glue:
                found.append(self._with(number, replace(one, glue=glue)))
            if one.token != one.plain:
                found.append(self._with(number, replace(one, token=one.plain)))
        if self.tail and "!" not in "".join(piece.glue for piece in self.pieces):
            found.append(replace(self, tail=""))
        return found

    def _with(self, number: int, piece: Piece) -> Statement:
        return replace(self, pieces=(*self.pieces[:number], piece, *self.pieces[number + 1 :]))


def name_of(token: str, database: str) -> str:
    """The plain form of a name T:db.table in a session on `database`."""
    wanted, _, table = token[2:].partition(".")
    return table if wanted == database else f"{wanted}.{table}"


class Mangler:
    """Decorates statements. `mariadb`: which comments are executed."""

    def __init__(self, random: Random, *, mariadb: bool) -> None:
        self.random, self.mariadb = random, mariadb
        self.comments = COMMENTS + (MARIADB_COMMENTS if mariadb else MYSQL_COMMENTS)

    def statement(self, name: str, text: str, database: str, *, much: float) -> Statement:
        """The statement of a rule's text, whose tokens are between blanks. `much`: the share decorated."""
        tokens = text.split(" ")
        mangled = self.random.random() < much
        pieces = []
        for number, token in enumerate(tokens):
            plain = token.replace("␣", " ")
            if token.startswith("T:"):
                plain = name_of(token, database)
            elif token.startswith("F:"):
                plain = token[2:]
            glue = self._glue(number, tokens) if mangled else (" " if number else "")
            shape = self._shape(token, plain, database) if mangled else plain
            pieces.append(Piece(glue, shape, plain))
        statement = Statement(name, tuple(pieces))
        if mangled and self.random.random() < 0.15:
            statement = self._wrapped(statement)
        return statement

    def _glue(self, number: int, tokens: Sequence[str]) -> str:
        random = self.random
        if number == 0:
            if random.random() < 0.5:
                return ""
            return "".join(
                random.choice((*self.comments, " ", "\n")) for _ in range(random.choice((1, 1, 2)))
            )
        token, before = tokens[number], tokens[number - 1]
        called = token == "(" and (before.startswith("F:") or _WORD.match(before))
        if (called and before[2:] in _NO_QUOTES | {""}) or token.startswith("/*+"):
            return " " if token.startswith("/*+") else ""
        if called and before.startswith("F:"):
            return random.choice(("", "", " ", "/* x */"))
        if random.random() < 0.75:
            return " "
        comments = self.comments if number == 1 or before in _HINTED else self.comments + LOST_HINTS
        blank = random.choice(("", " "))
        return blank + random.choice((*BLANKS, *comments)) + blank or " "

    def _shape(self, token: str, plain: str, database: str) -> str:
        random = self.random
        if token.startswith("T:"):
            wanted, _, table = token[2:].partition(".")
            quoted = random.choice((table, table, f"`{table}`"))
            if plain == table and random.random() < 0.6:
                return quoted
            return f"{random.choice((wanted, f'`{wanted}`'))}{random.choice(('.', '.', ' . ', '. '))}{quoted}"
        if token.startswith("F:"):
            if plain in _NO_QUOTES or random.random() < 0.6:
                return self._case(plain)
            return f"`{plain}`" if random.random() < 0.6 else f"`{plain.lower()}`"
        if re.match(r"@[a-d]\Z", token):
            return random.choice((token, token, token.upper(), f"@`{token[1:]}`", f"@'{token[1:]}'"))
        return self._case(plain) if _WORD.match(plain) else plain

    def _case(self, word: str) -> str:
        kind = self.random.random()
        if kind < 0.6:
            return word
        if kind < 0.85:
            return word.lower()
        return "".join(self.random.choice((one, one.lower())) for one in word)

    def _wrapped(self, statement: Statement) -> Statement:
        """Some tokens in an executable comment; none behind which a server would lose a hint."""
        pieces = list(statement.pieces)
        first = self.random.randrange(len(pieces))
        last = self.random.randrange(first, min(len(pieces), first + 4))
        if any("/*" in one.token for one in pieces[first : last + 2]):
            return statement
        opening = self.random.choice(("/*!", "/*!50000 ", "/*M! " if self.mariadb else "/*!50503 "))
        for number in range(first, last + 1):
            called = number and pieces[number].plain == "("
            pieces[number] = replace(pieces[number], glue="" if called else " ")
        pieces[first] = replace(pieces[first], glue=f" {opening} ")
        if last + 1 == len(pieces):
            return replace(statement, pieces=tuple(pieces), tail=" */")
        pieces[last + 1] = replace(pieces[last + 1], glue=" */ ")
        return replace(statement, pieces=tuple(pieces))
