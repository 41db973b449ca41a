"""The time model orders candidates sensibly: relations between estimates, never their values."""

from dataclasses import replace

import pytest

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import load_gpus
from kopt.kernels.status import Provenance
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.estimate.stage import estimate_time
from support.estimate_cases import SCALAR_MIX, EstimateCase, compiled

GPU = load_gpus()["H100"]


def estimate(case: EstimateCase) -> TimeEstimate:
    gpu = load_gpus()[case.gpu]
    return estimate_time(compiled(case, gpu.arch), case.counters(), case.plan(), gpu, case.model())


BASE = EstimateCase()
LARGE = replace(BASE, blocks=16384, load_bytes=256 << 20, store_bytes=128 << 20)

STRIDED = replace(LARGE, sectors=64.0, first_access_fraction=0.25)
"""Three of four sectors are touched again: soon, or after half a million others."""
SOON, LATE = (0.75,), (*(0.0,) * 20, 0.75)

SLOWER = {
    "more sectors per request": (BASE, replace(BASE, sectors=32.0)),
    "more sectors per request, large": (LARGE, replace(LARGE, sectors=32.0)),
    "fewer blocks than SMs": (BASE, replace(BASE, blocks=32)),
    "one block more than SMs": (replace(BASE, blocks=132), replace(BASE, blocks=133)),
    "more barriers": (BASE, replace(BASE, barriers=12.0)),
    "spills": (BASE, replace(BASE, spill_bytes=64)),
    "spills, large": (LARGE, replace(LARGE, spill_bytes=64)),
    "scalar accesses": (BASE, replace(BASE, mix=tuple(SCALAR_MIX.items()))),
    "scalar accesses, large": (LARGE, replace(LARGE, mix=tuple(SCALAR_MIX.items()))),
    "more dependent load phases": (BASE, replace(BASE, phases=3.0)),
    "twice the bytes": (LARGE, replace(LARGE, load_bytes=512 << 20, store_bytes=256 << 20)),
    "reading everything twice": (
        LARGE,
        replace(LARGE, load_bytes=512 << 20, unique_load_bytes=256 << 20),
    ),
    "registers that halve occupancy": (
        replace(LARGE, phases=2.0),
        replace(LARGE, phases=2.0, registers=128),
    ),
    "more instructions": (BASE, replace(BASE, instructions=3000)),
    "a second launch": (BASE, replace(BASE, launches=2)),
    "a memset of scratch": (BASE, replace(BASE, zero_scratch=True)),
    "no programmatic launch": (replace(BASE, pdl=True), BASE),
    "loads that wait for one another": (
        replace(LARGE, loads_in_flight=4),
        replace(LARGE, loads_in_flight=1),
    ),
    "sectors touched again that L1 no longer has": (
        replace(STRIDED, reuse_fractions=SOON),
        replace(STRIDED, reuse_fractions=LATE),
    ),
    "many small blocks": (
        replace(BASE, blocks=896, threads=256),
        replace(BASE, blocks=3584, threads=64),
    ),
    "less bandwidth": (replace(LARGE, gpu="H200"), LARGE),
}


@pytest.mark.parametrize("name", SLOWER)
def test_what_should_be_slower_is_estimated_slower(name: str) -> None:
    faster, slower = SLOWER[name]
    assert estimate(faster).latency_us < estimate(slower).latency_us


def test_rereads_cost_less_than_first_reads() -> None:
    reread = replace(LARGE, load_bytes=512 << 20, unique_load_bytes=256 << 20)
    fresh = replace(LARGE, load_bytes=512 << 20)
    assert estimate(reread).latency_us < estimate(fresh).latency_us


def test_strided_accesses_that_l1_joins_cost_l2_no_more_than_coalesced_ones() -> None:
    joined = replace(STRIDED, reuse_fractions=SOON)
    assert estimate(joined).part_us("l2") == pytest.approx(estimate(LARGE).part_us("l2"))
    assert estimate(joined).part_us("load_store") > estimate(LARGE).part_us("load_store")


def test_what_l1_keeps_falls_off_gradually_with_the_resident_warps() -> None:
    # A sector comes back after 128 to 255 others; 16, 32, 64 resident warps have room for 456,
    # 228, 114 sectors each.
    touched_again = replace(STRIDED, reuse_fractions=(*(0.0,) * 8, 0.75))
    all_kept, some_kept, none_kept = (
        estimate(replace(touched_again, registers=registers)).part_us("l2")
        for registers in (128, 64, 32)
    )
    assert all_kept < some_kept < none_kept


def test_an_empty_kernel_of_many_blocks_is_bound_by_starting_them() -> None:
    empty = replace(BASE, blocks=1 << 16, load_bytes=0, store_bytes=0, instructions=10)
    assert estimate(empty).dominant == "block_starts"


def test_starting_blocks_beside_enough_work_costs_nothing() -> None:
    few, many = replace(LARGE, blocks=8192, threads=256), replace(LARGE, threads=128)
    assert estimate(many).part_us("block_starts") > estimate(few).part_us("block_starts") > 0
    assert estimate(many).latency_us == pytest.approx(estimate(few).latency_us, rel=0.01)


def test_rereads_of_what_does_not_stay_in_cache_are_dram_traffic() -> None:
    # Two launches: the second reads again after the first has gone through 256 MB.
    reread = replace(LARGE, load_bytes=512 << 20, unique_load_bytes=256 << 20)
    one = estimate(reread).part_us("dram")
    two = estimate(replace(reread, launches=2)).part_us("dram")
    assert two > one


def test_large_kernel_is_dominated_by_dram_and_small_one_by_its_launch() -> None:
    assert estimate(LARGE).dominant == "dram"
    assert estimate(BASE).dominant == "launch"


def test_estimate_is_never_below_the_floor() -> None:
    for case in (BASE, LARGE):
        floor_us = case.model().total_bytes / (GPU.dram_bandwidth_gb_s * 1e3)
        assert estimate(case).latency_us > floor_us


def test_estimate_is_labelled_and_its_launches_add_up() -> None:
    result = estimate(replace(BASE, launches=2))
    assert result.provenance is Provenance.ESTIMATED
    assert abs(result.latency_us - sum(part.latency_us for part in result.launches)) < 1e-9


def test_complete_inputs_leave_nothing_missing() -> None:
    assert estimate(BASE).missing == ()


def test_without_counters_the_byte_model_stands_in_and_that_is_said() -> None:
    result = estimate_time(compiled(LARGE), None, LARGE.plan(), GPU, LARGE.model())
    assert result.part_us("dram") > 0
    assert any("counted accesses" in text for text in result.missing)


def test_unknown_instruction_mix_is_said() -> None:
    case = replace(BASE, instructions=None, mix=())
    assert any("nvdisasm" in text for text in estimate(case).missing)


def test_missing_cubin_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="no cubin of problem_b128xh4096 for sm_90a"):
        estimate_time(compiled(BASE, "sm_100a"), None, BASE.plan(), GPU, BASE.model())


def test_evidence_speaks_of_one_round_and_of_several() -> None:
    small, large = (
        {part.name: part.evidence for part in estimate(case).launches[0].parts}
        for case in (BASE, LARGE)
    )
    assert "1 round of 1 block on the busiest SM" in small["latency"]
    assert "1 round of blocks" in small["barriers"]
    assert " rounds of " in large["latency"]
    assert "of 16,384 blocks" in large["sm_intake"]
