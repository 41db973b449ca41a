"""Settings of one test, a problem without libraries, and a compiler that compiles nothing."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.tools.bench import reference_side
from kopt.tools.check import stage as check_stage
from support.bench_cases import FakeCompiler, bench_problem
from support.race_checks import replaced_simulator
from support.synthetic_check import NumpyDevice


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a home of this test."""
    return Settings(home=tmp_path / "home", jobs=2)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    """The compiler of check stage and reference kernel."""
    fake = FakeCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", fake)
    monkeypatch.setattr(reference_side, "compile_candidate", fake)
    return fake


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    """8 x 64, no library."""
    return bench_problem(tmp_path / "problem")


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> NumpyDevice:
    """What stands in for the simulator beside a GPU."""
    return replaced_simulator(monkeypatch)
