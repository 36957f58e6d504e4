"""The Helm chart: rendered by helm (on PATH, or named by HELM) and read as the cluster and the proxy would.

Without helm these tests are skipped, and pytest's summary says so. Those of the values' schema need no helm.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import shutil
import subprocess
import textwrap
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from config.load import check, load_topology
from config.model import Model as Settings_
from config.schema import Schema
from config.settings import Logging, Settings, Timeouts, User
from config.tls import BackendTls, OutgoingTls
from config.topology import Topology
from demo.certificates import LocalAuthority

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "shardgate"
RULES = ROOT / "docs" / "monitoring" / "shardgate.rules.yaml"
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
HELM = os.environ.get("HELM") or shutil.which("helm")  # `make test` builds one in CI, with .ci/helm

needs_helm = pytest.mark.skipif(HELM is None, reason="no helm: the chart is NOT tested (set HELM)")

Manifest = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=60, check=False)


def template(*arguments: str) -> subprocess.CompletedProcess[str]:
    return helm("template", "test", str(CHART), "--kube-version", "1.30.0", *arguments)


def render(*arguments: str) -> dict[str, Manifest]:
    """The manifests by their kind."""
    done = template(*arguments)
    assert done.returncode == 0, done.stderr
    manifests = [one for one in yaml.safe_load_all(done.stdout) if one]
    found = {one["kind"]: one for one in manifests}
    assert len(found) == len(manifests)
    return found


def example(name: str) -> dict[str, Manifest]:
    return render("-f", str(CHART / "ci" / f"{name}-values.yaml"))


def pod(manifests: dict[str, Manifest]) -> dict[str, Any]:
    spec: dict[str, Any] = manifests["Deployment"]["spec"]["template"]["spec"]
    return spec


def container(manifests: dict[str, Manifest]) -> dict[str, Any]:
    (only,) = pod(manifests)["containers"]
    assert isinstance(only, dict)
    return only


def mount(manifests: dict[str, Manifest], folder: Path, others: dict[str, dict[str, str]]) -> Path:
    """Write the volume `config` as the cluster would; `others`: ConfigMaps and Secrets of somebody else."""
    data = dict(others)
    for kind in ("ConfigMap", "Secret"):
        if kind in manifests:
            one = manifests[kind]
            values = one.get("data", {})
            if kind == "Secret":
                values = {key: base64.b64decode(value).decode() for key, value in values.items()}
            data[f"{kind} {one['metadata']['name']}"] = values
    volume = next(one for one in pod(manifests)["volumes"] if one["name"] == "config")
    for source in volume["projected"]["sources"]:
        kind, reference = next(iter(source.items()))
        values = data[f"{'ConfigMap' if kind == 'configMap' else 'Secret'} {reference['name']}"]
        for item in reference.get("items") or [{"key": key, "path": key} for key in values]:
            path = folder / item["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(values[item["key"]])
    return folder / "shardgate.yaml"


def loaded(
    manifests: dict[str, Manifest], folder: Path, **others: dict[str, str]
) -> tuple[Settings, Schema, Topology | None]:
    """What the proxy makes of it; `others` by kind and name, as in ConfigMap_shard_map."""
    named = {name.replace("_", " ", 1).replace("_", "-"): values for name, values in others.items()}
    settings, schema, topology = check(mount(manifests, folder, named))
    assert schema is not None
    return settings, schema, topology


# -- rendered
# ----------------------------------------------------------------------------------------------------


@needs_helm
@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_lint(values: Path) -> None:
    done = helm("lint", "--strict", str(CHART), "-f", str(values))
    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
def test_a_topology_in_the_config_map(tmp_path: Path) -> None:
    manifests = example("file")
    settings, schema, topology = loaded(manifests, tmp_path)
    assert topology is not None
    assert set(topology.hosts) == {"db1:3306", "db2:3306", "db9:3306"}
    assert [user.name for user in settings.users] == ["app", "report@bi", "analyst"]
    assert [user.secret for user in settings.users] == ['s3cret: "quoted" #1', "0123", None]
    assert settings.backends.user_for("db1:3306") == ("shardgate", "backend")
    assert settings.backends.user_for("db9:3306") == ("local", "other")
    assert settings.backends.user_for("db1:3306", "sg_write") == ("sg_write", "w: 1")
    assert [settings.backends.user_for(f"db{n}:3306", "sg_read")[1] for n in (1, 9)] == ["r", "r9"]
    assert (settings.limits.max_packet, settings.timeouts.drain, settings.workers) == (16 << 20, 90.0, 2)
    assert settings.all_layouts["snowflake"].epoch_ms == 1288834974657
    table = schema.table("demo", "email_to_user")
    assert table is not None
    assert [column.name for column in table.columns] == ["email", "user_id"]
    assert [str(one.address) for one in settings.listen] == ["0.0.0.0:3307"]
    assert str(settings.status.listen) == "0.0.0.0:9307"


@needs_helm
def test_a_topology_in_zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOT_PASSWORD", "root")
    manifests = example("zookeeper")
    assert "Secret" not in manifests
    secret = {"backend-password": "b", "user-app": "a", "root": "root", "zookeeper-password": "z"}
    settings, schema, topology = loaded(manifests, tmp_path, Secret_shardgate_passwords=secret)
    assert topology is None
    assert settings.topology.zookeeper is not None
    assert settings.topology.zookeeper.path == "/prod/shards"
    assert settings.topology.zookeeper.cache_file == Path("/var/lib/shardgate/topology.cache.json")
    assert (settings.topology.zookeeper.user, settings.topology.zookeeper.secret) == ("shards", "z")
    assert [user.secret for user in settings.users] == ["a", "root"]
    assert settings.backends.user_for("db1:3306") == ("shardgate", "b")
    table = schema.table("demo", "users")
    assert table is not None
    assert [column.name for column in table.columns] == ["local_id", "data", "ts"]
    assert container(manifests)["env"][0]["name"] == "ROOT_PASSWORD"


@needs_helm
def test_a_schema_in_zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOT_PASSWORD", "root")
    change = ("--set", "schema=null", "--set", "settings.topology.zookeeper.schema_path=/prod/schema")
    manifests = render("-f", str(CHART / "ci" / "zookeeper-values.yaml"), *change)
    secret = {"backend-password": "b", "user-app": "a", "root": "root", "zookeeper-password": "z"}
    settings, schema, topology = check(mount(manifests, tmp_path, {"Secret shardgate-passwords": secret}))
    assert (settings.schema_file, schema, topology) == (None, None, None)
    assert settings.topology.zookeeper is not None
    assert settings.topology.zookeeper.schema_path == "/prod/schema"
    assert settings.topology.zookeeper.schema_cache_file == Path("/var/lib/shardgate/schema.cache.yaml")


@needs_helm
def test_a_topology_in_somebody_elses_config_map(tmp_path: Path) -> None:
    manifests = example("configmap")
    document = json.dumps({"version": 3, "keyspaces": {"legacy": {"master": "db1:3306"}}})
    settings, _, topology = loaded(manifests, tmp_path, ConfigMap_shard_map={"topology.json": document})
    assert topology is not None
    assert topology.version == 3
    assert settings.backends.user_for("db1:3306") == ("shardgate", "")
    assert "topology.json" not in manifests["ConfigMap"]["data"]


@needs_helm
def test_tls_and_load_balancers(tmp_path: Path) -> None:
    authority = LocalAuthority(tmp_path)
    cert, key = authority.issue()
    change = {
        "proxyProtocol": ["10.0.0.0/8"],
        "settings": {
            "tls": {"cert": str(cert), "key": str(key), "required": True},
            "backends": {"tls": {"ca": str(authority.ca)}, "hosts": {"db9:3306": {"tls": "off"}}},
        },
    }
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(change))
    manifests = render("-f", str(CHART / "ci" / "file-values.yaml"), "-f", str(values))
    settings, _, _ = loaded(manifests, tmp_path / "mounted")
    assert settings.tls is not None
    assert settings.tls.required
    assert settings.backends.tls_for("db1:3306") is not None
    assert settings.backends.tls_for("db9:3306") is None
    [listener] = settings.listen
    assert (str(listener.address), [str(one) for one in listener.proxy_protocol]) == (
        "0.0.0.0:3307",
        ["10.0.0.0/8"],
    )


@needs_helm
def test_the_documented_values(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "operations.md").read_text().partition("A minimal `my-values.yaml`:\n\n")[2]
    lines = itertools.takewhile(lambda line: line.startswith("    ") or not line, text.splitlines())
    values = tmp_path / "values.yaml"
    values.write_text(textwrap.dedent("\n".join(lines)))
    settings, schema, topology = loaded(render("-f", str(values)), tmp_path / "mounted")
    assert [user.name for user in settings.users] == ["app"]
    assert schema.table("shop", "users") is not None
    assert topology is not None


@needs_helm
@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_no_password_is_in_the_config_map(values: Path) -> None:
    settings = yaml.safe_load(render("-f", str(values))["ConfigMap"]["data"]["shardgate.yaml"])
    backends = settings["backends"]
    accounts = backends.get("accounts", [])
    for one in [*settings["users"], backends, *accounts, *backends.get("hosts", {}).values()]:
        assert "password" not in one
        assert sum(name.startswith("password_") for name in one) == 1


@needs_helm
@pytest.mark.parametrize(
    ("drain", "stop", "expected"),
    [("30s", 5, 45), ("1m30s", 5, 105), ("500ms", 0, 11), ("45", 5, 60), ("1h", 10, 3620)],
)
def test_pods_are_given_the_time_to_drain(drain: str, stop: int, expected: int) -> None:
    manifests = render(
        "-f", str(CHART / "ci" / "file-values.yaml"),
        "--set", f"settings.timeouts.drain={drain}", "--set", f"preStopSeconds={stop}",
    )  # fmt: skip
    assert pod(manifests)["terminationGracePeriodSeconds"] == expected
    assert (
        expected > Timeouts.model_validate({"drain": int(drain) if drain.isdecimal() else drain}).drain + stop
    )
    assert container(manifests)["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", str(stop)]


@needs_helm
def test_the_default_time_to_drain_is_the_settings_default() -> None:
    manifests = render("-f", str(CHART / "ci" / "file-values.yaml"), "--set", "settings.timeouts=null")
    assert pod(manifests)["terminationGracePeriodSeconds"] == 5 + int(Timeouts().drain) + 10


@needs_helm
def test_probes_and_ports_fit_together() -> None:
    manifests = render(
        "-f", str(CHART / "ci" / "file-values.yaml"), "--set", "ports.status=19307,ports.mysql=13307"
    )
    one = container(manifests)
    named = {port["name"]: port["containerPort"] for port in one["ports"]}
    assert named == {"mysql": 13307, "status": 19307}
    probes = {name: one[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert probes == {
        "startup": {"path": "/healthz", "port": "status"},
        "liveness": {"path": "/healthz", "port": "status"},
        "readiness": {"path": "/readyz", "port": "status"},
    }
    assert {port["targetPort"] for port in manifests["Service"]["spec"]["ports"]} == set(named)
    settings = yaml.safe_load(manifests["ConfigMap"]["data"]["shardgate.yaml"])
    assert (settings["listen"], settings["status"]["listen"]) == ("0.0.0.0:13307", "0.0.0.0:19307")


@needs_helm
def test_pods_have_no_rights() -> None:
    manifests = example("file")
    assert pod(manifests)["automountServiceAccountToken"] is False
    assert pod(manifests)["securityContext"]["runAsNonRoot"] is True
    assert container(manifests)["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in container(manifests)["volumeMounts"]}
    assert mounts == {"/etc/shardgate": True, "/var/lib/shardgate": False, "/tmp": False}


@needs_helm
def test_the_selectors_select() -> None:
    for name in ("file", "zookeeper", "configmap"):
        manifests = example(name)
        labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
        selectors = [
            manifests["Deployment"]["spec"]["selector"]["matchLabels"],
            manifests["Service"]["spec"]["selector"],
        ]
        if "PodDisruptionBudget" in manifests:
            selectors.append(manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"])
        assert all(selector.items() <= labels.items() for selector in selectors)


@needs_helm
def test_a_disruption_budget_only_where_it_lets_pods_go() -> None:
    assert "PodDisruptionBudget" in example("file")
    assert "PodDisruptionBudget" not in example("zookeeper")  # one replica
    assert "PodDisruptionBudget" not in example("configmap")  # switched off


SWITCHES = ("HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor")


@needs_helm
def test_what_is_switched_on() -> None:
    """All of it in one example; of the others none has any."""
    manifests = example("all")
    name, labels = "test-shardgate", manifests["Deployment"]["spec"]["selector"]["matchLabels"]
    assert {manifests[kind]["metadata"]["name"] for kind in SWITCHES} == {name}

    scaler = manifests["HorizontalPodAutoscaler"]["spec"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 12)
    by_connections, by_cpu = scaler["metrics"]
    assert by_connections["pods"]["target"] == {"type": "AverageValue", "averageValue": "800"}
    metric = by_connections["pods"]["metric"]["name"]
    assert f"| `{metric}` | gauge |" in (ROOT / "docs" / "metrics.md").read_text()
    assert by_cpu["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
    assert container(manifests)["resources"]["requests"]["cpu"]
    assert "replicas" not in manifests["Deployment"]["spec"], "they are the scaler's to set"
    assert "PodDisruptionBudget" in manifests

    monitor = manifests["ServiceMonitor"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert (
        monitor["spec"]["selector"]["matchLabels"].items()
        <= manifests["Service"]["metadata"]["labels"].items()
    )
    job = manifests["Service"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    (down,) = re.findall(r"up\{job=\"(.*)\"\}", RULES.read_text())
    assert job == down, "the alert has the job"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["path"], endpoint["interval"]) == ("/metrics", "30s")
    assert endpoint["port"] in {port["name"] for port in manifests["Service"]["spec"]["ports"]}

    policy = manifests["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    let_in = {rule["ports"][0]["port"]: rule["from"] for rule in policy["ingress"]}
    assert set(let_in) == {port["name"] for port in container(manifests)["ports"]}
    assert let_in["mysql"] == [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}]
    dns, servers = policy["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert {port["port"] for port in servers["ports"]} == {3306, 2181}

    settings = yaml.safe_load(manifests["ConfigMap"]["data"]["shardgate.yaml"])
    mounts = {one["name"]: one["mountPath"] for one in container(manifests)["volumeMounts"]}
    assert settings["tls"] == {
        "cert": f"{mounts['tls']}/tls.crt", "key": f"{mounts['tls']}/tls.key", "required": True,
    }  # fmt: skip
    volume = next(one for one in pod(manifests)["volumes"] if one["name"] == "tls")
    assert volume["secret"]["secretName"] == "shardgate-cert"

    for other in ("file", "zookeeper", "configmap"):
        assert not set(SWITCHES) & set(example(other))


@needs_helm
def test_one_switch_at_a_time() -> None:
    """With what the defaults say, and lists that are empty."""
    values = ("-f", str(CHART / "ci" / "file-values.yaml"), "--set")
    manifests = render(*values, "autoscaling.enabled=true")
    (only,) = manifests["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert only["resource"]["target"]["averageUtilization"] == 70
    down = manifests["HorizontalPodAutoscaler"]["spec"]["behavior"]["scaleDown"]
    assert down["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 60}]
    manifests = render(*values, "networkPolicy.enabled=true")
    policy = manifests["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert [rule["from"] for rule in policy["ingress"]] == [[{"podSelector": {}}]] * 2
    manifests = render(
        *values, "networkPolicy.enabled=true", "--set-json", "networkPolicy.clients=[]",
        "--set-json", "networkPolicy.monitoring=[]",
    )  # fmt: skip
    assert manifests["NetworkPolicy"]["spec"]["ingress"] == []
    manifests = render(*values, "serviceMonitor.enabled=true")
    assert set(SWITCHES) & set(manifests) == {"ServiceMonitor"}


@needs_helm
def test_pods_are_replaced_for_new_settings_but_not_for_a_new_topology() -> None:
    def checksum(*arguments: str) -> str:
        manifests = render("-f", str(CHART / "ci" / "file-values.yaml"), *arguments)
        found: str = manifests["Deployment"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        return found

    first = checksum()
    assert checksum("--set", "topology.version=8") == first
    assert checksum("--set", "settings.limits.in_list=7") != first
    assert checksum("--set", "settings.backends.password=new") != first
    assert checksum("--set", "schema.databases.demo.keyspace=legacy") != first


@needs_helm
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "settings.users: at least one user is needed"),
        (("--set", "settings.users[0].name=app"), "settings.backends.user is needed"),
        (("-f", "file", "--set", "topology=null"), "topology: the document is needed"),
        (("-f", "file", "--set", "schema=null"), "schema"),
        (("-f", "file", "--set", "existingSecret=x"), "then no password may be in settings"),
        (("-f", "file", "--set", "settings.listen=x"), "listen"),
        (("-f", "file", "--set", "settings.limit=1"), "limit"),
        (("-f", "file", "--set", "settings.backends.password=5"), "password"),
        (("-f", "file", "--set", "ports.mysql=0"), "mysql"),
        (("-f", "all", "--set", "autoscaling.minReplicas=13"), "minReplicas is above maxReplicas"),
        (
            ("-f", "all", "--set", "autoscaling.cpu=null,autoscaling.connections=null"),
            "cpu or connections is needed",
        ),
        (("-f", "all", "--set", "resources.requests.cpu=null"), "which is not there"),
        (("-f", "all", "--set", "serviceMonitor.interval=often"), "interval"),
        (("-f", "all", "--set", "networkPolicy.from=x"), "from"),
    ],
)
def test_refused_values(arguments: tuple[str, ...], message: str) -> None:
    examples = {name: str(CHART / "ci" / f"{name}-values.yaml") for name in ("file", "all")}
    done = template(*(examples.get(one, one) for one in arguments))
    assert done.returncode != 0
    assert message in done.stderr


@needs_helm
def test_notes(tmp_path: Path) -> None:
    chart = tmp_path / "shardgate"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "NOTES.txt").rename(chart / "notes.txt")
    (chart / "templates" / "notes.yaml").write_text(
        'kind: Notes\ntext: {{ tpl (.Files.Get "notes.txt") . | quote }}\n'
    )
    for name, topology in (("file", "ConfigMap test-shardgate"), ("zookeeper", "node /prod/shards")):
        done = helm(
            "template", "test", str(chart), "--kube-version", "1.30.0", "--show-only", "templates/notes.yaml",
            "-f", str(CHART / "ci" / f"{name}-values.yaml"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = yaml.safe_load(done.stdout)["text"]
        assert "mysql -h test-shardgate.default -P 3306 -u app -p" in text
        assert topology in text


# -- read
# ----------------------------------------------------------------------------------------------------


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["appVersion"], chart["version"]) == (version, version)


def schema_of(*path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    for name in path:
        found = found["properties"][name]
        found = found.get("items", found)
    return found


def fields(model: type[Settings_]) -> set[str]:
    return {info.alias or name for name, info in model.model_fields.items()}


@pytest.mark.parametrize(
    ("path", "model"),
    [
        (("users",), "User"),
        (("backends",), "Backends"),
        (("backends", "accounts"), "Account"),
        (("topology", "zookeeper"), "ZooKeeper"),
        (("limits",), "Limits"),
        (("timeouts",), "Timeouts"),
        (("xa",), "Xa"),
        (("logging",), "Logging"),
    ],
)
def test_the_values_schema_knows_every_setting(path: tuple[str, ...], model: str) -> None:
    from config import backends, settings

    found = getattr(settings, model, None) or getattr(backends, model)
    assert set(schema_of("settings", *path)["properties"]) == fields(found)


@pytest.mark.parametrize(("name", "model"), [("backendTls", BackendTls), ("outgoingTls", OutgoingTls)])
def test_the_values_schema_knows_tls(name: str, model: type[Settings_]) -> None:
    assert set(schema_of()["definitions"][name]["properties"]) == fields(model)


def test_the_values_schema_knows_all_settings_that_are_not_the_charts() -> None:
    assert set(schema_of("settings")["properties"]) == fields(Settings) - {"listen", "status", "schema"}
    levels = schema_of("settings", "logging")["properties"]["level"]["enum"]
    assert [Logging(level=level).level for level in levels] == levels
    modes = schema_of("settings", "users")["properties"]["transaction_mode"]["enum"]
    assert modes == list(get_args(User.model_fields["transaction_mode"].annotation))


def test_every_value_has_a_schema_and_a_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(schema_of()["properties"]) - {"global"}


def test_the_examples_topology_is_one() -> None:
    given = yaml.safe_load((CHART / "ci" / "file-values.yaml").read_text())
    assert load_topology(given["topology"]).version == 7
