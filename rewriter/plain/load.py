"""Planning LOAD DATA and LOAD XML: into tables of one host only."""

from __future__ import annotations

from dataclasses import fields, replace

from config.schema import Kind
from rewriter.plan import Plan
from rewriter.plans import LoadLocal, is_one_host
from rewriter.route.context import Statement, not_yet
from rewriter.route.scope import Scope
from rewriter.sql.statements.forms import Kind as StatementKind
from rewriter.text.facts import Block
from rewriter.text.parse import Parser

from .unsharded import plan_confined, plan_unsharded


def load(statement: Statement) -> Plan | None:
    """The rule for LOAD DATA and LOAD XML. Raises Unreadable and Refuse."""
    if statement.form.kind is not StatementKind.LOAD:
        return None
    plan = plan_confined(statement) or _into(statement)
    if not statement.form.words.endswith("LOCAL") or not is_one_host(plan):
        return plan
    common = {field.name: getattr(plan, field.name) for field in fields(Plan)}
    return LoadLocal(**common, statement=plan)


def _into(statement: Statement) -> Plan:
    """The plan by the table that is named."""
    source = statement.source
    parser = Parser(source)
    while parser.at < parser.end and not (
        source.is_word(parser.at, "INTO") and source.is_word(parser.at + 1, "TABLE")
    ):
        parser.at += 1
    parser.need("INTO")
    parser.need("TABLE")
    block = Block(parser.at)
    block.tables.append(parser.table_name())
    scope = Scope(source)
    scope.add_block(statement.names, block)
    if scope.sharded():
        what = f"LOAD {source.at(1).text}"
        return not_yet(what, "its rows belong to different shards", "INSERT the rows, many at a time.")
    if any(one.table is not None and one.table.kind is Kind.REFERENCE for one in scope.targets.values()):
        return not_yet("LOAD of a reference table", "it has a copy on every host", "INSERT the rows.")
    plan = plan_unsharded(statement, [block], scope)
    if not is_one_host(plan) or plan.database is not None:
        return plan
    # the file is read in the character set of the connection's current database, which may be any other's
    (target,) = scope.targets.values()
    return replace(plan, database=target.physical.decode() if target.form == "single" else target.database)
