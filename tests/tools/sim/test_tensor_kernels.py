"""A whole kernel as people write them for sm_100a: TMA, mbarriers, tcgen05, an epilogue."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from support.cuda_sources import assert_nvcc_takes
from support.sim_run import Sim
from support.tensor_kernels import (
    AFTER,
    BEFORE,
    BF16,
    CLUSTER_GEMM,
    GEMM,
    KERNEL,
    WAIT_LOADS,
    gemm_case,
)

pytestmark = pytest.mark.slow  # a whole kernel for each


@pytest.mark.parametrize("source", [GEMM, CLUSTER_GEMM], ids=["block", "cluster"])
def test_persistent_gemm_with_two_accumulators_is_right_in_any_order(sim: Sim, source: str) -> None:
    case, expected = gemm_case(source)
    for seed in range(2):
        found = sim.with_(seed=seed).outputs(case)["out"]
        np.testing.assert_array_equal(found.view(BF16).astype(float), expected.astype(float))


@pytest.mark.parametrize(
    ("right", "wrong", "status"),
    [
        ("commit(&s.empty[stage]);", "arrive(&s.empty[stage]);", Status.DATA_RACE),
        ("commit(&s.done[half]);", "arrive(&s.done[half]);", Status.DATA_RACE),
        (f"{BEFORE}  // of the stored", "", Status.DATA_RACE),
        (f"wait(&s.done[half], phase);\n      {AFTER}", AFTER, None),
        (f"phase);\n      {AFTER}", "phase);", Status.DATA_RACE),
        (WAIT_LOADS, "", Status.DATA_RACE),
        ("init_barrier(&bar, 128)", "init_barrier(&bar, 4)", None),
        ("commit(&s.done[half]);", "", Status.BARRIER_DIVERGENCE),
    ],
)
def test_one_word_less_of_it_is_found(
    sim: Sim, right: str, wrong: str, status: Status | None
) -> None:
    source = GEMM.replace(right, wrong)
    assert source != GEMM
    outcome = sim.execute(gemm_case(source)[0])
    assert outcome.status is not Status.PASSED
    assert status is None or outcome.status is status, outcome.diagnostics


def test_sums_that_the_epilogue_still_reads_show_in_another_order(sim: Sim) -> None:
    case, _ = gemm_case(GEMM.replace("wait(&s.stored[half], free);", ""))
    found = [sim.with_(seed=seed).execute(case).status for seed in (1, 2)]
    assert Status.DATA_RACE in found


def test_stage_that_the_other_block_was_not_told_of_is_overwritten_too_early(sim: Sim) -> None:
    source = CLUSTER_GEMM.replace("commit_to_both(&s.empty", "commit(&s.empty")
    source = source.replace("s.empty) init_barrier(&bar, 2)", "s.empty) init_barrier(&bar, 1)")
    assert "still reads it" in sim.fault(gemm_case(source)[0], Status.DATA_RACE).message


@pytest.mark.parametrize(
    "source", [KERNEL, GEMM, CLUSTER_GEMM], ids=["one product", "gemm", "cluster"]
)
def test_nvcc_takes_the_kernels(source: str, settings: Settings, tmp_path: Path) -> None:
    assert_nvcc_takes(source, "sm_100a", tmp_path, settings)
