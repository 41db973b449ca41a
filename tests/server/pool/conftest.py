"""Calls that a pool is asked."""

from pathlib import Path

import pytest

from kopt.tools.remote.calls import ExecuteCall, OpenTimingCall
from kopt.tools.remote.sent_kernel import FolderName, SentProgram, SentTiming
from support.scripted_device import plan
from support.tiny_problem import tiny_candidate, tiny_problem


@pytest.fixture
def execution(tmp_path: Path) -> ExecuteCall:
    """Return an execution of a small candidate."""
    program = SentProgram(
        source=tiny_candidate().source,
        source_name="k.cu",
        problem=tiny_problem(tmp_path),
        folder=FolderName(),
        plan=plan(),
        arch="sm_90a",
    )
    return ExecuteCall(
        program=program,
        poison=1,
        schedule_seed=0,
        timeout_s=1.0,
        late_inputs=False,
        finds_leftovers=False,
    )


@pytest.fixture
def timing(execution: ExecuteCall) -> OpenTimingCall:
    """Return the opening of a session without sides."""
    problem = execution.program.problem
    asked = SentTiming(
        problem=problem,
        folder=FolderName(),
        workload=problem.workloads[0],
        sides=(),
        poison=1,
        timeout_s=1.0,
    )
    return OpenTimingCall(asked=asked, layout_seed=0, warmup_calls=1, draws=1)
