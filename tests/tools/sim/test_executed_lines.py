"""Lines that load or store, and whether they did: what a run says nothing about is named."""

import numpy as np
import pytest

from kopt.kernels.check_result import CheckResult, RaceCheck
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.status import Status
from kopt.tools.check.run_cases import unexecuted_lines
from kopt.tools.devices.device import ExecutionOutcome
from kopt.tools.facts.check_facts import unexecuted_words
from support.sim_run import Sim, SimCase

HEAD = 'extern "C" __global__ void k(const float* in, float* out) {\n  const int t = threadIdx.x;\n'
TEMPLATE = """template <int N> __device__ float sum(const float* p) {
  float s = 0.0f;
  for (int i = 0; i < N; ++i)
    s += p[i];
  return s;
}
"""


def _lines(sim: Sim, body: str, head: str = HEAD) -> dict[int, bool]:
    case = SimCase(
        f"{head}{body}\n}}", {"in": np.zeros(64, np.float32)}, {"out": np.zeros(64, np.float32)}
    )
    outcome = sim.execute(case)
    assert outcome.status is Status.PASSED, outcome.diagnostics
    return dict(outcome.access_lines)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_branch_that_no_thread_takes_is_told_from_one_that_a_thread_takes(
    sim: Sim, workers: int
) -> None:
    body = "  if (t == 31)\n    out[t] = in[t];\n  else if (t > 31)\n    out[t] = -in[t];"
    assert _lines(sim.with_(workers=workers), body) == {4: True, 6: False}


def test_code_for_a_gpu_alone_is_named(sim: Sim) -> None:
    # The simulator's buffers end at 0x500000000000, those of a GPU begin above.
    told = """  if (((unsigned long long)in >> 40) < 96)
    out[t] = in[t];
  else
    out[t] = in[t ^ 1];"""
    assert _lines(sim, told) == {4: True, 6: False}


def test_a_line_has_run_if_one_of_its_copies_has(sim: Sim) -> None:
    body = "  out[t] = t < 32 ? sum<4>(in) : sum<8>(in);"
    lines = _lines(sim, body, TEMPLATE + HEAD)
    assert lines[4]
    assert all(lines.values())


def test_loads_of_a_threads_own_array_are_accesses_too(sim: Sim) -> None:
    body = "  float own[4] = {1, 2, 3, 4};\n  volatile int i = t % 4;\n  out[t] = own[i];"
    assert _lines(sim, body)[5]


def test_a_line_is_unexecuted_if_no_run_of_any_program_got_there() -> None:
    outcomes = [
        ExecutionOutcome(Status.PASSED, access_lines={3: True, 9: False, 12: False}),
        ExecutionOutcome(Status.PASSED, access_lines={3: False, 9: True, 15: False}),
        ExecutionOutcome(Status.PASSED),
    ]
    assert unexecuted_lines(outcomes) == (12, 15)


def _result(level: str, lines: tuple[int, ...], status: Status = Status.PASSED) -> CheckResult:
    return CheckResult.model_construct(
        status=status, level=level, unexecuted_lines=lines, compiled=CompileResult.model_construct()
    )


def test_words_name_the_lines_of_a_full_check_that_passed() -> None:
    assert unexecuted_words(_result("full", (12, 15))) == (
        "no case makes a load or store of 2 lines (12, 15): unchecked there"
    )
    assert str(unexecuted_words(_result("full", tuple(range(40))))).count(",") == 20
    on_gpu = _result("full", (12,)).model_copy(update={"race_check": RaceCheck(outcome="passed")})
    assert "the race check made no load or store of 1 line (12)" in str(unexecuted_words(on_gpu))
    assert unexecuted_words(_result("full", ())) is None
    assert unexecuted_words(_result("quick", (12,))) is None
    assert unexecuted_words(_result("full", (12,), Status.INCORRECT)) is None


def test_lines_of_a_function_that_is_inlined_everywhere_are_none(sim: Sim) -> None:
    source = """#include <cuda_bf16.h>
__device__ __nv_bfloat162 twice(__nv_bfloat162 x) {
  const float2 g = __bfloat1622float2(x);
  return __floats2bfloat162_rn(g.x * 2, g.y * 2);
}
extern "C" __global__ void k(const float* in, float* out) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(in[threadIdx.x], 1.0f);
  if (v.x < __float2bfloat16(0.0f))
    out[40] = 1;
  out[threadIdx.x] = __bfloat1622float2(twice(v)).x;
}
"""
    inputs = {"in": np.ones(32, np.float32)}
    outputs = {"out": np.zeros(64, np.float32)}
    case = SimCase(source, inputs=inputs, outputs=outputs, block=(32, 1, 1))
    assert sim.execute(case).access_lines == {7: True, 9: False, 10: True}
