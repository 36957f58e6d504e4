"""The Dockerfile's steps, taken one by one in a bare root: no container engine, but chroot and namespaces.

In the root are this machine's /usr, read only, an /etc of a few files, and what the steps make. Two things
are stood in for: apt-get (the compiler is this machine's) and the download of the dependencies, which are
those of the tests; that they satisfy the list which the step has made is checked. The image's process runs as
the image says: user, environment, folder, command, in a network of its own; and so does its health check.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_dockerfile import Instruction, instructions
from tests.support.compiler import may_compile
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
SITE = Path(pytest.__file__).parents[1]
#: The PATH of the image that this one is built on.
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Makes the root's file systems and its loopback, then becomes the command. Arguments: the root, the command.
ENTER = """
set -e
root=$1; shift
for one in /usr /dev /proc {site} {base}; do mkdir -p "$root$one"; mount --rbind "$one" "$root$one"; done
mount -o remount,bind,ro "$root/usr"; mount -o remount,bind,ro "$root{site}"
{python} - <<'END'
import fcntl, socket, struct
request = struct.pack("16sh", b"lo", 0x41)
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, request + b"\\0" * 14)
END
exec "$@"
"""

#: In the place of pip. Dependencies are looked at, not fetched; the package itself is built and installed.
PIP = """#!{python}
import pathlib, subprocess, sys
words = sys.argv[1:]
if "uninstall" in words:
    sys.exit()
sys.path.insert(0, "{site}")
if "--requirement" in words:
    from importlib.metadata import version
    from packaging.requirements import Requirement
    for line in pathlib.Path(words[-1]).read_text().splitlines():
        wanted = Requirement(line)
        assert wanted.specifier.contains(version(wanted.name)), line
    target = pathlib.Path(words[words.index("--python") + 1]).parents[1]
    (folder,) = target.glob("lib/python*/site-packages")
    (folder / "dependencies.pth").write_text("{site}\\n")
else:
    more = ["--no-build-isolation", "--no-index", "--quiet"]
    environment = {{"PYTHONPATH": "{site}", "PATH": "{path}", "CFLAGS": "-O0 -g0"}}  # to optimize takes long
    sys.exit(subprocess.run([sys.executable, "-m", "pip", *words, *more], env=environment).returncode)
"""


def may_enter() -> bool:
    """Whether this machine lets the tests have namespaces."""
    try:
        done = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0 and os.getuid() == 0


class Image:
    """The root in `folder`, while a stage's instructions are carried out in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.variables: dict[str, str] = {"PATH": PATH}
        self.user, self.workdir = "0:0", "/"
        self.said: dict[str, str] = {}  # what is not carried out: ENTRYPOINT, CMD, HEALTHCHECK …
        python = os.path.realpath(sys.executable)
        self._enter = ENTER.format(site=SITE, base=sys.base_prefix, python=python)
        for name in ("etc", "tmp", "stand-in"):
            (folder / name).mkdir(parents=True)
        (folder / "tmp").chmod(0o1777)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                (folder / name).symlink_to(f"usr/{name}")
        for name in ("passwd", "group", "shadow", "gshadow", "login.defs", "ld.so.cache"):
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), folder / "etc" / name)
        words = {"python": python, "site": SITE, "path": PATH}
        for name, text in (
            ("pip", PIP.format(**words)),
            ("python", f'#!/bin/sh\nexec {python} "$@"\n'),
            ("apt-get", "#!/bin/sh\n"),
        ):
            program = folder / "stand-in" / name
            program.write_text(text)
            program.chmod(0o755)

    def at(self, path: str) -> Path:
        """Where a path of the image is."""
        return self.root / os.path.join(self.workdir, path).lstrip("/")

    def argv(self, command: list[str], user: str | None = None) -> list[str]:
        """What runs a command inside, as `user` or whom the image names."""
        values = self.variables | ({"PATH": f"/stand-in:{self.variables['PATH']}"} if user == "0:0" else {})
        inside = ["/usr/bin/env", "-i", "-C", self.workdir, *(f"{k}={v}" for k, v in values.items())]
        uid, gid = (user or self.user).split(":")
        change = ["chroot", "--groups=", f"--userspec=+{uid}:+{gid}", str(self.root)]
        return ["sh", "-c", self._enter, "enter", str(self.root), *change, *inside, *command]

    def run(self, command: list[str], user: str | None = None) -> subprocess.CompletedProcess[str]:
        argv = ["unshare", "--mount", "--net", *self.argv(command, user)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)

    def take(self, instruction: Instruction, other: Image | None) -> None:
        """Carry one instruction out. `other`: the stage before."""
        word, rest = instruction
        if word == "ENV":
            for one in shlex.split(rest):
                name, _, value = one.partition("=")
                self.variables[name] = value.replace("$PATH", self.variables["PATH"])
        elif word == "WORKDIR":
            self.workdir = rest
            self.at("").mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            self.user = rest
        elif word == "COPY":
            *sources, target = [one for one in shlex.split(rest) if not one.startswith("--from=")]
            of_stage = "--from=" in rest
            assert other is not None or not of_stage
            for source in sources:
                path = other.root / source.lstrip("/") if of_stage and other is not None else ROOT / source
                self._copy(path, self.at(target) / (path.name if target.endswith("/") else ""))
        elif word == "RUN":
            done = self.run(["sh", "-c", re.sub(r"rm -rf /var/lib/apt/lists/\*", "true", rest)], "0:0")
            assert done.returncode == 0, f"{rest}\n{done.stdout}{done.stderr}"
        else:
            self.said[word] = rest

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        if source.is_dir():
            ignored = shutil.ignore_patterns("*.so", "__pycache__") if ROOT in source.parents else None
            shutil.copytree(source, target, symlinks=True, ignore=ignored)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Both stages, built."""
    if not may_enter():
        pytest.skip("no root, or no namespaces: the image's steps are NOT run")
    if not may_compile():
        pytest.skip("no compiler, or no headers of Python: the image's steps are NOT run")
    folder = tmp_path_factory.mktemp("image")
    folder.parent.chmod(0o755)
    before: Image | None = None
    for number, (_from, *steps) in enumerate(instructions()[1:]):
        assert _from[0] == "FROM"
        stage = Image(folder / f"stage{number}")
        stage.root.chmod(0o755)
        for step in steps:
            stage.take(step, before)
        before = stage
    assert before is not None
    return before


def test_what_is_in_it(image: Image) -> None:
    """The program of the copied sources, whole, which its user cannot change."""
    done = image.run(["shardgate", "id", "241294492511762325"])
    assert done.returncode == 0, done.stderr
    assert "3429" in done.stdout
    ask = "import os, proxy.app as a, proxy.wire.row_packets as r; print(a.__file__, r.COMPILED, os.getuid())"
    where, compiled, user = image.run(["python", "-c", ask]).stdout.split()
    assert where.startswith("/opt/shardgate/lib/python")
    assert (compiled, user) == ("True", "10001")
    for path, writable in (("/opt/shardgate", False), ("/var/lib/shardgate", True), ("/", False)):
        assert (image.run(["sh", "-c", f"touch {path}/x"]).returncode == 0) == writable, path


def test_it_runs_and_is_found_healthy(image: Image) -> None:
    """ENTRYPOINT, CMD, HEALTHCHECK and STOPSIGNAL. No server of the topology answers, which is no illness."""
    etc = image.root / "etc/shardgate"
    documents = {
        "shardgate.yaml": {
            "listen": "0.0.0.0:3307",
            "status": {"listen": "0.0.0.0:9307"},
            "workers": 1,
            "users": [{"name": "app", "password": "app"}],
            "backends": {"user": "shardgate", "password": ""},
            "topology": {"file": "topology.yaml"},
            "schema": "schema.yaml",
        },
        "schema.yaml": {"databases": {"legacy": {"keyspace": "legacy"}}},
        "topology.yaml": {"version": 1, "keyspaces": {"legacy": {"master": "127.0.0.1:1"}}},
    }
    for name, document in documents.items():
        (etc / name).write_text(json.dumps(document))
    command = [*json.loads(image.said["ENTRYPOINT"]), *json.loads(image.said["CMD"])]
    log = image.root / "log"
    with log.open("wb") as output:
        argv = ["unshare", "--mount", "--net", *image.argv(command)]
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        check = json.loads(image.said["HEALTHCHECK"].partition("CMD ")[2])
        beside = ["nsenter", f"--target={process.pid}", "--net", "unshare", "--mount", *image.argv(check)]

        def healthy() -> bool:
            assert process.poll() is None, log.read_text()
            return subprocess.run(beside, capture_output=True, timeout=60, check=False).returncode == 0

        wait_until(healthy, "it is healthy", 60)
        assert "cannot be asked" in log.read_text()
        assert image.said["STOPSIGNAL"] == "SIGTERM"
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
        assert image.run(check).returncode != 0, "there is nothing to be healthy"
    finally:
        process.kill()
        process.wait()
