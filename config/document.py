"""YAML or JSON text to plain values, with a place for every problem.

`parse` gives a `Document`: plain dicts, lists, texts, numbers, and the line of every field. Problems
are collected in it instead of raised, so that an operator sees all that is wrong at once; `validation.py`
checks it.

Scalars follow YAML 1.2 (and so JSON): `no`, `on` and `12:30` are texts, `0x10` is 16. Duplicate keys
are problems. A document is trusted no further than this: its size when aliases are expanded and its
depth are limited.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from config.json_lines import JsonLines
from config.runs import Cut, Unfit

Path = tuple[str | int, ...]
"""Where a value stands: the keys and list indexes that lead to it."""

MAX_BYTES: Final = 16 << 20
MAX_VALUES: Final = 2_000_000
MAX_DEPTH: Final = 64

_LARGE: Final = 10_000
"""Characters of a YAML text that is worth to be looked at for runs."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where (`keyspaces.main.ranges[3].master (line 12)`), what, in which file."""

    place: str
    message: str
    source: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.place, self.message) if part)


class ConfigError(Exception):
    """A configuration cannot be used; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        return f"{len(self.problems)} problems:\n" + "\n".join(f"  {one}" for one in self.problems)


@dataclass
class Document:
    """A parsed document and the problems found in it so far."""

    value: object
    source: str = ""
    problems: list[Problem] = field(default_factory=list)
    _text: str = ""
    _lines: dict[Path, int] | JsonLines | None = None

    def line_of(self, path: Path) -> int | None:
        """The line (from 1) where the value at `path` begins, or where its nearest ancestor does."""
        if self._lines is None:
            self._lines = _lines_of(self._text)
        for length in range(len(path), -1, -1):
            line = self._lines.get(path[:length])
            if line is not None:
                return line
        return None

    def at(self, path: Path) -> Any:
        """The value at `path`; None when there is none."""
        value: Any = self.value
        try:
            for part in path:
                value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
        return value

    def place(self, path: Path) -> str:
        """`path` for people: `keyspaces.main.ranges[3].master (line 12)`."""
        name = dotted(path)
        line = self.line_of(path)
        return name if line is None else f"{name} (line {line})"

    def refuse(self, path: Path, message: str) -> None:
        """Add a problem at `path`."""
        self.problems.append(Problem(self.place(path), message, self.source))

    def raise_problems(self) -> None:
        """Raise ConfigError when there are problems."""
        if self.problems:
            raise ConfigError(self.problems)

    @property
    def digest(self) -> str:
        """Identifies the content (not its formatting): 16 hexadecimal digits."""
        text = json.dumps(self.value, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Spot:
    """A place in a document that problems may be noted at."""

    document: Document
    path: Path

    def refuse(self, message: str) -> None:
        """Note a problem here."""
        self.document.refuse(self.path, message)

    def inner(self, *keys: str | int) -> Spot:
        """The place of `keys` in here."""
        return Spot(self.document, (*self.path, *keys))

    @property
    def value(self) -> Any:
        """What the document has here."""
        return self.document.at(self.path)

    def given(self, name: str) -> Any:
        """The field `name`; None when it is not given."""
        return self.inner(name).value

    def field(self, name: str) -> Spot:
        """The place of the field `name`; when it is not given, the one that it is missing in."""
        return self if self.given(name) is None else self.inner(name)

    def entries(self) -> Iterator[tuple[str, Spot]]:
        """The keys of this mapping, each with its place; nothing when this is none."""
        for key in self.value if isinstance(self.value, dict) else ():
            yield key, self.inner(key)


def dotted(path: Path) -> str:
    """`("ranges", 3, "master")` as `ranges[3].master`; the empty path as `document`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".") or "document"


def parse(text: bytes | str, source: str = "") -> Document:
    """The document in `text` (UTF-8). Raises ConfigError when it is not YAML or JSON at all."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigError([Problem(f"byte {error.start}", "the text is not UTF-8", source)]) from error
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text, object_pairs_hook=_unique)
            return Document(value, source, [], text, JsonLines(text))
        except (ValueError, RecursionError):
            pass  # YAML's flow style is wider than JSON, and its parser says where it fails
    return _parse_yaml(text, source)


def from_value(value: object, source: str = "") -> Document:
    """A document that is already parsed: plain dicts, lists, texts and numbers."""
    return Document(_plain(value), source, [], "", {})


def _plain(value: object) -> object:
    """A copy in the types that texts give: keys are texts, sequences are lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("duplicate key")
    return made


class _Loader(yaml.CSafeLoader):
    """PyYAML's parser with the scalar rules of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_Loader.add_implicit_resolver(_NULL, re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(_BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
_Loader.add_implicit_resolver(
    _INT, re.compile(r"(?:[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40})\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)


_OPEN_OR_CLOSE: Final = re.compile(r"[\[\]{}]")
_COMPACT: Final = re.compile(r"(?:[-?:][ \t]+){2000}")


def _too_deep(text: str) -> bool:
    """Whether `text` may be nested deeper than the parser, which recurses in C, can bear.

    Deep nesting by indentation takes more than MAX_BYTES; the other ways are brackets and `- - - …`.
    """
    if len(text) > MAX_BYTES or _COMPACT.search(text):
        return True
    depth = 0
    for bracket in _OPEN_OR_CLOSE.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > 5000:
            return True
    return False


def _parse_yaml(text: str, source: str) -> Document:
    if _too_deep(text):
        raise ConfigError([Problem("document", "is too large or nested too deeply", source)])
    if len(text) >= _LARGE:
        with contextlib.suppress(ConfigError, Unfit):
            return _parse_runs(text, source)
    return _parse_all(text, source)


def _parse_runs(text: str, source: str) -> Document:
    """A large document with runs of simple items, in which nothing is wrong so far. Raises Unfit, or
    ConfigError, of which nothing is to be told.
    """
    cut = Cut(text, _value_of)
    if not cut.runs:
        raise Unfit
    builder = _built(cut.text, source)
    if builder is None or builder.document.problems or builder.count + cut.values > MAX_VALUES:
        raise Unfit
    return Document(cut.restored(builder.document.value), source, [], text)


def _value_of(text: str) -> object:
    return _parse_all(text, "").value


def _parse_all(text: str, source: str) -> Document:
    builder = _built(text, source)
    return Document(None, source, [], "", {}) if builder is None else builder.document


def _built(text: str, source: str) -> _Builder | None:
    """What the parser says; None: there is nothing in it. Raises ConfigError."""
    try:
        node = _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "document"
        message = error.problem or "is not YAML"
        if "nesting depth" in message:
            message = "is nested too deeply"
        elif error.context and error.context_mark:
            message += f" {error.context} (begun in line {error.context_mark.line + 1})"
        raise ConfigError([Problem(place, message, source)]) from error
    except yaml.YAMLError as error:
        raise ConfigError([Problem("document", " ".join(str(error).split()), source)]) from error
    except RecursionError as error:
        raise ConfigError([Problem("document", "is nested too deeply", source)]) from error
    if node is None:
        return None
    builder = _Builder(Document(None, source, [], text, {}))
    try:
        if "*" in text and _size(node, {}) > MAX_VALUES:  # seconds before that many are made
            raise _TooMuch(_MANY)
        builder.document.value = builder.build(node, ())
    except _TooMuch as error:
        raise ConfigError([Problem("document", str(error), source)]) from error
    return builder


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _lines_of(text: str) -> dict[Path, int]:
    """The lines of a YAML text that its parser has not read as a whole."""
    builder = _built(text, "")
    return {} if builder is None else builder.lines


_MANY: Final = f"has more than {MAX_VALUES} values"


def _size(node: yaml.Node, known: dict[int, int], depth: int = 0) -> int:
    """How many values `node` is once its aliases are expanded. One within itself counts once: it is too deep,
    as building it tells.
    """
    if isinstance(node, yaml.ScalarNode) or depth > MAX_DEPTH:
        return 1
    size = known.get(id(node))
    if size is None:
        known[id(node)] = 1
        parts = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        size = known[id(node)] = 1 + sum(_size(one, known, depth + 1) for one in parts)
    return size


class _TooMuch(Exception):
    """The document is too large or too deep once its aliases are expanded."""


class _Builder:
    """Makes plain values of YAML's nodes, noting lines and duplicate keys."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines: dict[Path, int] = {}
        document._lines = self.lines
        self.count = 0

    def build(self, node: yaml.Node, path: Path) -> object:
        self.count += 1
        if self.count > MAX_VALUES:
            raise _TooMuch(_MANY)
        if len(path) > MAX_DEPTH:
            raise _TooMuch(f"is nested more than {MAX_DEPTH} levels deep")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(one, (*path, index)) for index, one in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        made: dict[str, object] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.document.refuse(path, f"has a key that is not a plain text (line {line})")
                continue
            inner = (*path, key.value)
            if key.value in made:
                first = self.lines[inner]
                problem = Problem(f"{dotted(inner)} (line {line})", f"is already given in line {first}")
                self.document.problems.append(Problem(problem.place, problem.message, self.document.source))
                continue
            self.lines[inner] = line
            made[key.value] = self.build(value, inner)
        return made


def _scalar(node: yaml.Node) -> object:
    text = str(node.value)
    if node.tag == _NULL:
        return None
    if node.tag == _BOOL:
        return text.lower() == "true"
    if node.tag == _INT:
        return int(text, 0 if text[:2] in ("0x", "0o") else 10)
    if node.tag == _FLOAT:
        return float(text)
    return text
