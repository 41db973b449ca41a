"""tcgen05 where lanes, warps or operands of one instruction disagree, and what is handed over."""

import pytest

from kopt.kernels.status import Status
from support.sim_run import Sim
from support.tensor_kernels import (
    AFTER,
    ALLOC,
    BEFORE,
    FREE,
    GEMM,
    KERNEL,
    WAIT_LOADS,
    WORDS,
    gemm_case,
    kernel_case,
)

pytestmark = pytest.mark.slow  # a program for each
MULTIPLY = "multiply(d, matrix(a), matrix(b), BF16_64x8, 0);"
COMMIT = "commit(&bar);"
LOADS = (
    'unsigned q[2]; const unsigned from = d + (warp << 21); if (t & 1) asm volatile("tcgen05.ld'
    '.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(q[0]) : "r"(from) : "memory"); else asm vol'
    'atile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];" : "=r"(q[0]), "=r"(q[1]) : "r"'
    '(from) : "memory");'
)
"""On one line, so that the lanes meet there."""


def _changed(source: str, right: str, wrong: str) -> str:
    assert right in source
    return source.replace(right, wrong)


def test_lanes_that_load_other_counts_do_not_meet(sim: Sim) -> None:
    source = _changed(KERNEL, "  float r[8];", f"  {LOADS}\n  float r[8];")
    found = sim.fault(kernel_case(source), Status.BARRIER_DIVERGENCE)
    assert "different addresses or shapes" in found.message


def test_loads_that_are_waited_for_after_the_hand_over_come_too_late(sim: Sim) -> None:
    arrive = "arrive(&s.stored[half]);"
    late = _changed(GEMM, f"        {WAIT_LOADS}\n", "")
    case, _ = gemm_case(_changed(late, arrive, f"{arrive} {WAIT_LOADS}"))
    found = [sim.with_(seed=seed).execute(case) for seed in range(3)]
    assert Status.DATA_RACE in {one.status for one in found}


def test_every_warp_gets_columns_once_others_have_given_theirs_back(sim: Sim) -> None:
    source = f"""{WORDS}
constexpr u32 COLUMNS = 512;
extern "C" __global__ void k(const float* in, float* out) {{
  __shared__ u32 places[4];
  u32& place = places[threadIdx.x / 32];
  {ALLOC}
  const u32 d = place;
  {FREE}
  out[threadIdx.x] = 1;
}}"""
    for seed in range(24):
        assert sim.with_(seed=seed).outputs(kernel_case(source))["out"][:128].sum() == 128


def test_a_product_does_not_write_where_its_own_factor_lies(sim: Sim) -> None:
    stored = (
        'for (int c = 0; c < 8; ++c) asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], '
        '{%1};" ::"r"(d + (warp << 21) + c), "r"(0) : "memory"); asm volatile("tcgen05.wait::st'
        f'.sync.aligned;" ::: "memory"); {BEFORE} __syncthreads(); {AFTER}'
    )
    own = (
        'asm volatile("{.reg .pred p; setp.ne.u32 p, 0, 1; tcgen05.mma.cta_group::1.kind::f16'
        ' [%0], [%1], %2, %3, p;}" ::"r"(d), "r"(d + FROM), "l"(matrix(b)), "r"(BF16_64x8)'
        ' : "memory");'
    )
    source = _changed(KERNEL, "const u32 d = place;", f"const u32 d = place;\n{stored}")
    for columns in (0, 4):
        case = kernel_case(_changed(source, MULTIPLY, own.replace("FROM", str(columns))))
        found = sim.fault(case, Status.DATA_RACE)
        assert "one tcgen05.mma reads it" in found.message


def test_commit_to_no_block_tells_nobody(sim: Sim) -> None:
    nobody = (
        'asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster'
        '.multicast::cluster.b64 [%0], %1;" ::"r"(at_shared(&bar)),'
        ' "h"(static_cast<unsigned short>(0)) : "memory");'
    )
    found = sim.fault(kernel_case(_changed(KERNEL, COMMIT, nobody)), Status.BARRIER_DIVERGENCE)
    assert "lacks 1 arrivals" in found.message


@pytest.mark.parametrize("loads", [255, 256, 257])
def test_loads_that_nobody_waits_for_are_found_however_many(sim: Sim, loads: int) -> None:
    load = '  asm volatile("tcgen05.ld'
    source = _changed(KERNEL, load, f"  for (int k = 0; k < {loads}; ++k){load}")
    found = sim.fault(kernel_case(_changed(source, f"  {WAIT_LOADS}\n", "")), Status.DATA_RACE)
    assert "a tcgen05.ld under way reads it" in found.message
