"""Commands whose output has an encoding without the characters that they print."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.printable import simplify
from tests.advising.world import configuration

HERE = Path(__file__).parents[2]
LOG = HERE / "tests" / "advising" / "shop.txt"


def run(encoding: str, *arguments: str) -> bytes:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "proxy", *arguments]
    done = subprocess.run(command, env=environment, cwd=HERE, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_reports_have_others_in_their_place(tmp_path: Path) -> None:
    config = str(configuration(tmp_path))
    shown = run("ascii", "advise", "--config", config, str(LOG))
    assert b"> keep every row of orders on the shard" in shown
    assert b"9 times | 64 shards each, 576 in all | in shop" in shown
    assert b"orders: {..., colocate: {column: user_id" in shown
    shown = run("ascii", "explain", "--config", config, "SELECT '\u00e9' FROM users WHERE id = 1")
    assert b"SELECT '?'" in shown


def test_documents_are_what_they_are(tmp_path: Path) -> None:
    config = str(configuration(tmp_path))
    found = run("ascii", "advise", "--json", "--config", config, str(LOG))
    assert "SELECT … FROM users" in json.dumps(json.loads(found), ensure_ascii=False)
    text = (tmp_path / "schema.yaml").read_text() + "# é\n"
    (tmp_path / "schema.yaml").write_text(text)
    assert run("ascii", "schema", "get", "--config", config).decode() == text
    assert run("ascii", "topology", "get", "--config", config) == (tmp_path / "topology.json").read_bytes()


@pytest.mark.parametrize(
    ("encoding", "errors", "written"),
    [
        ("ascii", "strict", b"ma~ {...} ..."),
        ("latin-1", "surrogateescape", b"ma~ {...} ..."),
        ("ascii", "backslashreplace", rb"ma\u2026 {\u2026} \u2026"),
        ("utf-8", "strict", "ma… {…} …".encode()),
    ],
)
def test_what_is_written(encoding: str, errors: str, written: bytes) -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding, errors) as stream:
        simplify(stream)
        stream.write("ma… {…} …")
        stream.flush()
        assert raw.getvalue() == written
