"""The Prometheus rules and the Grafana dashboard: they are valid, and about metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
METRICS = (FOLDER.parent / "metrics.md").read_text()
KNOWN = set(re.findall(r"^\| `(shardgate_\w+)` \|", METRICS, re.MULTILINE))
NAME = re.compile(r"\bshardgate_\w+")
promtool = shutil.which("promtool")


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "shardgate.rules.yaml").read_text())["groups"]
    return list(group["rules"])


def dashboard() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "shardgate.dashboard.json").read_text()))


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in dashboard()["panels"] for target in panel["targets"])
    yield from (one["expr"] for one in dashboard()["annotations"]["list"])


def test_all_metrics_are_known() -> None:
    assert len(KNOWN) > 50
    for expression in expressions():
        used = {re.sub("_(bucket|sum|count)$", "", name) for name in NAME.findall(expression)}
        assert used <= KNOWN | {"shardgate_client_connections"}, expression


def test_alerts_say_what_is_wrong_and_how_bad_it_is() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    for rule in alerts:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]
        assert f"`{rule['alert']}`" in METRICS, rule["alert"]


def test_the_dashboards_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)


@pytest.mark.skipif(promtool is None, reason="needs promtool (Debian: apt-get install prometheus)")
@pytest.mark.parametrize(
    "command", [["check", "rules", "shardgate.rules.yaml"], ["test", "rules", "shardgate.rules.test.yaml"]]
)
def test_promtool_agrees(command: list[str]) -> None:
    assert promtool is not None
    done = subprocess.run([promtool, *command], cwd=FOLDER, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(promtool is None, reason="needs promtool (Debian: apt-get install prometheus)")
def test_prometheus_reads_the_dashboards_expressions(tmp_path: Path) -> None:
    found = [
        target["expr"].replace("$__rate_interval", "1m")
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    ]
    made = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(found)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": made}]}))
    assert promtool is not None
    done = subprocess.run(
        [promtool, "check", "rules", "rules.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
