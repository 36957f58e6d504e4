"""The demo's folder: made, removed, and removed by the janitor when the demo was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo.workspace import Workspace, WorkspaceError
from tests.support.demo import gone
from tests.support.waiting import wait_until


def fill(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "ibdata1").write_bytes(b"x")
    (folder / ".hidden").write_bytes(b"x")


def test_a_temporary_folder_is_removed() -> None:
    with Workspace(None) as workspace:
        fill(workspace.path)
    assert not workspace.path.exists()


def test_a_new_folder_is_removed(tmp_path: Path) -> None:
    with Workspace(tmp_path / "a" / "b") as workspace:
        fill(workspace.path)
    assert not (tmp_path / "a" / "b").exists()


def test_an_empty_folder_is_emptied(tmp_path: Path) -> None:
    with Workspace(tmp_path) as workspace:
        fill(workspace.path)
    assert tmp_path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(WorkspaceError, match="is not an empty folder"), Workspace(tmp_path):
        pass
    assert (tmp_path / "mine").exists()
    with pytest.raises(WorkspaceError, match="is not an empty folder"), Workspace(tmp_path / "mine"):
        pass


def test_a_folder_removed_meanwhile_is_no_error(tmp_path: Path) -> None:
    with Workspace(tmp_path / "new") as workspace:
        workspace.path.rmdir()


@pytest.mark.parametrize("existed", [False, True], ids=["new", "existed"])
def test_killed(tmp_path: Path, existed: bool) -> None:
    """SIGKILL: the janitor empties the folder, kills the groups it was told of, and ends itself."""
    folder, extra = tmp_path / "it's a folder", tmp_path / "extra"
    extra.mkdir()
    fill(extra)
    if existed:
        folder.mkdir()
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    script = (
        "import sys; from pathlib import Path; from demo.workspace import Workspace\n"
        f"with Workspace(Path({str(folder)!r})) as workspace:\n"
        "    (workspace.path / 'data').mkdir(); (workspace.path / 'data' / 'x').touch()\n"
        f"    workspace.remove_later(Path({str(extra)!r})); workspace.kill_later({child.pid})\n"
        "    print('up', flush=True); sys.stdin.read()"
    )
    demo = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert demo.stdout is not None
    assert demo.stdout.readline() == b"up\n"
    demo.kill()
    demo.communicate()
    wait_until(lambda: gone(child.pid), "the child's end")
    child.wait()
    wait_until(lambda: not extra.exists(), "the other folder's end")
    if existed:
        wait_until(lambda: not list(folder.iterdir()), "the folder's emptying")
    else:
        wait_until(lambda: not folder.exists(), "the folder's end")
