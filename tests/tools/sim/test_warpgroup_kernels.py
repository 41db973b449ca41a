"""Whole kernels as people write them for sm_90a: roles of warpgroups, TMA, wgmma, and attention."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from support.cuda_sources import assert_nvcc_takes
from support.sim_run import Sim
from support.warpgroup_kernels import ATTENTION, CLUSTER_GEMM, GEMM, attention_case, gemm_case

pytestmark = pytest.mark.slow  # a whole kernel for each


@pytest.mark.parametrize("source", [GEMM, CLUSTER_GEMM], ids=["block", "cluster"])
def test_persistent_gemm_of_two_consumers_is_right_in_any_order(sim: Sim, source: str) -> None:
    case, expected = gemm_case(source)
    for seed in range(2):
        found = sim.with_(seed=seed).outputs(case)["out"]
        np.testing.assert_array_equal(
            found.view(ml_dtypes.bfloat16).astype(float), expected.astype(float)
        )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("warpgroup_wait<0>();", "warpgroup_wait<1>();"),
        ("init_barrier(&s.empty[i], CONSUMERS)", "init_barrier(&s.empty[i], 1)"),
        ('asm volatile("fence.proxy.async;" ::: "memory");', ""),
        ("memset(d, 0, sizeof(d));\n", ""),
        ("+ 64 * BK * wg;", "+ 64 * BK * wg + 64;"),
    ],
    ids=["wait", "arrivals", "proxy", "cleared", "start"],
)
def test_one_word_less_of_it_is_found(sim: Sim, right: str, wrong: str) -> None:
    source = GEMM.replace(right, wrong)
    assert source != GEMM
    case, expected = gemm_case(source)
    outcome = sim.execute(case)
    if outcome.status is Status.PASSED:
        found = outcome.outputs["out"].view(ml_dtypes.bfloat16).astype(float)
        assert not np.array_equal(found, expected.astype(float))


def test_attention_whose_weights_stay_in_registers_is_right(sim: Sim) -> None:
    case, expected = attention_case()
    np.testing.assert_allclose(sim.outputs(case)["out"], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "source", [GEMM, CLUSTER_GEMM, ATTENTION], ids=["block", "cluster", "attention"]
)
def test_nvcc_takes_the_kernels(source: str, settings: Settings, tmp_path: Path) -> None:
    assert_nvcc_takes(source, "sm_90a", tmp_path, settings)
