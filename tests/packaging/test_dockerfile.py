"""The Dockerfile read as data: what is copied exists and may be sent, and the image runs without rights.

No container engine is needed; building the image is left to those who have one.
"""

from __future__ import annotations

import fnmatch
import json
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Instruction = tuple[str, str]


def instructions() -> list[list[Instruction]]:
    """The stages, each a list of (instruction, rest of the line); what comes before FROM is a stage, too."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    stages: list[list[Instruction]] = [[]]
    for line in joined:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest.strip()))
    return stages


def of(stage: list[Instruction], word: str) -> list[str]:
    return [rest for name, rest in stage if name == word]


def copied(stage: list[Instruction]) -> list[str]:
    """What is copied from the folder of the Dockerfile."""
    found = []
    for rest in of(stage, "COPY"):
        if not rest.startswith("--from="):
            found += shlex.split(rest)[:-1]
    return found


def sent(path: str) -> bool:
    """Whether .dockerignore lets a path through; the last pattern that fits decides."""
    kept = True
    for pattern in (ROOT / ".dockerignore").read_text().splitlines():
        if not pattern or pattern.startswith("#"):
            continue
        name = pattern.removeprefix("!").removeprefix("**/")
        if any(fnmatch.fnmatch(part, name) for part in (path, path.split("/")[0], path.split("/")[-1])):
            kept = pattern.startswith("!")
    return kept


def test_every_instruction_is_known() -> None:
    known = {
        "ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "LABEL", "USER", "EXPOSE", "STOPSIGNAL",
        "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert {word for stage in instructions() for word, _ in stage} <= known


def test_what_is_copied_exists_and_is_sent() -> None:
    sources = [source for stage in instructions() for source in copied(stage)]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert sent(source), source


def test_every_package_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    needed = packages | {
        "pyproject.toml",
        "setup.py",
        project["project"]["readme"],
        project["project"]["license"]["file"],
    }
    assert {source for stage in instructions() for source in copied(stage)} == needed


@pytest.mark.parametrize(
    "path", [".git", ".venv", "tests", "bench", "docs", "proxy/__pycache__", "a.pyc", "helm"]
)
def test_what_the_image_does_not_need_is_not_sent(path: str) -> None:
    assert not sent(path)


def test_the_image_is_slim_and_runs_without_rights() -> None:
    *_, build, final = instructions()
    assert of(build, "FROM")[0].endswith("-slim-bookworm AS build")
    assert of(final, "FROM")[0].endswith("-slim-bookworm")
    assert copied(final) == []
    assert not any(word in rest for rest in of(final, "RUN") for word in ("pip install", "apt-get", "gcc"))
    (user,) = of(final, "USER")
    assert [int(number) > 0 for number in user.split(":")] == [True, True]
    names = [word for word, _ in final]
    assert names.index("USER") < names.index("ENTRYPOINT")


def test_the_loops_in_c_are_compiled_where_they_are_built_only() -> None:
    *_, build, final = instructions()
    installed = of(build, "RUN")[0]
    assert "apt-get install" in installed
    assert {"gcc", "libc6-dev"} <= set(installed.split())
    last = of(build, "RUN")[-1]
    assert "assert COMPILED" in last, "an image without them is not made"
    assert not any(source.startswith("/usr") for source in of(final, "COPY"))


def test_what_it_runs() -> None:
    final = instructions()[-1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (command,) = json.loads(of(final, "ENTRYPOINT")[0])
    assert command in project["scripts"]
    assert json.loads(of(final, "CMD")[0]) == ["serve", "--config", "/etc/shardgate/shardgate.yaml"]
    check = json.loads(of(final, "HEALTHCHECK")[0].partition("CMD ")[2])
    compile(check[-1], "HEALTHCHECK", "exec")
