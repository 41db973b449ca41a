"""The PyTorch function of docs/tutorial.md becomes a problem, and its first kernel passes."""

from pathlib import Path

import pytest

from support.shared_caches import share_caches
from support.tutorial import WITH_TORCH, Reader, files_of, parts, steps_of


@pytest.mark.slow  # torch.export in a fresh process: 15 s, and a check on the simulator
def test_the_pages_pytorch_function_becomes_a_problem_and_passes(
    tmp_path: Path, shared_caches: Path
) -> None:
    (tmp_path / "work").mkdir()
    reader = Reader(tmp_path / "work", share_caches(tmp_path / "home", shared_caches))
    part = parts()[1]
    reader.save(files_of(part))
    steps = [step for step in steps_of(part) if step.where == WITH_TORCH]
    assert [step.command.split()[:2] for step in steps] == [["kopt", "new"], ["kopt", "check"]]
    for step in steps:
        reader.do(step)
