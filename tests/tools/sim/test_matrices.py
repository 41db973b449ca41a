"""Matrix instructions give on the simulator what the PTX ISA says of them."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.sim.ptx.lowering import lower_ptx
from kopt.tools.sim.refusals import explain_assembly
from support.cuda_sources import assert_nvcc_takes
from support.intrinsic_files import DOCS, cards_of
from support.matrix_rows import MATRIX_ROWS
from support.mma_rows import MMA_ROWS
from support.sim_run import Array, Sim, SimCase, line_of
from support.warp_rows import WarpRow, judge_warp, results_of, warp_case

pytestmark = pytest.mark.slow  # one program with every row: 30 s of g++, 10 s of nvcc
ROWS = MMA_ROWS + MATRIX_ROWS


@pytest.fixture(scope="module")
def results(sim: Sim) -> dict[str, Array]:
    """Return the results of every row, of one kernel that has them all."""
    return results_of(ROWS, sim.outputs(warp_case(ROWS))["out"])


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_instruction_gives_what_the_isa_says(row: WarpRow, results: dict[str, Array]) -> None:
    judge_warp(row, results[row.name])


MULTIPLY = (
    'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3},'
    ' {%4, %5}, {%6}, {%0, %1, %2, %3};"'
    ' : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(a), "r"(a));'
)


def _case(body: str, threads: int = 32) -> SimCase:
    source = (
        'extern "C" __global__ void k(float* out) {\n'
        "  float d[4] = {}; const unsigned a = 0x3f803f80u, lane = threadIdx.x % 32;\n"
        f"{body}\n  out[threadIdx.x] = d[0];\n}}"
    )
    return SimCase(source, outputs={"out": np.zeros(threads, np.float32)}, block=(threads, 1, 1))


@pytest.mark.parametrize(
    ("body", "threads", "says"),
    [
        (f"if (lane != 5)\n{MULTIPLY}  // here", 32, "0xffffffdf"),
        (f"{MULTIPLY}  // here", 48, "0x0000ffff"),
        (f"if (lane < 16)\n{MULTIPLY}  // here\nelse\n{MULTIPLY}", 32, "for a matrix instruction"),
        (f"if (lane < 16)\n{MULTIPLY}  // here\n__syncthreads();", 64, "for a block barrier"),
    ],
)
def test_lanes_that_do_not_come_are_told(sim: Sim, body: str, threads: int, says: str) -> None:
    case = _case(body, threads)
    found = sim.fault(case, Status.BARRIER_DIVERGENCE)
    assert says in found.message and found.line == line_of(case.source, "// here")


def test_warps_multiply_on_their_own_and_in_any_order(sim: Sim) -> None:
    body = f"for (unsigned n = 0; n <= threadIdx.x / 32; ++n)\n{MULTIPLY}"
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(_case(body, 96))["out"]
        np.testing.assert_array_equal(found, np.repeat([8, 16, 24], 32))


def test_the_form_that_others_differ_from_is_known() -> None:
    assert "asm" not in lower_ptx(f"void f() {{ {MULTIPLY} }}")


@pytest.mark.parametrize(
    "changed",
    [
        ("mma.sync", "mma.sp.sync"),
        ("mma.sync", "mma"),
        (".aligned", ""),
        (".row.col", ".col.row"),
        (".row.col", ".row.col.satfinite"),
        (".row.col", ".row.col.rn"),
        (".row.col", ".row.col.kind::f8f6f4"),
        ("m16n8k8", "m16n8k16"),
        ("m16n8k8", "m8n8k4"),
        (".bf16.bf16.", ".bf16.f16."),
        (".bf16.bf16.", ".b1.b1."),
        ("f32.bf16.bf16.f32", "f16.bf16.bf16.f16"),
        ("f32.bf16.bf16.f32", "f32.f16.f16.f16"),
        ("{%6}", "{%6, %6}"),
    ],
)
def test_other_forms_are_left_and_refused(changed: tuple[str, str]) -> None:
    source = f"void f() {{ {MULTIPLY.replace(*changed)} }}"
    assert lower_ptx(source) == source
    refused = explain_assembly(source, 1)
    assert "instruction mma" in refused.message and "mma.sync" in (refused.hint or "")


def test_nvcc_takes_every_row(settings: Settings, tmp_path: Path) -> None:
    assert_nvcc_takes(warp_case(ROWS).source, "sm_90a", tmp_path, settings)


def test_examples_of_the_cards_run_but_for_those_of_few_gpus() -> None:
    topic = DOCS / "intrinsics" / "tensor_cores.yaml"
    cards = {card.name: card.example for card in cards_of(topic)}
    left = {name for name, example in cards.items() if "asm" in lower_ptx(example)}
    of_few = ("mma.sp", "mma.sync kind::", "ldmatrix.m16n16", "stmatrix.m16n8")
    assert left == {name for name in cards if name.startswith(of_few)}
