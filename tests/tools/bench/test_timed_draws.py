"""Where the right results of timed inputs come from."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.graph_runs import GraphResults, GraphRunner, GraphRuns
from kopt.kernels.problem import Problem
from kopt.tools.bench import timed_case
from kopt.tools.bench.timed_case import TimedCase
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from support.scripted_timer import ScriptedTimer


class _RunsGraphs(ScriptedTimer):
    """Is asked for no graph: the oracle of the test has none."""

    def run_graph(self, runs: GraphRuns) -> GraphResults | None:
        raise AssertionError(f"{runs} is no graph of this problem")


def test_a_gpu_computes_right_results_before_a_timing_and_none_behind_one(
    problem: Problem, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def noting(key: CaseKey, graphs: GraphRunner | None = None) -> CaseData:
        asked.append(graphs)
        return make_case_data(key, graphs)

    monkeypatch.setattr(timed_case, "make_case_data", noting)
    device = _RunsGraphs()
    case = TimedCase(problem, problem.workloads[0], 3, 4, device, settings)
    assert case.draws
    assert asked
    assert set(map(id, asked)) == {id(device)}
    for _ in range(2):  # one may have been made with the draws
        case.unseen()
    assert asked[-1] is None
