"""Every variant of a plan answers every question that `Plan` lists."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from rewriter.plan import Execution, Plan, Reject
from rewriter.plans import (
    BindError,
    Bound,
    Builtin,
    MultiStatement,
    OneHost,
    Passthrough,
    Sharded,
    ShardSelect,
    SystemViews,
)
from rewriter.plans.cached import TOUCHING, CachedSelect, Touching, as_touching
from rewriter.plans.variants import MIDDLE, by_variant, variants
from tests.rewriter import golden, test_caching
from tests.rewriter.support import TOPOLOGY, expand, first, rewriter, values_of
from tests.statements import answers

VARIANTS = sorted(variants(), key=lambda variant: variant.__qualname__)

#: Class variables of `Plan`, by their names; those without a value have no safe default.
CLASS_VARIABLES = [name for name, text in Plan.__annotations__.items() if text.startswith("ClassVar")]
WITHOUT_DEFAULT = [name for name in CLASS_VARIABLES if not hasattr(Plan, name)]
PROPERTIES = [name for name, value in vars(Plan).items() if isinstance(value, property)]

#: Variants of variants.
OTHERS: dict[type[Plan], tuple[type[Plan], ...]] = {
    CachedSelect: (ShardSelect,),
    SystemViews: (Passthrough,),
}

#: Statements about caches, for variants that no golden file has.
ON_CACHES = ("SET @x = f(3)", "FLUSH CACHE FOR pins", "SHOW PROXY CACHES")


def planned() -> Iterator[tuple[Plan, tuple[bytes, ...]]]:
    """Plans of many statements, with their literals."""
    for path in sorted(golden.FOLDER.glob("*.yaml")):
        for case in golden.load(path):
            for planner in (rewriter(), test_caching.REWRITER):
                yield planner.plan(expand(case["sql"]).encode(), golden.env_of(case))
    for sql in ON_CACHES:
        yield test_caching.planned(sql)
    for statement in answers.cases():
        yield rewriter().plan(statement.sql.encode(), statement.env)


@functools.cache
def samples() -> dict[type[Plan], tuple[Plan, tuple[bytes, ...]]]:
    """A plan of each variant, with its literals."""
    found: dict[type[Plan], tuple[Plan, tuple[bytes, ...]]] = {}
    for first_plan, literals in planned():
        plan: Plan | None = first_plan
        while plan is not None:
            found.setdefault(type(plan), (plan, literals))
            plan = plan.alternative
    for plain, touching in TOUCHING.items():
        plan, literals = found[plain]
        found.setdefault(touching, (as_touching(plan, ()), literals))
    return found


def parents(variant: type[Plan]) -> set[type[Plan]]:
    """The classes from which a variant may have its answers: itself, those that are made for it, and the
    variant that it is with a cache.
    """
    above = set(variant.__mro__) & MIDDLE
    plain = {plain for plain, touching in TOUCHING.items() if touching is variant}
    return {variant, *above, *plain, *OTHERS.get(variant, ())}


def test_the_questions_are_found() -> None:
    assert {"kind", "title", "binds", "on_one_host", "executed_as"} <= set(WITHOUT_DEFAULT)
    assert {"refusal", "alternative", "sanitized", "sharded_tables", "in_words"} <= set(PROPERTIES)
    assert len(VARIANTS) > 60


def test_the_docstring_names_every_question() -> None:
    documentation = inspect.getdoc(Plan) or ""
    assert not [name for name in CLASS_VARIABLES if f"`{name}`" not in documentation]
    assert not [name for name in PROPERTIES if not inspect.getdoc(vars(Plan)[name])]


@pytest.mark.parametrize("name", WITHOUT_DEFAULT)
def test_every_variant_declares_what_has_no_safe_default(name: str) -> None:
    forgotten = []
    for variant in VARIANTS:
        declaring = next((one for one in variant.__mro__ if name in vars(one)), None)
        if declaring not in parents(variant):
            forgotten.append(variant.__qualname__)
    assert not forgotten


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.__qualname__))
def test_every_property_answers(variant: type[Plan]) -> None:
    plan, _ = samples()[variant]
    for name in PROPERTIES:
        getattr(plan, name)
    assert plan.in_words
    assert plan.refusal in (None, plan)
    assert isinstance(plan.sharded_tables, tuple)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.__qualname__))
def test_what_a_plan_says_of_its_statements_is_so(variant: type[Plan]) -> None:
    plan, literals = samples()[variant]
    topology = test_caching.REWRITER.topology if plan.invalidates else TOPOLOGY
    values = values_of(plan, literals)
    try:
        bound: Bound | None = plan.bind(values, topology, first)
    except BindError:
        bound = None
    assert bound is None or plan.binds
    assert not (plan.scatter and plan.sharded_keyspace == "")
    assert bool(plan.touches(values, topology)) <= plan.invalidates
    try:
        prepared = plan.to_prepare(values, topology)
    except BindError:
        prepared = None
    assert prepared is None or plan.binds


def test_answers_agree_with_the_classes_that_have_the_fields() -> None:
    for variant in VARIANTS:
        assert variant.on_one_host is issubclass(variant, OneHost), variant
        assert variant.routed is issubclass(variant, Sharded), variant
        assert variant.invalidates is issubclass(variant, Touching), variant
        assert (variant.executed_as is Execution.BY_PROXY) is issubclass(variant, Builtin), variant
        assert variant.executed_as is not Execution.RELAYED or issubclass(variant, OneHost), variant
        assert not variant.repeats or issubclass(variant, ShardSelect), variant
        assert not variant.repeats or not issubclass(variant, CachedSelect), variant
        assert not variant.in_parts or issubclass(variant, MultiStatement), variant
        assert not issubclass(variant, OneHost) or isinstance(variant.at_any_host, bool), variant


def test_no_field_hides_a_question() -> None:
    # a field without a default would have the property that it hides for one
    methods = {name for name, value in vars(Plan).items() if inspect.isfunction(value)}
    questions = {*CLASS_VARIABLES, *PROPERTIES, *methods}
    hidden = {(variant, one.name) for variant in VARIANTS for one in fields(variant) if one.name in questions}
    assert not hidden


def test_a_table_without_an_entry_for_a_variant_is_an_error() -> None:
    table: dict[type[Plan], Any] = {variant: variant.kind for variant in VARIANTS}
    assert by_variant(table)[Reject] == "reject"
    del table[Reject]
    with pytest.raises(LookupError, match="Reject"):
        by_variant(table)


def test_an_entry_is_that_of_the_nearest_class() -> None:
    found = by_variant({Plan: "any", Sharded: "sharded", ShardSelect: "select"})
    assert found[CachedSelect] == "select"
    assert {found[variant] for variant in found if variant.routed} == {"sharded", "select"}
    assert found[Reject] == "any"


def test_each_variant_with_caches_is_the_one_that_it_would_be_without() -> None:
    for plain, touching in TOUCHING.items():
        assert issubclass(touching, plain)
        for name in CLASS_VARIABLES:
            assert name == "invalidates" or getattr(touching, name) == getattr(plain, name), (touching, name)
