"""Plans as golden files: `plans/*.yaml` has statements and what becomes of them.

    python -m tests.rewriter.golden          writes what becomes of them now into the files

A case gives `sql` (with IDs as `<pins 2 77>`: table, shard, local id), perhaps `env` (fields of Env; the
database is `demo` unless said otherwise), perhaps `about`; all else is the outcome.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from config.flavour import FLAVOURS
from rewriter.plans import (
    BindError,
    Bound,
    Builtin,
    Env,
    Gather,
    HostStatement,
    NotSupported,
    OneHost,
    Opened,
    Piece,
    Plan,
    ReadThenWrite,
    Reject,
    Reorder,
    Sharded,
    ShardSelect,
    ShardWrite,
    Template,
)
from rewriter.plans.builtins import Assignment, SetVariables
from rewriter.plans.characteristics import Characteristics, Completion
from tests.rewriter.support import TOPOLOGY, contract, expand, first, rewriter, values_of

FOLDER = Path(__file__).with_name("plans")
_ANY_PLAN = {one.name for one in fields(Plan)}
_OF_SET = ("assignments", "home", "reads_tables")


def env_of(case: Mapping[str, Any]) -> Env:
    """The environment of a case: its `env`, where the flavour stands by its name."""
    given = dict(case.get("env", {}))
    return Env(**{"database": "demo", **given, "flavour": FLAVOURS[given.get("flavour", "mysql")]})


GIVEN = ("about", "sql", "env")

Case = dict[str, Any]


def outcome(case: Mapping[str, Any]) -> Case:
    """What becomes of a case's statement, as plain values."""
    env = env_of(case)
    sql = expand(case["sql"]).encode()
    planner = rewriter()
    plan, literals = planner.plan(sql, env)
    if isinstance(plan, Opened):
        sql = plan.text
        plan, literals = planner.plan(sql, env)
    again, same = planner.plan(sql, env)
    assert same == literals
    values = values_of(plan, literals)
    found: Case = {"plan": plan.kind, **_plan(plan, values)}
    for one in (plan, again):  # the second one comes from the cache
        bound = _bound(one, values)
        assert found.get("bound", bound) == bound
        found["bound"] = bound
    bound = found.pop("bound")
    return {**found, **bound}


def _plan(plan: Plan, values: tuple[bytes, ...]) -> Case:
    found: Case = {}
    if plan.kind not in ("reject", "select", "builtin") and plan.access.name != "READ":
        found["access"] = plan.access.name
    if plan.kind == "select" and plan.access.name != "READ":
        found["access"] = plan.access.name
    if plan.session_slots:
        found["slots"] = list(plan.session_slots)
    if plan.effects is not None:
        told = {name: value for name, value in plan.effects._asdict().items() if value}
        found["effects"] = {
            name: [" ".join(map(str, one)) if isinstance(one, tuple) else one for one in value]
            if isinstance(value, tuple)
            else value
            for name, value in told.items()
        }
    if isinstance(plan, Reject):
        found |= {"error": plan.error, **({"probe": True} if plan.probe else {})}
        found |= {"arguments": {name: contract(text) for name, text in plan.arguments.items() if text}}
    if isinstance(plan, Builtin):
        found["name"] = plan.title.replace(" ", "_")
        own = [one.name for one in fields(plan) if one.name not in _ANY_PLAN and one.name not in _OF_SET]
        given = {name: _argument(getattr(plan, name), values) for name in own}
        given = {name: value for name, value in given.items() if value is not None}
        found |= {"arguments": given} if given else {}
        if isinstance(plan, SetVariables):
            found["assignments"] = [_assignment(one, values) for one in plan.assignments]
    if isinstance(plan, OneHost):
        found |= {"unchanged": True} if plan.unchanged else {}
        found |= {"database": plan.database} if plan.database is not None else {}
    if isinstance(plan, Sharded) and plan.point is not None:
        found["point"] = True
    return found


def _argument(value: Any, values: tuple[bytes, ...]) -> Any:
    if isinstance(value, Template):
        return value.render(values).decode()
    if isinstance(value, Completion):
        return value.name
    return value.start.decode() if isinstance(value, Characteristics) else value


def _assignment(one: Assignment, values: tuple[bytes, ...]) -> str:
    text = f"{one.scope} {one.name} = {_argument(one.value, values) if one.value is not None else 'DEFAULT'}"
    if one.collate is not None:
        text += f" collate {_argument(one.collate, values)}"
    return text + ("" if one.constant else " (to be evaluated)")


def _bound(plan: Plan, values: tuple[bytes, ...]) -> Case:
    if plan.kind in ("reject", "builtin"):
        return {}
    if isinstance(plan, Gather):
        return _gathered(plan, values)
    if isinstance(plan, ReadThenWrite):
        return _read_write(plan, values)
    if isinstance(plan, Reorder):
        return _reordered(plan, values)
    try:
        bound = plan.bind(values, TOPOLOGY, first)
    except BindError as error:
        if isinstance(plan, ShardSelect) and plan.gather is not None and isinstance(error, NotSupported):
            literals = values[: len(values) - len(plan.session_slots)]
            return {"else": _gathered(plan.gather, values_of(plan.gather, literals))}
        if isinstance(plan, ShardWrite) and plan.found is not None and isinstance(error, NotSupported):
            literals = values[: len(values) - len(plan.session_slots)]
            return {"else": _read_write(plan.found, values_of(plan.found, literals))}
        arguments = {name: contract(text) for name, text in error.arguments.items() if text}
        return {"bind_error": error.name, "arguments": arguments}
    return _outcome(bound)


def _read_write(plan: ReadThenWrite, values: tuple[bytes, ...]) -> Case:
    return {
        "read": contract(plan.select.render(values).decode()),
        "then": [contract(sql.decode()) for sql in plan.example(values)],
    }


def _reordered(plan: Reorder, values: tuple[bytes, ...]) -> Case:
    try:
        return {"then": [contract(sql.decode()) for sql in plan.example(values)]}
    except BindError as error:
        arguments = {name: contract(text) for name, text in error.arguments.items()}
        return {"bind_error": error.name, "arguments": arguments}


def _gathered(plan: Gather, values: tuple[bytes, ...]) -> Case:
    names = tuple(b"g%d" % number for number in range(1, len(plan.pieces) + 1))
    joined: Case = {}
    if plan.join is not None:
        rows, offset = plan.join.window(values)
        first = plan.join.first_sql(values, None if rows is None else rows + offset)
        reads = [contract(one.decode()) for one in (first, plan.join.second_sql(values, b"..."))]
        joined = {"joined": reads, "columns": contract(plan.join.reference_sql(values, 0).decode())}
    return {
        **joined,
        "pieces": [_piece(piece, name, values) for name, piece in zip(names, plan.pieces, strict=True)],
        "rest": contract(plan.rest_sql(values, names).decode()),
    }


def _piece(piece: Piece, name: bytes, values: tuple[bytes, ...]) -> str:
    link = piece.link
    sql = piece.sql(values, piece.shown, b"..." if link is not None else None).decode()
    text = f"{name.decode()}{' (real)' if piece.real else ''}: {contract(sql)}"
    if link is None:
        return text
    return f"{text} ({link.values} of g{link.source + 1}{'' if link.bounded else ', a scatter'})"


def _outcome(bound: Bound) -> Case:
    found: Case = {}
    if bound.scatter:
        found["scatter"] = True
    found["statements"] = [_statement(one) for one in bound.statements]
    reference = bound.refers_to()
    if reference is not None:
        found["reference"] = _statement(reference)
    if bound.merge is not None:
        merge = {name: value for name, value in bound.merge._asdict().items() if value}
        for name in ("order", "aggregates"):
            if name in merge:
                merge[name] = [" ".join(str(part) for part in key) for key in merge[name]]
        found["merge"] = merge
    if bound.inserted:
        found["inserted"] = [
            f"shard {one.shard} base {contract(str(one.id_offset))} "
            f"rows {one.rows}, {one.first} to {one.last}" + ("" if one.generated else " given")
            for one in bound.inserted
        ]
    if bound.warnings:
        found["warnings"] = [
            contract(f"{one.name} {one.arguments['id']}: {one.arguments['reason']}")
            if "id" in one.arguments
            else f"{one.name} {dict(one.arguments)}"
            for one in bound.warnings
        ]
    return found


def _statement(statement: HostStatement) -> str:
    shards = ",".join(map(str, statement.shards))
    return f"{statement.host[0]}[{shards}] " + contract(statement.sql.decode())


#: libyaml's, where PyYAML has it: the same values in a tenth of the time.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def load(path: Path) -> list[Case]:
    cases = yaml.load(path.read_text(), Loader=_Loader)
    assert isinstance(cases, list)
    return cases


def given(case: Case) -> Case:
    return {name: case[name] for name in GIVEN if name in case}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def rewrite(path: Path) -> None:
    cases = [{**given(case), **outcome(case)} for case in load(path)]
    texts = [
        str(yaml.dump([case], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000))
        for case in cases
    ]
    path.write_text("\n".join(texts))


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.yaml")):
        rewrite(file)
