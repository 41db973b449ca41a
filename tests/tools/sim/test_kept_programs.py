"""Programs that processes share: the oldest are forgotten; what others do meanwhile is no error."""

import os
from pathlib import Path

from kopt.tools.sim.kept_programs import find_kept, forget_old


def _program(folder: Path, name: str, used_s: float) -> Path:
    made = folder / name
    made.mkdir()
    os.utime(made, (used_s, used_s))
    return made


def test_those_that_were_used_last_stay(tmp_path: Path) -> None:
    first, second, third = (_program(tmp_path, name, 10.0 * at) for at, name in enumerate("cab"))
    under_way = _program(tmp_path, ".build-x", 0.0)
    forget_old(tmp_path, 3)
    assert first.is_dir()
    forget_old(tmp_path, 2)
    assert not first.exists()
    assert second.is_dir() and third.is_dir() and under_way.is_dir()


def test_one_that_another_process_forgets_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """A link to nowhere is listed and has no state, as a folder that is gone by then."""
    (tmp_path / "gone").symlink_to("nowhere")
    first, second = _program(tmp_path, "a", 10.0), _program(tmp_path, "b", 20.0)
    forget_old(tmp_path, 1)
    assert not first.exists() and second.is_dir()


def test_what_is_not_there_is_not_removed(tmp_path: Path) -> None:
    assert find_kept(tmp_path / "a") is None
    broken = _program(tmp_path, "b", 10.0)
    assert find_kept(broken) is None
    assert not broken.exists()
