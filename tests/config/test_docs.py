"""docs/configuration.md: its examples load, every setting is in it, and its defaults are the code's."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic.fields import FieldInfo

from config.document import parse
from config.load import ConfigError, load_schema, load_settings, load_topology
from config.model import Model
from config.read_schema import SchemaFields, TableFields
from config.read_topology import RangeFields, Sharded, TopologyFields, Unsharded
from config.settings import Scatter, Settings
from demo.certificates import LocalAuthority
from tests.config.test_settings import LEAST

TEXT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
BLOCKS = re.findall(r"^```(?:yaml|json) ([a-z ]+)\n(.*?)^```$", TEXT, re.M | re.S)
ROWS = re.findall(r"^\| `([^`]+)` \| (.+?) \| (required|`[^`]*`) \| ?(.*?) ?\|$", TEXT, re.M)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files and variables that the examples name."""
    for name in ("backend-password", "root-password"):
        (tmp_path / name).write_text("secret\n")
    authority = LocalAuthority(tmp_path)
    authority.issue(file="proxy")
    authority.ca.rename(tmp_path / "hosts-ca.pem")
    monkeypatch.setenv("OTLP_AUTHORIZATION", "Bearer secret")
    for name in ("APP", "REPORT", "SHOP", "SHARDGATE", "SG_READ", "SG_WRITE", "SG_SHOP", "ZOOKEEPER"):
        monkeypatch.setenv(f"{name}_PASSWORD", "secret")
    return tmp_path


@pytest.mark.parametrize(("kind", "text"), BLOCKS, ids=[f"{i} {kind}" for i, (kind, _) in enumerate(BLOCKS)])
def test_examples_load(kind: str, text: str, folder: Path) -> None:
    match kind:
        case "settings":
            load_settings(text.encode(), base=folder)
        case "settings part":
            part = parse(text).value
            assert isinstance(part, dict)
            load_settings(LEAST | part, base=folder)
        case "schema":
            load_schema(text.encode())
        case "topology":
            load_topology(text.encode())
        case _:
            raise AssertionError(kind)


def test_there_are_examples_of_everything_that_fit_together(folder: Path) -> None:
    of_kind: dict[str, list[bytes]] = {}
    for kind, text in BLOCKS:
        of_kind.setdefault(kind, []).append(text.encode())
    assert {kind: len(found) for kind, found in of_kind.items()} == {
        "settings": 1,
        "settings part": 9,
        "schema": 2,
        "topology": 4,
    }
    for schema, topology in zip(of_kind["schema"], of_kind["topology"], strict=False):
        load_topology(topology, schema=load_schema(schema))


def settings_of(model: type[Model] = Settings, before: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its name as the document has it: users[].name, backends.hosts.HOST.user."""
    for name, info in model.model_fields.items():
        path = f"{before}{info.alias or name}"
        inner = [one for one in models(info.annotation) if one is not Scatter]
        if not inner or not is_plain(info.annotation):
            yield path, info
        form = str(info.annotation)
        joint = "[]." if "tuple[" in form else ".HOST." if "HostOver" in form else "."
        if "LayoutSettings" in form:
            joint = ".NAME."
        if "dict[str, config.credentials.Credentials]" in form:
            joint = ".USER."
        if "config.tracing.Header" in form:
            joint = ".HEADER."
        if path == "fleet.hosts":
            joint = ".HOST."
        for one in inner:
            if path != "backends.hosts.HOST.tls":  # has the fields of backends.tls
                yield from settings_of(one, path + joint)


def names() -> Iterator[str]:
    """The names alone."""
    return (name for name, _ in settings_of())


def models(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for one in get_args(annotation):
        yield from models(one)


def is_plain(annotation: Any) -> bool:
    """Whether a field is just a group of others, with nothing to say of itself."""
    return isinstance(annotation, type) and issubclass(annotation, Model)


def test_every_setting_is_documented_and_no_other() -> None:
    documented = {row[0] for row in ROWS}
    wanted = set(names())
    assert wanted - documented == set()
    assert documented - wanted == {"topology", "users[].scatter.limit"}
    assert len(documented) == len(ROWS)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    cert, key = LocalAuthority(tmp_path_factory.mktemp("tls")).issue()
    return {"cert": str(cert), "key": str(key)}


def document_with(name: str) -> tuple[dict[str, Any], Any, str | int]:
    """A document with all optional groups; the mapping or list in it that holds the setting, and its key."""
    document: dict[str, Any] = {
        "users": [{"name": "app"}],
        "backends": {"user": "proxy", "hosts": {"HOST:3306": {}}},
        "topology": {"file": "t"} if name == "topology.zookeeper" else {"zookeeper": {"hosts": "zk"}},
        "schema": "s",
        "listen": [{"address": "127.0.0.1:3307"}],
        "layouts": {"NAME": {"fields": {"shard": 28, "local": 36}}},
    }
    document["users"][0] |= {"password_env": "PATH"} if name == "users[].password" else {"password": "x"}
    if name == "schema":
        document["topology"]["zookeeper"]["schema_path"] = "/schema"
    if name.startswith("backends.accounts[]"):
        document["backends"]["accounts"] = [{"user": "sg", "role": "write", "password": "x"}]
        if ".password" in name:
            del document["backends"]["accounts"][0]["password"]
    if name.startswith("backends.hosts.HOST.accounts"):
        document["backends"]["accounts"] = [{"user": "USER", "role": "write"}]
    if name.startswith("tracing."):
        document["tracing"] = {"endpoint": "https://collector:4318"}
        if ".HEADER." in name:
            document["tracing"]["headers"] = {
                "HEADER": {"env" if name.endswith("value") else "value": "PATH"}
            }
    if name.startswith("fleet.") and name != "fleet.user":
        document["fleet"] = {"user": "fleet"}
    parts = re.findall(r"[^.\[\]]+|\[\]", name)
    path: list[str | int] = [0 if part == "[]" else part.replace("HOST", "HOST:3306") for part in parts]
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key] if isinstance(key, int) else holder.setdefault(key, {})
    return document, holder, path[-1]


CHECKED = [row for row in ROWS if row[0] != "users[].scatter.limit"]


@pytest.mark.parametrize("row", CHECKED, ids=[row[0] for row in CHECKED])
def test_documented_defaults_are_the_defaults(row: tuple[str, ...], certificate: dict[str, str]) -> None:
    """Setting a field to its documented default changes nothing; a required one cannot be left out."""
    name, _, default, _ = row
    document, holder, key = document_with(name)
    if name.startswith("tls."):
        holder |= certificate
    holder.pop(key, None)
    if default == "required":
        with pytest.raises(ConfigError, match=r"is missing|must"):
            load_settings(document, base=Path("/base"))
        return
    before = load_settings(copy.deepcopy(document), base=Path("/base"))
    value = parse(f"x: {default.strip('`')}").value
    assert isinstance(value, dict)
    holder[key] = value["x"]
    assert load_settings(document, base=Path("/base")) == before


BOOLEANS = [name for name, info in settings_of() if info.annotation is bool]


@pytest.mark.parametrize("name", BOOLEANS)
@pytest.mark.parametrize("value", ["yes", "no", "on", "0", "true", 1, 0])
def test_booleans_are_true_and_false_only(name: str, value: object, certificate: dict[str, str]) -> None:
    document, holder, key = document_with(name)
    if name.startswith("tls."):
        holder |= certificate
    holder[key] = value
    with pytest.raises(ConfigError, match=r"must be true or false"):
        load_settings(document, base=Path("/base"))


def test_all_booleans_are_known() -> None:
    assert sorted(BOOLEANS) == [
        "backends.comment", "tls.required", "tracing.hand_on", "users[].require_tls", "xa.enabled"
    ]  # fmt: skip


def test_every_field_of_the_schema_and_the_topology_is_documented() -> None:
    parts = (SchemaFields, TableFields, TopologyFields, Sharded, Unsharded, RangeFields)
    fields = {info.alias or name for part in parts for name, info in part.model_fields.items()}
    start = TEXT.index("## The schema")
    written = set(re.findall(r"`([a-z_]+)`", TEXT[start:])) | {"tables", "kind"}
    assert fields - written == set()
    assert "databases.NAME.tables" in TEXT
