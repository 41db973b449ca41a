"""Scalars of hidden cases: which vary, what a launch is given, and what the oracle is asked."""

import pytest

from kopt.kernels.plan import Argument, Launch, LaunchPlan
from kopt.kernels.problem import Problem, ScalarSpec
from kopt.kernels.problem_loader import find_kernel
from kopt.tools.check.cases import InputCase, Seeds, plan_cases
from kopt.tools.check.scalars import fixed_scalars, launched_with, vary_scalars, with_scalars

SEEDS = Seeds(visible=(1, 2, 3), hidden=(1001, 1002))


@pytest.fixture
def problem() -> Problem:
    return find_kernel("rope_quantize_fp8_n8xh128")[0]


def _plan(*taken: str) -> LaunchPlan:
    arguments = tuple(Argument(kind="float32", name=name, value=1.0) for name in taken)
    launch = Launch(kernel="k", grid=(1, 1, 1), block=(32, 1, 1), arguments=arguments)
    return LaunchPlan(workload="n8xh128", axes={}, defines={}, launches=(launch,))


def _cases(problem: Problem, plan: LaunchPlan) -> tuple[InputCase, ...]:
    cases = plan_cases(problem, problem.workloads[:1], "full", SEEDS)
    return vary_scalars(problem, cases, {"n8xh128": plan})


def test_hidden_cases_alone_have_other_scalars(problem: Problem) -> None:
    cases = _cases(problem, _plan("quant_scale_q", "quant_scale_kv"))
    assert all(bool(case.scalars) == (case.hidden and not case.keeps_scalars) for case in cases)
    assert {case.keeps_scalars for case in cases if case.hidden} == {True, False}
    for case in cases:
        for name, value in case.scalars:
            named = {"quant_scale_q": 1.25, "quant_scale_kv": 0.75}[name]
            assert value / named in (0.25, 0.5, 2.0, 4.0)
    assert cases == _cases(problem, _plan("quant_scale_q", "quant_scale_kv"))


def test_a_scalar_that_no_launch_takes_keeps_its_value_and_is_named(problem: Problem) -> None:
    plan = _plan("quant_scale_q")
    names = {name for case in _cases(problem, plan) for name, _ in case.scalars}
    assert names == {"quant_scale_q"}
    assert fixed_scalars(problem, (plan,)) == ("quant_scale_kv",)
    assert fixed_scalars(problem, (plan, _plan("quant_scale_kv"))) == ()


def test_integer_scalars_keep_their_value(problem: Problem) -> None:
    counted = problem.model_copy(
        update={"scalars": (ScalarSpec(name="top_k", dtype="int32", value=4),)}
    )
    assert all(not case.scalars for case in _cases(counted, _plan("top_k")))


def test_launch_and_oracle_are_given_the_same_values(problem: Problem) -> None:
    values = {"quant_scale_q": 5.0}
    plan = launched_with(_plan("quant_scale_q", "quant_scale_kv"), values)
    assert [one.value for one in plan.launches[0].arguments] == [5.0, 1.0]
    workload = problem.workloads[0]
    changed, own = with_scalars(problem, workload, values)
    assert [scalar.value for scalar in changed.scalars] == [5.0, 0.75]
    assert changed.scalar_values(own) == {"quant_scale_q": 5.0, "quant_scale_kv": 0.75}
    assert with_scalars(problem, workload, {}) == (problem, workload)
