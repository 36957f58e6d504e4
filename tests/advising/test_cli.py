"""`shardgate advise` as it is called."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from proxy.advising.findings import findings
from proxy.advising.report import About, Report
from proxy.cli import app

from .world import Read, configuration

LOG = Path(__file__).with_name("shop.txt")
DOCS = (Path(__file__).parents[2] / "docs" / "advice.md").read_text()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return configuration(tmp_path)


def run(config: Path, *arguments: str, status: int = 0, given: bytes | None = None) -> str:
    result = CliRunner().invoke(app, ["advise", "--config", str(config), *arguments], input=given)
    assert result.exit_code == status, result.output
    return result.output


def test_the_documents_example_is_what_it_prints(config: Path) -> None:
    shown = run(config, str(LOG))
    assert f"```text\n{shown.rstrip()}\n```" in DOCS


def test_every_option_is_documented() -> None:
    commands: Any = typer.main.get_command(app)
    options = {
        name for one in commands.commands["advise"].params for name in one.opts if name.startswith("-")
    }
    assert {name for name in options if f"`{name}" not in DOCS} == set()


def test_json(config: Path) -> None:
    found = json.loads(run(config, str(LOG), "--json"))
    assert found["log"] == {
        "name": "shop.txt",
        "format": "general log",
        "bytes": LOG.stat().st_size,
        "version": "8.0.36",
        "not_looked_at": {},
    }
    assert (found["kinds"], found["executions"], found["estimated"]) == (12, 46, True)
    assert found["groups"]["scatter"] == {"kinds": 3, "executions": 14, "seconds": None}
    assert sum(one["executions"] for one in found["groups"].values()) == 46
    first = found["changes"][0]
    assert (first["title"], first["kinds"], first["executions"]) == (
        "orders: every row on the shard of its `user_id`",
        2,
        12,
    )
    assert first["then"]["shards"] == 1
    by_email = next(one for one in found["statements"] if "email" in one["digest"])
    assert (by_email["count"], by_email["shards"], by_email["plan"]) == (4, 64, "scatter")
    assert by_email["advice"][0]["sql"] == [
        "SELECT user_id FROM email_to_user WHERE email = ?",
        "SELECT … FROM users WHERE id = ?",
    ]
    refused = next(one for one in found["statements"] if one["digest"].startswith("UPDATE"))
    assert refused["error"][0].startswith("1105 (HY000)")


def test_no_value_is_printed(config: Path) -> None:
    for arguments in ((), ("--json",), ("--all",)):
        shown = run(config, str(LOG), *arguments)
        assert not any(value in shown for value in ("mail.test", "urgent", "SPRING"))


@pytest.mark.parametrize("width", [80, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    read = Read(LOG)
    about = About("shop.txt", "general log", read.size)
    lines = list(Report(width, 20, everything=True).lines(about, read.tally, findings(read.tally), {"x": 3}))
    assert max(len(line.text) for line in lines) < width
    assert sum(line.text.startswith("    → ") for line in lines) >= 6
    titles = [line.text for line in lines if line.style.startswith("bold") and line.text]
    assert any(text.startswith("One shard") for text in titles)  # --all


def test_at_most_so_many(config: Path) -> None:
    shown = run(config, str(LOG), "--limit", "1")
    assert "… and 2 kinds more (--limit)" in shown


def test_compressed_by_stdin_with_a_format_and_another_database(config: Path) -> None:
    sql = b"USE old_shop; SELECT * FROM users WHERE id = 5; SELECT * FROM users WHERE id = 6;"
    shown = run(config, "-", "--format", "sql", "--database", "shop", "--all", given=gzip.compress(sql))
    assert shown.startswith("stdin: SQL, ")
    assert "2 times · 1 shard each, 2 in all · in shop" in shown


def test_a_database_that_the_schema_does_not_have(config: Path) -> None:
    sql = b"USE old_shop; SELECT * FROM users WHERE id = 5;"
    shown = run(config, "-", given=sql)
    assert "1049 (42000): Unknown database 'old_shop'" in shown
    assert "→ name database old_shop in the schema" in " ".join(shown.split())
    assert "the schema has no database 'none': it has shop" in run(config, "-D", "none", "-", status=2)


def test_what_cannot_be_read_is_said(config: Path, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in run(config, str(tmp_path / "none.log"), status=2)
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"SELECT 1;" * 1000)[:-20])
    assert "cannot be read" in run(config, str(broken), status=2)
    broken.write_bytes(b"\x1f\x8bnothing")
    assert "cannot be read" in run(config, str(broken), status=2)
    empty = tmp_path / "empty.log"
    empty.write_bytes(b"-- nothing\n")
    shown = run(config, str(empty), status=1)
    assert "there is no statement in" in shown
    empty.write_bytes(b"nothing of this kind\n")
    shown = run(config, str(empty), "--format", "general", status=1)
    assert "not looked at: lines that are none of this format's: 1" in shown


def test_what_is_no_log_is_no_sql_either(config: Path, tmp_path: Path) -> None:
    """It was one report of refused statements, and exit status 0."""
    file = tmp_path / "proxy.log"
    file.write_text('{"event": "serving", "pid": 1}\n{"event": "slow statement", "digest": "SELECT ?"}\n')
    for shown in (run(config, str(file), status=1), run(config, str(file), "--json", status=1)):
        assert "proxy.log is no log of statements: read as SQL (81 B), none of 1 piece can be" in shown
        assert "give --format if it is something else\n  1064 (42000)" in shown
    file.write_bytes(Path("/bin/sh").read_bytes())
    assert "is no log of statements" in run(config, str(file), status=1)
    file.write_text("SELECT 1; " + "what is this?; " * 12)
    assert "1 of 13 pieces can be understood" in run(config, str(file), status=1)
    file.write_text("SELECT 1; what is this?;")
    assert "1064 (42000)" in run(config, str(file))  # a typing error among statements


def test_what_is_in_zookeeper_is_asked_for(config: Path, tmp_path: Path) -> None:
    text = config.read_text().replace(
        "topology: {file: topology.json}",
        "topology: {zookeeper: {hosts: 'zk:2181', path: /shardgate/topology}}",
    )
    config.write_text(text)
    assert "give --topology FILE" in run(config, str(LOG), status=2)
    assert "46 executions" in run(config, str(LOG), "--topology", str(tmp_path / "topology.json"))


def test_a_terminal_obeys_nothing_of_the_log(config: Path, tmp_path: Path) -> None:
    """Applications' users have their words in a log."""
    log = tmp_path / "evil.sql"
    log.write_bytes(
        b"SELECT \x1b]0;x\x07 1;\nSELECT * FROM `t\x1b[2J\xe2\x80\xae` JOIN pins;\n"
        b"SELECT * FROM orders\n WHERE `x\xc2\x9b31m` = 1;\n"
    )
    for arguments in ((), ("--all",)):
        shown = run(config, str(log), *arguments)
        assert all(one.isprintable() for one in shown.split("\n"))
        assert "FROM `t\ufffd[2J\ufffd` JOIN pins" in shown


def test_explain_shows_the_very_text(config: Path) -> None:
    """Brackets and colons in a statement are none of the terminal's."""
    said = "'[/b]', ':smile:', `x[bold]`, JSON_EXTRACT(data, '$.a[last]')"
    for sql, shows in ((f"SELECT {said} FROM users WHERE id = 1", True), ("SELECT \x1b[2J", False)):
        result = CliRunner().invoke(app, ["explain", "--config", str(config), sql])
        assert result.exit_code == 0, result.output
        assert (said in " ".join(result.output.split())) is shows
        assert "\x1b" not in result.output
