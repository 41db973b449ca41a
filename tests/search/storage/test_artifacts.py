"""The content-addressed folder."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, SetupError
from kopt.search.storage.artifacts import open_artifacts


def _file(home: Path) -> Path:
    (path,) = (p for p in (home / "store" / "cas").glob("*/*") if p.is_file())
    return path


def test_bytes_come_back_by_their_digest(tmp_path: Path) -> None:
    artifacts = open_artifacts(tmp_path)
    digest = artifacts.put(b"cubin")
    assert digest == artifacts.put(b"cubin")
    assert artifacts.get(digest) == b"cubin"


def test_damaged_bytes_are_never_handed_out(tmp_path: Path) -> None:
    artifacts = open_artifacts(tmp_path)
    digest = artifacts.put(b"cubin")
    _file(tmp_path).write_bytes(b"cubim")
    with pytest.raises(InfraError, match="damaged"):
        artifacts.get(digest)


def test_missing_artifact_is_an_infrastructure_error(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="cannot be read"):
        open_artifacts(tmp_path).get("0" * 64)


def test_artifacts_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    open_artifacts(tmp_path).put(b"cubin")
    assert _file(tmp_path).stat().st_mode & 0o777 == 0o600


def test_sweep_takes_what_a_killed_writer_left_and_nothing_of_a_live_one(tmp_path: Path) -> None:
    artifacts = open_artifacts(tmp_path)
    digest = artifacts.put(b"cubin")
    old, fresh = (_file(tmp_path).parent / name for name in (".new-old", ".new-fresh"))
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert artifacts.sweep() == 1
    assert fresh.exists() and not old.exists() and artifacts.get(digest) == b"cubin"


def test_sweep_passes_over_what_was_put_in_place_meanwhile(tmp_path: Path) -> None:
    artifacts = open_artifacts(tmp_path)
    artifacts.put(b"cubin")
    listed_but_gone = _file(tmp_path).parent / ".new-gone"
    listed_but_gone.symlink_to(tmp_path / "nowhere")
    assert artifacts.sweep() == 0


def test_home_that_cannot_be_created_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="KOPT_HOME"):
        open_artifacts(tmp_path / "file")
