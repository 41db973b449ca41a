"""Programs that processes share."""

import os
from pathlib import Path

from kopt.tools.sim.program import find_kept


def _program(folder: Path, name: str, used_s: float) -> Path:
    made = folder / name
    made.mkdir()
    os.utime(made, (used_s, used_s))
    return made


def test_what_is_not_there_is_not_removed(tmp_path: Path) -> None:
    assert find_kept(tmp_path / "a") is None
    broken = _program(tmp_path, "b", 10.0)
    assert find_kept(broken) is None
    assert not broken.exists()
