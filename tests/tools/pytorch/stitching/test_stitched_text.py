"""Candidates of parts as one candidate: it computes the whole, and no two names meet."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.kernels.candidate import Candidate
from kopt.kernels.header import Flags
from kopt.kernels.header_parser import parse_header
from kopt.tools.pytorch.stitching.part_code import parameter_type, renamed_code
from kopt.tools.pytorch.stitching.plan import flag_notes, stitched_text
from support.plain_cuda import PlainCase, PlainLibrary
from support.split_graphs import network_problem, plan_of_parts, with_header

HAND = """/* kopt: 1
family: fast_math
where: N <= 64
tune: {BLOCK: [64, 32]}
tune_where: [BLOCK <= 64]
specialize: [N]
scratch:
  product: {dtype: float32, shape: "B, N"}
launch:
  - {kernel: product_of, grid: B, block: BLOCK, args: [x, fc_weight, product]}
  - {kernel: sum_of, grid: B, block: BLOCK, pdl: true, args: [x, product, out]}
*/
#include <cmath>
#define POSITIVE(value) fmaxf(value, 0.0f)

__device__ int row() { return blockIdx.x * KOPT_N; }

extern "C" __global__ void product_of(const float* x, const float* w, float* product) {
  for (int c = threadIdx.x; c < KOPT_N; c += BLOCK) {
    float sum = 0.0f;
    for (int k = 0; k < KOPT_N; k++) sum += x[row() + k] * w[k * KOPT_N + c];
    product[row() + c] = sum;
  }
}

extern "C" __global__ void sum_of(const float* x, const float* product, float* out) {
  for (int c = threadIdx.x; c < KOPT_N; c += BLOCK) {
    out[row() + c] = x[row() + c] + POSITIVE(product[row() + c]);
  }
}
"""


def _drawn(rows: int, columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = {
        "layers_0_fc_weight": (columns, columns),
        "layers_1_fc_weight": (columns, columns),
        "head_weight": (columns, 3),
        "x": (rows, columns),
    }
    return {name: rng.standard_normal(s).astype(np.float32) * 0.3 for name, s in shapes.items()}


def _wanted(given: dict[str, np.ndarray]) -> np.ndarray:
    value = given["x"].astype(np.float64)
    for block in range(2):
        value = value + np.maximum(value @ given[f"layers_{block}_fc_weight"], 0)
    return np.asarray(value @ given["head_weight"])


@pytest.mark.parametrize("hand_written", [False, True])
def test_the_whole_computes_what_its_parts_do(hand_written: bool, tmp_path: Path) -> None:
    text = stitched_text(plan_of_parts({"net_layers_0": HAND} if hand_written else None))
    problem = network_problem()
    cases = [PlainCase(problem, one, text, {}) for one in problem.workloads]
    library = PlainLibrary(cases, tmp_path)
    for number, workload in enumerate(problem.workloads):
        given = _drawn(workload.axes["B"], workload.axes["N"])
        found = library.run(number, given)["out"]
        np.testing.assert_allclose(found, _wanted(given), rtol=1e-4, atol=1e-5)


def test_every_name_of_a_part_is_its_own_in_the_header() -> None:
    text = stitched_text(plan_of_parts({"net_layers_0": HAND}))
    header = parse_header(Candidate(text), network_problem()).header
    assert header is not None
    assert header.family == ("fast_math", "other")
    assert header.where == "N <= 64"
    assert header.tune["P1_BLOCK"] == (64,)
    assert "P1_BLOCK <= 64" in header.tune_where
    assert [one.kernel for one in header.launch] == [
        *("r1_product_of", "r1_sum_of", "r1_product_of", "r1_sum_of"),
        *(one.kernel for one in header.launch[4:]),
    ]
    first, second = header.launch[1].args, header.launch[2].args
    assert first[-1].name == second[0].name == "scratch1"
    assert second[-1].name == header.launch[0].args[-1].name == "work_float32_1"


def test_the_first_launch_of_a_region_waits_for_all_before_it() -> None:
    hand = HAND.replace("block: BLOCK, args: [x, fc", "block: BLOCK, pdl: true, args: [x, fc")
    text = stitched_text(plan_of_parts({"net_layers_0": hand}))
    header = parse_header(Candidate(text), network_problem()).header
    assert header is not None
    assert [one.pdl for one in header.launch[:4]] == [False, True, False, True]


def test_variants_of_parts_become_every_combination_in_order() -> None:
    launches = HAND[HAND.index("launch:\n") : HAND.index("*/")]
    indented = launches.replace("\n  ", "\n      ").replace("launch:", "    launch:", 1).rstrip()
    variants = f'variants:\n  - when: N > 8\n{indented}\n  - when: "true"\n{indented}\n'
    text = stitched_text(plan_of_parts({"net_layers_0": HAND.replace(launches, variants)}))
    header = parse_header(Candidate(text), network_problem()).header
    assert header is not None
    assert [one.when for one in header.variants] == ["N > 8", "true"]
    assert [len(one.launch) for one in header.variants] == [5, 5]


def test_scratch_that_must_be_zero_is_not_shared_by_regions() -> None:
    hand = HAND.replace('shape: "B, N"}', 'shape: "B, N", init: zero}')
    header = parse_header(
        Candidate(stitched_text(plan_of_parts({"net_layers_0": hand}))), network_problem()
    ).header
    assert header is not None
    assert [one.name for one in header.scratch if one.init == "zero"] == [
        *("work_zeroed1", "work_zeroed2")
    ]


def test_exact_arithmetic_of_one_part_is_that_of_all_and_is_said() -> None:
    plan = plan_of_parts({"net_layers_0": HAND})
    assert "flags: {fast_math: false}" in stitched_text(plan)
    (note,) = flag_notes(plan)
    assert note == "compiled without fast_math, as net_head asks: net_layers_0 may be slower"


def test_the_tightest_limit_of_registers_is_that_of_all() -> None:
    plan = plan_of_parts()
    limited = with_header(plan.parts["net_head"], flags=Flags(fast_math=False, max_registers=40))
    parts = {**plan.parts, "net_head": limited}
    other = type(plan)(parts, plan.steps, plan.values)
    assert "max_registers: 40" in stitched_text(other)
    assert "net_layers_0 had another limit or none" in flag_notes(other)[0]


def test_macros_and_includes_leave_the_namespace() -> None:
    code = renamed_code(HAND, "r1", {"BLOCK": "P1_BLOCK", "KOPT_N": "24"})
    assert code.includes == ("<cmath>",)
    assert "#define r1_POSITIVE(value)" in code.text
    assert "+ r1_POSITIVE(product" in code.text
    assert "c += P1_BLOCK" in code.text
    assert "blockIdx.x * 24" in code.text


def test_a_part_that_opens_a_librarys_namespace_is_refused_by_name() -> None:
    hand = HAND.replace(
        "__device__ int row", "namespace std { struct Mine {}; }\n__device__ int row"
    )
    with pytest.raises(ToolError, match=r"net_layers_0 cannot be stitched: .*namespace std"):
        stitched_text(plan_of_parts({"net_layers_0": hand}))


def test_a_number_is_passed_in_the_width_of_its_parameter() -> None:
    source = HAND.replace("const float* w, float* product)", "long long n, unsigned m)")
    assert parameter_type(source, "product_of", 1) == "int64"
    assert parameter_type(source, "product_of", 2) == "int32"
