"""nvcuda::wmma on the simulator: products, checked accesses, all lanes."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Array, Sim, SimCase, line_of
from support.wmma_case import WMMA_FORMS, wmma_case, wmma_results

pytestmark = pytest.mark.slow  # one program with every shape: 30 s of g++
HEAD = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const __half* in, float* out) {
  __shared__ __align__(32) __half tile[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 2.0f);
"""
FILL = "for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] = in[i];"


@pytest.fixture(scope="module")
def results(sim: Sim) -> dict[str, tuple[Array, Array]]:
    """Return what every form gives, of one kernel."""
    return wmma_results(sim.outputs(wmma_case())["out"])


@pytest.mark.parametrize("name", [form.name for form in WMMA_FORMS])
def test_product_is_exact(name: str, results: dict[str, tuple[Array, Array]]) -> None:
    np.testing.assert_array_equal(*results[name])


def _case(body: str, threads: int = 32) -> SimCase:
    source = f"{HEAD}{body}\n}}"
    inputs = {"in": np.arange(256).astype(np.float16)}
    outputs = {"out": np.zeros(256, np.float32)}
    return SimCase(source, inputs=inputs, outputs=outputs, block=(threads, 1, 1))


def test_elements_of_a_fragment_are_changed_one_by_one(sim: Sim) -> None:
    body = (
        "for (int i = 0; i < sums.num_elements; ++i) sums.x[i] = sums.x[i] * 3 + 1;\n"
        "wmma::store_matrix_sync(out, sums, 16, wmma::mem_col_major);"
    )
    assert set(sim.outputs(_case(body))["out"]) == {7.0}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (f"{FILL}\n__syncwarp();\nwmma::load_matrix_sync(a, tile + 16, 16);  // here",
         Status.OUT_OF_BOUNDS),
        (f"{FILL}\n__syncwarp();\nwmma::load_matrix_sync(a, tile + 8, 8);  // here",
         Status.MISALIGNED),
        (f"{FILL}\n__syncwarp();\nwmma::load_matrix_sync(a, tile, 12);  // here",
         Status.MISALIGNED),
        ("wmma::store_matrix_sync(out + 128, sums, 16, wmma::mem_row_major);  // here",
         Status.OUT_OF_BOUNDS),
        ("if (threadIdx.x < 16) wmma::load_matrix_sync(a, in, 16);  // here",
         Status.BARRIER_DIVERGENCE),
    ],
    ids=["beyond", "pointer", "line", "beyond-store", "half-a-warp"],
)  # fmt: skip
def test_fault_is_told_at_its_line(sim: Sim, body: str, status: Status) -> None:
    case = _case(body)
    assert sim.fault(case, status).line == line_of(case.source, "// here")


def test_tile_that_others_still_fill_is_a_race(sim: Sim) -> None:
    body = f"{FILL}\nwmma::load_matrix_sync(a, tile, 16);\nout[threadIdx.x] = a.x[0];"
    sim.fault(_case(body), Status.DATA_RACE)
