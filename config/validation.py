"""A document checked by a pydantic model, with a placed problem in this program's words for each error."""

from __future__ import annotations

import copy
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic.fields import FieldInfo

from config.document import Document, Path

M = TypeVar("M", bound=BaseModel)


class Part(BaseModel):
    """A mapping of a document. Its fields have their types exactly, one that is null is as good as absent,
    and unknown ones are errors.

    A field that is needed has a type with None and no default: None stands for what was wrong.
    """

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any, info: ValidationInfo) -> Any:
        if type(value) is not dict or None not in value.values():
            return value
        cut, fields = bool(info.context), cls.model_fields
        absent = {one.alias or name for name, one in fields.items() if not (cut and one.is_required())}
        return {name: one for name, one in value.items() if one is not None or name not in absent}


def validated(model: type[M], document: Document) -> M | None:
    """The content of `document`, without what is wrong there, which is noted; None when nothing is left.

    No model of `Part`s looks at several fields, so that all is found at once: what is validated again is what
    the wrong values have been cut out of, in a copy.
    """
    left = document
    cut: Counter[Path] = Counter()
    while True:
        try:
            return model.model_validate(left.value, context=cut)
        except ValidationError as error:
            if not cut:
                note(error, model, document, values=True)
                left = Document(copy.deepcopy(document.value))
            found = {
                _wrong(one, left.value, cut) for one in error.errors(include_url=False, include_input=False)
            }
        if () in found:
            return None
        for path in found:
            cut[path] += 1
            _cut(left.at(path[:-1]), path[-1], entirely=cut[path] == 2)


def note(error: ValidationError, model: type[BaseModel], document: Document, *, values: bool = False) -> None:
    """Note pydantic's errors; without `values` those stay out of the messages, as they may be secret."""
    for one in error.errors(include_url=False, include_input=values):
        document.refuse(_existing(one, document.value), _message(one, model))


def _wrong(error: Mapping[str, Any], value: Any, cut: Counter[Path]) -> Path:
    """What to cut out because of `error`: its place, or around it when that has been cut out already."""
    path = _existing(error, value)
    if error["type"] == "missing":
        path = (*path, error["loc"][-1])
    while path and cut[path] == 2:
        path = path[:-1]
    return path


def _cut(holder: Any, key: Any, *, entirely: bool) -> None:
    """Put None in place of what is at `key`, or `entirely` nothing; in a list {}, for the indexes."""
    if isinstance(holder, dict) and entirely:
        holder.pop(key, None)
    elif isinstance(holder, dict | list):
        holder[key] = None if isinstance(holder, dict) else {}


def _existing(error: Mapping[str, Any], value: Any) -> Path:
    """The part of pydantic's location that is in the document: it also names alternatives of a union."""
    path: list[str | int] = []
    for part in error["loc"][:-1] if error["type"] == "missing" else error["loc"]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return tuple(path)


# --- messages ------------------------------------------------------------------------------------

_SHAPES: Final = {
    "dict_type": "must be a mapping",
    "path_type": "must be a path",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_type": "must be a text (quote it if it looks like a number)",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
}
_BOUNDS: Final = {
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "greater_than": "must be more than {gt}",
}
_PHRASE: Final = re.compile(r"^(?:Value error, |(?:Input|String) should (\w+)(?: pattern)?)")


def _message(error: Mapping[str, Any], model: type[BaseModel]) -> str:
    """What is wrong, and the value unless it was not asked for."""
    kind, place, given, known = error["type"], error["loc"], "input" in error, error.get("ctx", {})
    if kind == "missing":
        return f"field {str(place[-1])!r} is missing"
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(place[-1]), _fields_at(model, place[:-1])[0], 1)
        return "unknown field" + (f": did you mean {near[0]!r}?" if near else "")
    if kind in _BOUNDS:
        bound = _BOUNDS[kind].format_map(known).replace(".0 ", " ")
        return f"is {error['input']}: {bound}" if given else bound
    if kind == "model_type":
        shape = f"must be a mapping with the fields {', '.join(_fields_at(model, place)[0])}"
    elif kind in ("dict_type", "list_type"):
        shape = _SHAPES[kind] + _fields_at(model, place)[1]
    elif kind in _SHAPES:
        shape = _SHAPES[kind].format_map(known)
    else:
        return _PHRASE.sub(lambda match: f"must {match[1]}" if match[1] else "", error["msg"])
    return f"{shape}, not {_describe(error['input'])}" if given else shape


def _fields_at(model: type[BaseModel], place: Iterable[str | int]) -> tuple[list[str], str]:
    """The names that a mapping at `place` may have, and what a list or a mapping there is of."""
    models, of = [model], ""
    for part in place:
        found = [info for one in models for name, info in _named(one) if name == part]
        of = next((f" of {info.description}" for info in found if info.description), "" if found else of)
        inner = [one for info in found for one in _models(info.annotation)]
        models = inner or [one for one in models if one.__name__ == part] or models
    return list(dict.fromkeys(name for one in models for name, _ in _named(one))), of


def _named(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, info in model.model_fields.items():
        yield info.alias or name, info


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from _models(one)


def _describe(value: object) -> str:
    """`value` for a message, cut to a readable length."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}" if value else "an empty text"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}"
    return "a mapping" if isinstance(value, dict) else f"a {type(value).__name__}"
