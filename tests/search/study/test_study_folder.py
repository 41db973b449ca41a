"""A study is found by the name of its folder, and is no other's."""

from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.search.study.study_folder import find_study
from support.study_cases import plan


def test_copy_of_a_study_is_refused_because_its_runs_are_the_original_ones(tmp_path: Path) -> None:
    written = plan("silu_and_mul_b8xh14336")
    for name in (written.id, "study-copy"):
        folder = tmp_path / "studies" / name
        folder.mkdir(parents=True)
        (folder / "study.json").write_text(written.model_dump_json(by_alias=True), "utf-8")
    assert find_study(written.id, Settings(tmp_path)) == written
    with pytest.raises(SetupError, match=f"study-copy is a copy of {written.id}"):
        find_study("study-copy", Settings(tmp_path))
