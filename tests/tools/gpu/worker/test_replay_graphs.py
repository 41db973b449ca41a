"""Graphs that are made several times, on a stand-in for the driver."""

from collections import Counter
from pathlib import Path

import pytest

from kopt.kernels.problem import Problem
from kopt.tools.gpu.worker.failure import ExecutionFailure
from support.host_cuda import CUresult
from support.host_timing import HostTimingCuda
from support.timing_rig import TimingRig


@pytest.fixture
def rig(host_timing: HostTimingCuda, compile_problem: Problem, tmp_path: Path) -> TimingRig:
    """A worker on the stand-in."""
    return TimingRig(host_timing, compile_problem, tmp_path)


def test_replays_take_all_executables_of_a_graph_equally_often(rig: TimingRig) -> None:
    end = rig.session(rig.side(), rig.side())
    rig.cuda.launched_graphs.clear()
    end.replay([0, 1] * 16)
    counts = sorted(Counter(rig.cuda.launched_graphs).values())
    assert counts == [*[2] * 16, 33]  # two sides of 8, and a restore before each and before all


def test_no_executable_is_replayed_for_the_first_time_after_the_warm_up(rig: TimingRig) -> None:
    end = rig.session(rig.side())
    known = set(rig.cuda.launched_graphs)
    end.replay([0] * 16)
    assert set(rig.cuda.launched_graphs) == known


def test_two_sides_take_their_executables_in_different_orders(rig: TimingRig) -> None:
    end = rig.session(rig.side(), rig.side())
    rig.cuda.launched_graphs.clear()
    end.replay([0, 1] * 32)
    first, second = rig.cuda.launched_graphs[2::4], rig.cuda.launched_graphs[4::4]
    names = {handle: place for place, handle in enumerate(sorted(set(first)))}
    others = {handle: place for place, handle in enumerate(sorted(set(second)))}
    assert [names[handle] for handle in first] != [others[handle] for handle in second]


def test_executables_made_before_one_fails_are_given_back(
    rig: TimingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(rig.cuda.live)
    made = rig.cuda.cuGraphInstantiate
    calls = iter(range(100))

    def fail_late(graph: int, flags: int) -> tuple[object, ...]:
        if next(calls) == 3:
            return (CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0)
        return made(graph, flags)

    monkeypatch.setattr(rig.cuda, "cuGraphInstantiate", fail_late)
    with pytest.raises(ExecutionFailure):
        rig.session(rig.side())
    assert set(rig.cuda.live) == before
