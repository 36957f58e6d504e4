"""What is printed of a run: each difference with its reproduction, and the summary."""

from __future__ import annotations

from tests.differential.answers import Answer
from tests.differential.runner import Finding, Step, Summary

MOST_ROWS = 6


def describe(finding: Finding, seed: int) -> str:
    """One difference: what was run on both sides, where the proxy sent it, and both answers."""
    case = finding.case
    lines = [f"--- case {case.number} of seed {seed} ({case.kind})"]
    lines += [f"    {difference}" for difference in finding.differences]
    for step in finding.steps[:-1]:
        lines.append(f"    before: {step.statement.sql}")
    if finding.steps:
        lines += _last(finding.steps[-1])
        lines.append("    route:")
        lines += ["        " + line for line in finding.route.splitlines()]
    return "\n".join(lines)


def _last(step: Step) -> list[str]:
    lines = [f"    shards: {step.statement.sql}"]
    if step.plain_sql and step.plain_sql != step.statement.sql:
        lines.append(f"    plain:  {step.plain_sql}")
    if step.expected is not None:
        lines.append(f"    expected {show(step.expected)}")
    lines.append(f"    got      {show(step.got)}")
    return lines


def show(answer: Answer) -> str:
    """An answer on a few lines."""
    if answer.error is not None:
        return str(answer.error)
    if not answer.columns:
        info = answer.info.decode("utf-8", "replace")
        return f"OK, {answer.affected} rows, insert id {answer.insert_id}, {answer.warnings} warnings {info}"
    names = ", ".join(
        f"{one.name.decode()} (type {one.type}, flags {one.flags:#x}, charset {one.charset}, {one.decimals})"
        for one in answer.columns
    )
    rows = [f"\n             {row}" for row in answer.rows[:MOST_ROWS]]
    more = f"\n             … {len(answer.rows) - MOST_ROWS} more" if len(answer.rows) > MOST_ROWS else ""
    return f"{len(answer.rows)} rows, {answer.warnings} warnings: {names}{''.join(rows)}{more}"


def total(summary: Summary, seconds: float) -> str:
    """What a run has seen."""
    number = sum(summary.statements.values())
    refused = sum(summary.refused.values())
    lines = [f"{summary.cases} cases, {number} statements in {seconds:.1f} s"]
    width = max((len(kind) for kind in summary.statements), default=0)
    for kind, count in sorted(summary.statements.items()):
        failed = summary.failed[kind]
        lines.append(
            f"    {kind:{width}} {count:6d}" + (f"  ({failed} fail on both sides)" if failed else "")
        )
    lines.append(f"refused as documented: {refused} ({100 * refused / max(1, number):.1f} %)")
    for (reason, features), count in sorted(summary.refused.items()):
        lines.append(f"    {reason:{width}} {count:6d}  {features}")
    ignored = f", and {summary.ignored} ignored" if summary.ignored else ""
    lines.append(f"differences: {len(summary.findings)}{ignored}")
    return "\n".join(lines)
