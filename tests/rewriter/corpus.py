"""The statements that the tests are made of, changed statements, and what the two readers say of them."""

from __future__ import annotations

import ast
import pickle
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, cast

from rewriter.env import Env
from rewriter.sql.statements.calls import with_plain_calls
from rewriter.text.facts import Block
from rewriter.text.names import with_plain_names
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser
from rewriter.text.tokens import Source, Unreadable, read
from rewriter.tree.tree import Tree
from tests.rewriter import golden
from tests.rewriter.support import expand
from tests.support.template import locked, run_folder

TESTS: Final = Path(__file__).parents[1]
_STATEMENT: Final = re.compile(r"\s*(?:SELECT|WITH|UPDATE|DELETE)\s|\s*\(\s*SELECT\s")
_PIECE: Final = re.compile(
    r"/\*.*?\*/|@+[\w.]*|`[^`]*`|'[^']*'|\"[^\"]*\"|\d+\.\d*|\w+|<=>|<>|!=|>=|<=|:=|->>?|\|\||&&|[^\w\s]"
)
_OPERATORS: Final = ("=", "<", ">", "<=", ">=", "<>", "!=", "<=>", "+", "-", "*", "/", "%", "&", "|", "^")
_WORDS: Final = ("AND", "OR", "XOR", "DIV", "MOD", "LIKE", "REGEXP", "IS NOT", "IN", "NOT")


@cache
def statements() -> tuple[tuple[str, Env], ...]:
    """The queries and changes of golden plans, and all that stand in tests as a text by themselves."""
    found = {}
    for path in sorted(golden.FOLDER.glob("*.yaml")):
        for case in golden.load(path):
            found[expand(case["sql"])] = golden.env_of(case)
    for text in _texts():
        with suppress(KeyError):  # an ID of a table that the demo does not have
            found.setdefault(expand(text), Env(database="demo"))
    return tuple(found.items())


def _texts() -> list[str]:
    """Those that stand in tests; what a run of the tests has read once is known to its other processes."""
    folder = run_folder()
    if folder is None:
        return list(_read())
    path = folder / "statements"
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            draft = path.with_suffix(".draft")
            draft.write_bytes(pickle.dumps(list(_read())))
            draft.rename(path)
    return cast(list[str], pickle.loads(path.read_bytes()))


def _read() -> Iterator[str]:
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if not isinstance(text, str) or not _STATEMENT.match(text) or len(text) > 2000:
                continue
            if "{" not in text and ";" not in text and not text.rstrip().endswith("="):
                yield text


def read_twice(sql: str, env: Env) -> tuple[list[Block] | None, Tree | None]:
    """The blocks of a query or a change, None when the first reader cannot read it, and the tree, None when
    the second cannot.
    """
    text = sql.encode("utf-8", "surrogateescape")
    literals = tuple(one for _, one in env.findall(text + b"\0"))
    try:
        source = with_plain_names(read(text, literals, env), flavour=env.flavour)
        source = with_plain_calls(source, flavour=env.flavour)
        blocks = _blocks(source)
    except (Unreadable, IndexError):
        return None, None
    try:
        return blocks, Tree(source, env)
    except Exception:
        return blocks, None


def _blocks(source: Source) -> list[Block]:
    if source.is_word(0, "UPDATE", "DELETE"):
        return list(WriteParser(source).change().whole.all_blocks())
    parser = Parser(source)
    query = parser.query(None)
    if parser.at < parser.end:
        raise parser.unreadable("the end")
    return list(query.all_blocks())


def differs(blocks: list[Block], tree: Tree) -> bool:
    """Whether a block has other tables or clauses to one reader than to the other."""
    return any(block.tables and not tree.agrees(block) for block in blocks)


def mutants(seed: int, count: int, *, wild: bool) -> Iterator[tuple[str, Env]]:
    """Statements with something changed: operators by others (of those that both read), or (`wild`)
    anything at all.
    """
    rng = random.Random(seed)
    corpus = [
        (_PIECE.findall(sql), env)
        for sql, env in statements()
        if len(sql) < 600 and (wild or None not in read_twice(sql, env))
    ]
    corpus = [one for one in corpus if len(one[0]) > 2]
    vocabulary = [piece for pieces, _ in corpus for piece in pieces]
    for _ in range(count):
        pieces, env = rng.choice(corpus)
        pieces = list(pieces)
        (_wildly if wild else _gently)(pieces, rng, vocabulary)
        yield " ".join(pieces), env


def _gently(pieces: list[str], rng: random.Random, _: list[str]) -> None:
    """Operators for operators behind WHERE or ON, NOT and parentheses around something."""
    words = [at for at, one in enumerate(pieces) if one.upper() in ("WHERE", "ON", "HAVING")]
    first = rng.choice(words) + 1 if words else len(pieces)
    places = [
        at for at in range(first, len(pieces)) if pieces[at] in _OPERATORS[:9] or pieces[at] in ("AND", "OR")
    ]
    for at in rng.sample(places, min(len(places), 2)):
        pieces[at] = rng.choice(_WORDS[:3] if pieces[at] in _WORDS else _OPERATORS)
    if places and rng.random() < 0.4:
        pieces.insert(first, rng.choice(("NOT", "offset =", "- 1 <", "rollback XOR", "5 IN (1, 2) AND", "!")))


def _wildly(pieces: list[str], rng: random.Random, vocabulary: list[str]) -> None:
    at, kind = rng.randrange(len(pieces)), rng.randrange(4)
    if kind == 0:
        del pieces[at]
    elif kind == 1:
        pieces.insert(at, rng.choice(vocabulary))
    elif kind == 2:
        pieces[at] = rng.choice(vocabulary)
    else:
        other = rng.randrange(len(pieces))
        pieces[at], pieces[other] = pieces[other], pieces[at]
