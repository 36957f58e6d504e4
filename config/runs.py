"""Long runs of simple list items in a YAML text, read without YAML's parser.

A list of 65,536 ranges takes that parser six seconds. Whoever has written it, its items are alike:

    - {range: [0, 511], master: "db1:3306", open: true}

    - master: db1:3306
      range:
      - 0
      - 511

So a run of items that are written in the same few ways is cut out of the text, with a mark in its place, and
its items are made by a regular expression for each way. What YAML says stays YAML's to say: of each way the
parser reads one item, too, and of all scalars each once; the items before and behind a run are left in the
text, and a mark must come back as one whole item of a list. What does not fit is left in the text, or all of
it is the parser's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

LEAST: Final = 100
"""Items of a run that are worth it."""

MARK: Final = "shardgate-run-"
"""What stands for a run, with its number."""

_WAYS: Final = 20
"""So many ways of writing an item are known at once."""

_TRIES: Final = 20
"""After so many items that begin no run, it is not worth to look for more: each takes a millisecond."""

_DEEPEST: Final = 50
"""Lists that are nested deeper are the parser's, which has a limit."""

_KEY: Final = "[a-z][a-z_]*"
_DIGITS: Final = "[0-9]{1,9}"
_VALUE: Final = r"""(?:"[ !#-\[\]-~]*"|'[ -&(-~]*'|[A-Za-z0-9_./+][A-Za-z0-9_./+:-]*)"""
_PAIR: Final = rf"\[ ?{_DIGITS}, ?{_DIGITS} ?\]"
_FLOW: Final = re.compile(rf"- \{{ ?{_KEY}: (?:{_PAIR}|{_VALUE})(?:, {_KEY}: (?:{_PAIR}|{_VALUE}))* ?\}}\n")
_FIRST: Final = re.compile(r"^( *)- (?=[a-z{])", re.MULTILINE)
_FIELD: Final = re.compile(
    rf"({_KEY}):(?:( \[ ?){_DIGITS}(, ?){_DIGITS}( ?\])|(\n *- ){_DIGITS}(\n *- ){_DIGITS}()| {_VALUE})"
)

Read = Callable[[str], Any]
"""What the parser says of a text. Any exception: nothing that is wanted here."""


class Unfit(Exception):
    """The text is the parser's."""


@dataclass(frozen=True, slots=True)
class Run:
    """Items to be put in the place of a mark. `values`: so many are in them, they themselves included."""

    items: list[Any]
    values: int


@dataclass(slots=True)
class _Way:
    """How an item is written: `pattern` matches it, up to the next item of the list. `keys`, and whether
    their values are pairs of numbers. `scalars`: what the other values' texts mean.
    """

    pattern: re.Pattern[str]
    keys: list[tuple[str, bool]]
    flow: bool
    scalars: dict[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> int:
        return 1 + sum(3 if pair else 1 for _, pair in self.keys)

    def texts(self, groups: Iterable[str]) -> Iterator[str]:
        """Those of the scalars among the groups of a match."""
        left = iter(groups)
        for _, pair in self.keys:
            if pair:
                next(left), next(left)
            else:
                yield next(left)

    def made(self, groups: Iterable[str]) -> dict[str, Any]:
        """The item with these groups."""
        left = iter(groups)
        scalars = self.scalars
        return {
            key: [int(next(left)), int(next(left))] if pair else scalars[next(left)]
            for key, pair in self.keys
        }


class Cut:
    """`text` with marks, and the `runs` that they stand for. `read`: YAML's parser. Raises Unfit."""

    def __init__(self, text: str, read: Read) -> None:
        self._read = read
        self.runs: list[Run] = []
        odd = MARK in text or "\r" in text or "\t" in text
        self.text = text if odd else "".join(self._pieces(text))

    @property
    def values(self) -> int:
        """So many more than in what is read of the text."""
        return sum(run.values for run in self.runs) - len(self.runs)

    def restored(self, value: Any) -> Any:
        """The document, when `value` is what was read of the text. Raises Unfit: the marks are not where they
        must be.
        """
        found: list[int] = []
        made = self._filled(value, found, 0)
        if found != list(range(len(self.runs))):
            raise Unfit
        return made

    def _filled(self, value: Any, found: list[int], depth: int) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(one, found, depth + 1) for key, one in value.items()}
        if not isinstance(value, list):
            return value
        made: list[Any] = []
        for one in value:
            if isinstance(one, str) and one.startswith(MARK) and depth < _DEEPEST:
                number = int(one.removeprefix(MARK))
                found.append(number)
                made += self.runs[number].items
            else:
                made.append(self._filled(one, found, depth + 1))
        return made

    # --- cutting -------------------------------------------------------------------------------------

    def _pieces(self, text: str) -> Iterator[str]:
        """The text, with marks in the place of runs."""
        at = kept = tries = 0
        while tries < _TRIES and (start := _FIRST.search(text, at)) is not None:
            indent, at = start[1], start.end()
            tries += 1
            way = self._way(text, start.start(), indent)
            if way is None:
                continue
            before = way.pattern.match(text, start.start())
            assert before is not None
            rows, end = self._rows(text, before.end(), indent)
            if len(rows) >= LEAST:
                yield text[kept : before.end()]
                yield f"{indent}- {MARK}{len(self.runs)}\n"
                self.runs.append(self._made(rows))
                kept = end
                tries = 0
            at = max(at, end)
        yield text[kept:]

    def _rows(self, text: str, at: int, indent: str) -> tuple[list[tuple[_Way, tuple[str, ...]]], int]:
        """The simple items from `at` on, and where they end."""
        ways: list[_Way] = []
        rows: list[tuple[_Way, tuple[str, ...]]] = []
        while True:
            for way in ways:
                found = way.pattern.match(text, at)
                if found is not None:
                    rows.append((way, found.groups()))
                    at = found.end()
                    break
            else:
                new = self._way(text, at, indent) if len(ways) < _WAYS else None
                if new is None:
                    return rows, at
                ways.append(new)

    def _made(self, rows: list[tuple[_Way, tuple[str, ...]]]) -> Run:
        texts: dict[int, tuple[_Way, set[str]]] = {}
        for way, groups in rows:
            texts.setdefault(id(way), (way, set()))[1].update(way.texts(groups))
        for way, some in texts.values():
            self._learn(way, some)
        return Run([way.made(groups) for way, groups in rows], sum(way.values for way, _ in rows))

    def _learn(self, way: _Way, texts: set[str]) -> None:
        """Have the parser read each text once, as a value in such an item. Raises Unfit: one is no scalar."""
        listed = [one for one in texts if one not in way.scalars]
        line = "- {{k: {}}}\n" if way.flow else "- k: {}\n"
        found = self._read("".join(map(line.format, listed))) if listed else []
        if not isinstance(found, list) or len(found) != len(listed):
            raise Unfit
        for text, one in zip(listed, found, strict=True):
            if list(one) != ["k"] or isinstance(one["k"], dict | list):
                raise Unfit
            way.scalars[text] = one["k"]

    def _way(self, text: str, at: int, indent: str) -> _Way | None:
        """How the item at `at` is written, if it is simple, and another one is behind it."""
        way = _flow_way(text, at, indent) or _block_way(text, at, indent)
        found = way.pattern.match(text, at) if way is not None else None
        if way is None or found is None:
            return None
        try:
            self._learn(way, set(way.texts(found.groups())))
            alone = self._read("".join(line[len(indent) :] + "\n" for line in found[0].splitlines()))
        except Exception:
            return None  # the parser's
        return way if alone == [way.made(found.groups())] else None


def _flow_way(text: str, at: int, indent: str) -> _Way | None:
    """One line, in braces."""
    found = _FLOW.match(text, at + len(indent))
    return None if found is None else _way_of(found[0], indent, flow=True)


def _block_way(text: str, at: int, indent: str) -> _Way | None:
    """A line for each field; a pair of numbers may have a line for each of them."""
    inner = indent + "  "
    line = re.compile(rf"{_KEY}:(?: (?:{_PAIR}|{_VALUE})\n|\n(?:{inner}(?:  )?- {_DIGITS}\n){{2}})")
    begin = at + len(indent)
    end = begin + 2
    while (found := line.match(text, end)) is not None:
        end = found.end()
        if not text.startswith(inner, end):
            return _way_of(text[begin:end], indent, flow=False)
        end += len(inner)
    return None


def _way_of(item: str, indent: str, *, flow: bool) -> _Way | None:
    """`item` is without the indentation of its first line."""
    pattern, keys, end = [re.escape(indent)], [], 0
    for found in _FIELD.finditer(item):
        pattern.append(re.escape(item[end : found.start()]))
        end = found.end()
        around = [re.escape(one) for one in found.groups()[1:] if one is not None]
        keys.append((found[1], bool(around)))
        if around:
            first, second, behind = around
            pattern.append(f"{found[1]}:{first}({_DIGITS}){second}({_DIGITS}){behind}")
        else:
            pattern.append(f"{found[1]}: ({_VALUE})")
    pattern.append(re.escape(item[end:]))
    if len(dict(keys)) != len(keys):
        return None
    return _Way(re.compile("".join(pattern) + rf"(?={re.escape(indent)}- )"), keys, flow)
