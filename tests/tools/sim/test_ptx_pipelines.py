"""Producers and consumers in hand-written PTX: mbarriers, bulk copies, addresses, votes."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from support.cuda_sources import assert_nvcc_takes
from support.pipeline_cases import (
    ADDRESSES,
    PIPELINE,
    PIPELINE_CASES,
    TOKENS,
    VOTES,
    PipelineCase,
    X,
    late_case,
    pipeline_case,
)
from support.sim_run import Sim

pytestmark = pytest.mark.slow  # a program for each


@pytest.mark.parametrize("one", PIPELINE_CASES, ids=[one.name for one in PIPELINE_CASES])
def test_pipeline_leaves_what_its_source_says(sim: Sim, one: PipelineCase) -> None:
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(one.case)
        np.testing.assert_array_equal(found["out"], one.expected)
        if "back" in found:
            back = np.zeros((8, 32), np.float32)
            back[6:, 24:] = one.case.inputs["in"][6:, 24:]
            np.testing.assert_array_equal(found["back"], back)


@pytest.mark.parametrize(
    ("right", "wrong", "status", "says"),
    [
        ("full + stage, step / 2 % 2)", "full + stage, 0)", Status.BARRIER_DIVERGENCE, "lacks"),
        ("step / 2 % 2 ^ 1)", "step / 2 % 2)", Status.BARRIER_DIVERGENCE, "`empty`"),
        (
            "while (!passed(full + stage, step / 2 % 2)) {}",
            "passed(full + stage, step / 2 % 2);",
            Status.DATA_RACE,
            "`stages`",
        ),
        ("full + stage, 256)", "full + stage, 512)", Status.BARRIER_DIVERGENCE, "lacks 0 arrivals"),
        ("full + stage, 256)", "full + stage, 1 << 21)", Status.CRASH, "1,048,575"),
        ("make(empty + s, 32)", "make(empty + s, 64)", Status.BARRIER_DIVERGENCE, "32 arrivals"),
    ],
    ids=["parity", "own parity", "one try", "bytes", "too many bytes", "arrivals"],
)
def test_mistake_in_a_pipeline_is_found(
    sim: Sim, right: str, wrong: str, status: Status, says: str
) -> None:
    source = PIPELINE.replace(right, wrong)
    assert source != PIPELINE
    assert says in sim.fault(pipeline_case(source), status).message


def test_stage_handed_back_before_it_is_read_is_found(sim: Sim) -> None:
    source = PIPELINE.replace("    arrive(empty + stage);\n", "").replace(
        "{}  // wait\n", "{}  // wait\n    arrive(empty + stage);\n"
    )
    statuses = {sim.with_(seed=seed).execute(pipeline_case(source)).status for seed in range(4)}
    assert Status.DATA_RACE in statuses


def test_barrier_that_is_no_more_is_told(sim: Sim) -> None:
    source = TOKENS.replace("// LAST", "\n arrive(&barrier);")
    found = sim.fault(pipeline_case(source, 64, 67), Status.UNINITIALIZED_READ)
    assert "not initialised" in found.message


def test_generic_address_in_the_place_of_a_shared_one_is_told(sim: Sim) -> None:
    source = ADDRESSES.replace('"l"(at), "f"', '"l"(s), "f"')
    found = sim.fault(pipeline_case(source, 64, 64), Status.OUT_OF_BOUNDS)
    assert "belongs to no buffer" in found.message


def test_threads_that_do_not_vote_where_others_do_are_told(sim: Sim) -> None:
    vote = 'asm volatile("{.reg .pred p, q; setp.eq.u32 p, %1, 96;'
    source = VOTES.replace(vote, f'if (t < 32) asm volatile("bar.sync 3, 96;"); else {vote}')
    found = sim.fault(pipeline_case(source, 96, 96), Status.BARRIER_DIVERGENCE)
    assert "vote" in found.message


def test_statement_without_instructions_leaves_its_values(sim: Sim) -> None:
    source = """
extern "C" __global__ void k(const float* in, float* out) {
  float a = in[threadIdx.x];
  asm volatile("" : "+f"(a) :: "memory");
  out[threadIdx.x] = a;
}"""
    np.testing.assert_array_equal(sim.outputs(pipeline_case(source, outputs=64))["out"], X[:64])


def test_arrival_of_copies_that_is_not_counted_never_completes(sim: Sim) -> None:
    found = sim.fault(late_case(64, "shared::cta"), Status.BARRIER_DIVERGENCE)
    assert "lacks 64 arrivals" in found.message


def test_nvcc_takes_every_source(settings: Settings, tmp_path: Path) -> None:
    for source in dict.fromkeys(one.case.source for one in PIPELINE_CASES):
        assert_nvcc_takes(source, "sm_90a", tmp_path, settings)
