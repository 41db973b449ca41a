"""Settings of one test, and a compiler and a sanitizer that need neither nvcc nor a GPU."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.bench import reference_side
from kopt.tools.check import stage as check_stage
from kopt.tools.review import stage as review_stage
from support.promotion_cases import FileCompiler, ScriptedSanitizer
from support.race_checks import replaced_simulator
from support.synthetic_check import NumpyDevice


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a home of this test."""
    return Settings(home=tmp_path / "home", jobs=2)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FileCompiler:
    """The compiler of check stage and reference kernel."""
    fake = FileCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", fake)
    monkeypatch.setattr(reference_side, "compile_candidate", fake)
    return fake


@pytest.fixture
def sanitizer(monkeypatch: pytest.MonkeyPatch) -> ScriptedSanitizer:
    """What stands in for compute-sanitizer in reviews."""
    fake = ScriptedSanitizer()
    monkeypatch.setattr(review_stage, "sanitize", fake)
    return fake


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> NumpyDevice:
    """What stands in for the simulator that full checks on a GPU ask."""
    return replaced_simulator(monkeypatch)
