"""An oracle is told what runs graphs if it has a parameter for it, also that nothing does."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kopt.kernels.graph_runs import GraphResults, GraphRuns
from kopt.kernels.oracle import Oracle, expected_at
from kopt.kernels.problem import Workload

WORKLOAD = Workload(name="w", axes={"B": 1})


class _Runner:
    def run_graph(self, runs: GraphRuns) -> GraphResults | None:
        raise AssertionError(f"{runs} is asked for")


def _told(function: Any, runner: _Runner | None) -> object:
    oracle = cast(Oracle, SimpleNamespace(expected=function))
    return cast(Any, expected_at(oracle, {}, {}, WORKLOAD, runner))


@pytest.mark.parametrize("runner", [None, _Runner()])
def test_a_parameter_called_graphs_is_given_with_the_workload(runner: _Runner | None) -> None:
    def expected(inputs: Any, scalars: Any, workload: Any, *, graphs: Any) -> Any:
        del inputs, scalars
        return workload, graphs

    assert _told(expected, runner) == (WORKLOAD, runner)


@pytest.mark.parametrize("runner", [None, _Runner()])
def test_an_oracle_without_it_is_called_as_ever(runner: _Runner | None) -> None:
    def expected(inputs: Any, scalars: Any) -> Any:
        return inputs, scalars

    assert _told(expected, runner) == ({}, {})
