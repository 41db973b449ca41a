"""A library that returns its results: they are timed without a copy, and judged all the same."""

import sys
from pathlib import Path

import pytest

from kopt.kernels.problem import Problem
from kopt.kernels.row_rotation import rotate_outputs
from kopt.tools.devices.timer import LibrarySide
from support.host_timing import HostTimingCuda
from support.host_torch import DeviceTensor, HostTorch
from support.timing_rig import TimingRig

BASELINE = """\
import sys

DISTRIBUTIONS = ("numpy",)


def returning(tensors, scalars, pdl):
    torch = sys.modules["torch"]

    def launch():
        result = torch.empty_like(tensors["out"])
        result.copy_(tensors["x"])
        return {"out": result}

    return launch
"""
SIDE = LibrarySide.model_validate(
    {"baseline": {"name": "b", "entry": "returning", "layout": "row_major"}, "pdl": False}
)


@pytest.fixture
def rig(
    host_timing: HostTimingCuda,
    compile_problem: Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> TimingRig:
    """A worker on the stand-ins for the driver and for torch."""
    monkeypatch.setitem(sys.modules, "torch", HostTorch(DeviceTensor))
    made = TimingRig(host_timing, compile_problem, tmp_path)
    (tmp_path / "baseline.py").write_text(BASELINE)
    made.problem = made.problem.model_copy(update={"folder": tmp_path})
    return made


def test_the_timed_call_holds_no_copy_of_the_result(rig: TimingRig) -> None:
    facts = rig.session(SIDE).facts.sides[0]
    assert (facts.nodes_per_call, facts.allocations) == (1, 0)


def test_each_set_is_given_its_own_result_after_the_last_replay(rig: TimingRig) -> None:
    end = rig.session(SIDE, rig.side())
    end.replay([1, 0])
    answer, sets = rig.collected(end)
    axes = rig.problem.workload("b8xh64").axes
    given = {"out": rig.inputs["x"], "sum": rig.inputs["sum"]}
    for rotation, found in zip(answer.rotations, sets, strict=True):
        expected = rotate_outputs(rig.problem, axes, given, rotation)
        assert (found["out"] == expected["out"]).all()
    assert not answer.damage


def test_the_results_of_another_side_stay_what_they_are(rig: TimingRig) -> None:
    end = rig.session(SIDE, rig.side())
    end.replay([0, 1])
    answer, sets = rig.collected(end)
    for rotation, found in zip(answer.rotations, sets, strict=True):
        assert (found["out"] == rig.rotated(rotation)["out"]).all()
