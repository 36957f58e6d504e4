"""A host is away, and then one dies at work: what C libraries and drivers show of the proxy's error.

libmariadb takes an error of 2000 to 2999 for a broken packet; drivers and frameworks take some errors for a
lost connection, which this one is not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from proxy.errors import REGISTRY
from tests.conftest import StartDemo
from tests.drivers.catalog import CLIENTS, PYTHON, environment
from tests.support.demo import Demo, gone
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

DRIVERS = {
    "mysqlclient": "MySQLdb",
    "pymysql": "pymysql",
    "connector": "mysql.connector",
    "sqlalchemy": "sqlalchemy, MySQLdb",
    "django": "django, MySQLdb",
}
AWAY = "SELECT COUNT(*) FROM users WHERE id = 211312390963205"  # shard 3
THERE = "SELECT COUNT(*) FROM users WHERE id = 206158430213"  # shard 0


def shells() -> list[list[str]]:
    """The command line clients: Debian's, on libmariadb, and MySQL's own."""
    found = []
    if path := shutil.which("mariadb"):
        found.append([path, "--no-defaults", "--skip-ssl"])
    if folder := os.environ.get("SHARDGATE_MYSQL9"):
        found.append([f"{folder}/mysql", "--no-defaults", "--ssl-mode=DISABLED", "--get-server-public-key"])
    return found


def ask(demo: Demo, shell: list[str], sql: str) -> subprocess.CompletedProcess[str]:
    argv = [
        *shell,
        "-h",
        demo.host,
        "-P",
        str(demo.port),
        "--protocol=tcp",
        "-udemo",
        "-pdemo",
        "--force",
        "-N",
        "demo",
    ]
    return subprocess.run(argv, input=sql, capture_output=True, text=True, timeout=100, check=False)


def lives_on(demo: Demo, driver: str, folder: Path, code: int, text: str) -> None:
    description = folder / "description.json"
    place = {"host": demo.host, "port": demo.port, "user": "demo", "password": "demo"}
    description.write_text(json.dumps({**place, "away": AWAY, "there": THERE}))
    argv = [str(PYTHON), str(CLIENTS / "python/lost.py"), driver, str(description)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["code"] == str(code), told
    assert text in told["text"]
    assert told["alive"], told
    assert told["there"] == "0"


def test_a_host_that_is_away_or_dies(start_demo: StartDemo, tmp_path: Path) -> None:
    demo = start_demo("--shards", "4", "--empty")
    second = demo.masters[1]
    # one that dies while a statement is at work there
    sleeping = AWAY.replace("COUNT(*)", "COUNT(*), SLEEP(60)")
    answers: list[subprocess.CompletedProcess[str]] = []
    asking = [
        threading.Thread(
            target=lambda shell=shell: answers.append(ask(demo, shell, f"{sleeping};\n{THERE};\n"))
        )
        for shell in shells()
    ]
    for one in asking:
        one.start()

    def at_work() -> bool:
        with demo.direct(1) as own, own.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(60) FROM%'"
            )
            return int(str((cursor.fetchone() or (0,))[0])) > len(asking)  # and this one

    wait_until(at_work, "the statements")
    os.kill(second.pid, signal.SIGKILL)
    wait_until(lambda: gone(second.pid), "its end")
    for one in asking:
        one.join(60)
    for answer in answers:
        kind = REGISTRY["host_lost"]
        assert f"ERROR {kind.code} ({kind.sqlstate})" in answer.stderr, answer
        assert f"Lost connection to MySQL server {second.address} during query" in answer.stderr
        assert answer.stdout.strip() == "0"  # and went on
    assert len(answers) == len(shells())

    kind = REGISTRY["host_unreachable"]
    for shell in shells():
        answer = ask(demo, shell, f"SELECT CONNECTION_ID();\n{AWAY};\nSELECT CONNECTION_ID();\n{THERE};\n")
        assert f"ERROR {kind.code} ({kind.sqlstate})" in answer.stderr, answer
        assert f"Can't connect to MySQL server {second.address}" in answer.stderr
        before, after, there = answer.stdout.split()
        assert (before, there) == (after, "0")
    skipped = []
    for driver, modules in DRIVERS.items():
        if (
            not PYTHON.exists()
            or subprocess.run([PYTHON, "-c", f"import {modules}"], capture_output=True).returncode
        ):
            skipped.append(driver)
            continue
        lives_on(demo, driver, tmp_path, kind.code, f"Can't connect to MySQL server {second.address}")
    if skipped:
        pytest.skip(f"not here: {', '.join(skipped)}; the others were tried")
