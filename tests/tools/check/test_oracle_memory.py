"""Oracles that take too much: an error of theirs, and the process's own limits afterwards."""

import resource
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem import make_workload
from kopt.tools.check.oracle_memory import (
    affordable_jobs,
    allowance_bytes,
    limited_memory,
    refuse_too_large,
)
from support.sandbox_level import Level, open_level
from support.tiny_problem import tiny_problem

LIMIT = resource.RLIMIT_DATA


def test_what_goes_beyond_fails_and_what_does_not_goes_on() -> None:
    before = resource.getrlimit(LIMIT)
    with limited_memory(1 << 30):
        assert np.ones(1 << 20).sum() == 1 << 20
        with pytest.raises(MemoryError):
            np.ones(1 << 28)
    assert resource.getrlimit(LIMIT) == before
    assert np.ones(1 << 20).sum() == 1 << 20


def test_largest_of_several_limits_holds_until_the_last_has_ended() -> None:
    before = resource.getrlimit(LIMIT)
    small, large = limited_memory(1 << 28), limited_memory(1 << 30)
    with small:
        first = resource.getrlimit(LIMIT)[0]
        with large:
            assert resource.getrlimit(LIMIT)[0] > first
        assert resource.getrlimit(LIMIT)[0] == first
    assert resource.getrlimit(LIMIT) == before


@pytest.mark.slow  # fills 640 MB
def test_oracles_at_once_have_the_allowances_of_all() -> None:
    with limited_memory(1 << 28), limited_memory(1 << 28), limited_memory(1 << 28):
        assert np.ones(80 << 20).nbytes > 2 << 28  # more than two of them


def test_error_in_an_oracle_leaves_no_limit() -> None:
    before = resource.getrlimit(LIMIT)
    with pytest.raises(KeyError), limited_memory(1 << 28):
        raise KeyError
    assert resource.getrlimit(LIMIT) == before


def test_allowance_grows_with_the_tensors(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    sizes = {allowance_bytes(problem, workload) for workload in problem.workloads}
    assert min(sizes) > 2 << 30


def test_as_many_cases_at_once_as_the_machine_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tiny_problem(tmp_path)
    assert affordable_jobs(problem, problem.workloads, 8) == 8
    for machine, jobs in ((10_000, 1), (1 << 20, 2)):
        monkeypatch.setattr(
            "kopt.tools.check.oracle_memory.machine_memory_bytes", lambda held=machine: held
        )
        assert affordable_jobs(problem, problem.workloads, 8) == jobs


def test_processes_that_start_meanwhile_are_not_limited(settings: Settings, tmp_path: Path) -> None:
    level: Level = open_level("plain", settings, tmp_path)
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA))"
    free = level.run(code).stdout
    with limited_memory(1 << 30):
        assert level.run(code).stdout == free


def test_a_check_that_cannot_fit_into_memory_is_refused_with_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tiny_problem(tmp_path)
    refuse_too_large(problem, problem.workloads)
    large = make_workload(problem, {"B": 1 << 20, "H": 1 << 20})
    with pytest.raises(ToolError, match=r"needs at least \d{5} GB: .* This machine has \d+ GB"):
        refuse_too_large(problem, (problem.workloads[0], large))
