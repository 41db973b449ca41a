"""Rows that ldmatrix and stmatrix access are checked as accesses of the lane that names them."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from kopt.tools.sim.ptx.lowering import lower_ptx
from kopt.tools.sim.refusals import explain_assembly
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase, line_of

LOAD = (
    'asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"'
    ' : "=r"(a), "=r"(b) : "r"(row) : "memory");'
)
STORE = (
    'asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"'
    ' :: "r"(row), "r"(a), "r"(b) : "memory");'
)
FILL = "for (unsigned i = threadIdx.x; i < 64; i += blockDim.x) tile[i] = i;"


def _case(body: str, threads: int = 32) -> SimCase:
    """Return a kernel with two 8x8 matrices of halves, whose 16 rows lanes 0 to 15 name."""
    source = (
        'extern "C" __global__ void k(unsigned* out) {\n'
        "  __shared__ alignas(16) unsigned tile[64];\n"
        "  unsigned a = 1, b = 2, lane = threadIdx.x % 32;\n"
        "  unsigned row = __cvta_generic_to_shared(tile) + lane * 16;\n"
        f"{body}\n"
        "  out[2 * threadIdx.x] = a; out[2 * threadIdx.x + 1] = b;\n}"
    )
    return SimCase(source, outputs={"out": np.zeros(2 * threads, np.int32)}, block=(threads, 1, 1))


def test_rows_are_loaded_in_any_order_of_threads(sim: Sim) -> None:
    expected = np.arange(64).reshape(2, 32).T
    body = f"{FILL}\n__syncthreads();\nif (lane >= 16) row = 1;\n{LOAD}"
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(_case(body, 64))["out"].reshape(2, 32, 2)
        np.testing.assert_array_equal(found, np.stack([expected, expected]))


def test_stored_rows_are_read_behind_a_warp_sync(sim: Sim) -> None:
    body = f"{STORE}\n__syncwarp();\na = tile[lane]; b = tile[32 + lane];"
    found = sim.outputs(_case(body))["out"].reshape(32, 2)
    np.testing.assert_array_equal(found, np.broadcast_to([1, 2], (32, 2)))


@pytest.mark.parametrize(
    ("body", "status", "thread"),
    first_quick(
        [
            (
                f"{FILL}\n__syncthreads();\nif (lane == 9) row += 112;\n{LOAD}  // here",
                Status.OUT_OF_BOUNDS,
                9,
            ),
            (
                f"{FILL}\n__syncthreads();\nif (lane == 3) row -= 8;\n{LOAD}  // here",
                Status.MISALIGNED,
                3,
            ),
            (
                f"if (lane != 7) tile[lane] = 0;\ntile[32 + lane] = 0;\n__syncthreads();\n{LOAD}"
                "  // here",
                Status.UNINITIALIZED_READ,
                1,
            ),
            (f"if (lane == 15) row += 16;\n{STORE}  // here", Status.OUT_OF_BOUNDS, 15),
            (f"row = 64;\n{LOAD}  // here", Status.OUT_OF_BOUNDS, None),
            (f"if (lane == 12) row -= 4;\n{STORE}  // here", Status.MISALIGNED, 12),
        ],
        3,
    ),
    ids=["beyond", "misaligned", "unwritten", "beyond-store", "no-row", "misaligned-store"],
)
def test_fault_is_told_at_the_lane_that_names_the_row(
    sim: Sim, body: str, status: Status, thread: int | None
) -> None:
    case = _case(body)
    found = sim.fault(case, status)
    assert found.line == line_of(case.source, "// here")
    assert "`tile`" in found.message or "row = 64" in body
    assert thread is None or f"thread ({thread}, 0, 0)" in found.message


@pytest.mark.parametrize(
    "body",
    [
        f"{FILL}  // one\n{LOAD}  // other",
        f"{FILL}\n__syncthreads();\n{LOAD}  // one\ntile[lane] = 0;  // other",
        f"{STORE}  // one\na = tile[32 + lane];  // other",
        f"a = tile[32 + lane];  // one\n{STORE}  // other",
    ],
    ids=["store-ldmatrix", "ldmatrix-store", "stmatrix-load", "load-stmatrix"],
)
@pytest.mark.parametrize("threads", first_quick([32, 64], 1))
def test_accesses_without_a_barrier_between_are_races(sim: Sim, body: str, threads: int) -> None:
    case = _case(body, threads)
    found = sim.fault(case, Status.DATA_RACE)
    assert found.line in (line_of(case.source, "// one"), line_of(case.source, "// other"))


@pytest.mark.parametrize(
    "words", ["x2.m8n8.shared", "x2.trans.m8n8.shared", "m8n8.trans.x2.shared::cta"]
)
def test_words_stand_in_any_order(words: str) -> None:
    source = f"void f() {{ {LOAD.replace('m8n8.x2.shared', words)} }}"
    assert "kopt_sim_load_matrices" in lower_ptx(source)


@pytest.mark.parametrize(
    "changed",
    [
        (".shared", ".shared.shared"),
        (".x2", ".x2.x2"),
        (".x2", ".trans.trans.x2"),
        (".shared", ""),
        (".shared", ".shared::cluster"),
        (".m8n8.x2", ".m16n16.x1.trans"),
        (".b16", ".b8"),
        ("{%0, %1}", "%0"),
        (".x2", ".x3"),
        (".aligned", ""),
    ],
)
def test_other_forms_are_left_and_refused(changed: tuple[str, str]) -> None:
    assert "asm" not in lower_ptx(f"void f() {{ {LOAD} }}")
    source = f"void f() {{ {LOAD.replace(*changed)} }}"
    assert lower_ptx(source) == source
    refused = explain_assembly(source, 1)
    assert "instruction ldmatrix" in refused.message and ".m8n8" in (refused.hint or "")
