"""Another machine for `kopt` to evaluate on: this one, behind a stand-in for ssh."""

import os
import sys
from pathlib import Path

import pytest

from kopt.tools.remote import reconnecting
from support.shared_caches import share_caches, share_far_code
from support.stand_in_ssh import StandInSsh


@pytest.fixture
def box(unvisited_box: StandInSsh, shared_caches: Path) -> StandInSsh:
    """Return the stand-in for a machine that has kopt's code of earlier tests."""
    share_far_code(unvisited_box.far_home, shared_caches)
    return unvisited_box


@pytest.fixture
def unvisited_box(
    tmp_path: Path, shared_caches: Path, monkeypatch: pytest.MonkeyPatch
) -> StandInSsh:
    """Return the stand-in, which every `ssh` of the test is; a lost connection is tried at once."""
    made = StandInSsh(tmp_path / "ssh", share_caches(tmp_path / "far", shared_caches))
    made.install()
    monkeypatch.setenv("PATH", f"{made.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", sys.executable)
    monkeypatch.setattr(reconnecting, "PAUSES_S", (0.0, 0.0))
    return made
