"""Folders that code is run from, and who may be able to write there."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import ensure_folder
from kopt.config.trusted_folder import ensure_trusted_folder, is_trusted_file


def test_every_folder_that_is_made_is_the_user_s_alone(tmp_path: Path) -> None:
    umask = os.umask(0o002)
    try:
        ensure_folder(tmp_path / "home" / "cache" / "sandbox")
    finally:
        os.umask(umask)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3


@pytest.mark.parametrize("loose", ["home", "home/cache", "home/cache/sandbox"])
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused_with_the_command(
    loose: str, mode: int, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    ensure_trusted_folder(home / "cache" / "sandbox", home)
    (tmp_path / loose).chmod(mode)
    with pytest.raises(SetupError, match=f"chmod go-w {tmp_path / loose}; else"):
        ensure_trusted_folder(home / "cache" / "sandbox", home)


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_trusted_folder(tmp_path / "cache", tmp_path)
    if os.geteuid() == 0:  # root's own are nobody's fault
        os.chown(tmp_path / "cache", 65534, 65534)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(SetupError, match="belongs to another user"):
        ensure_trusted_folder(tmp_path / "cache", tmp_path)


def test_a_file_that_others_could_have_written_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "launcher"
    assert not is_trusted_file(path)
    path.touch(0o700)
    assert is_trusted_file(path)
    (tmp_path / "link").symlink_to(path)
    assert not is_trusted_file(tmp_path / "link")
    path.chmod(0o770)
    assert not is_trusted_file(path)
