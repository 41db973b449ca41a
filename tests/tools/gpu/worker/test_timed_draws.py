"""A timing session of a problem without rows, on a stand-in for the driver."""

from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.problem import Problem
from support.host_timing import HostTimingCuda
from support.timing_rig import TimingRig


@pytest.fixture
def rig(host_timing: HostTimingCuda, compile_problem: Problem, tmp_path: Path) -> TimingRig:
    """A worker on the stand-in."""
    return TimingRig(host_timing, compile_problem, tmp_path)


@pytest.mark.parametrize("copies_late", [False, True])
def test_without_rows_every_set_gives_the_outputs_of_its_draw(
    rig: TimingRig, copies_late: bool
) -> None:
    rig.cuda.copies_late = copies_late
    rig.problem = rig.problem.model_copy(update={"row_axis": None})
    changes = (0, 1, 5, 9)
    rig.draws = [{**rig.inputs, "x": rig.inputs["x"] + np.float32(one)} for one in changes]
    end = rig.session(rig.side(), rig.side())
    end.replay([0, 1, 1, 0])
    answer, outputs = rig.collected(end)
    assert answer.damage == ()
    assert set(answer.rotations) == set(range(len(changes)))
    for draw, found in zip(answer.rotations, outputs, strict=True):
        total = rig.expected["sum"] + changes[draw]
        np.testing.assert_array_equal(found["sum"], total)
        np.testing.assert_array_equal(found["out"], 2 * total)
