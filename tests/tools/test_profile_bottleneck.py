"""The bottleneck follows its rules; what is measured decides before what is estimated.

The fact sets are made up after what such kernels show on an H100.
"""

from dataclasses import replace

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.bench_result import Latency, Rotation
from kopt.kernels.compile_result import Occupancy
from kopt.kernels.counters import LaunchCounters, StallLine, StallShare
from kopt.kernels.families import FAMILIES
from kopt.kernels.profile_result import LaunchProfile, MeasuredTime
from kopt.kernels.status import Provenance
from kopt.tools.cuda.occupancy import launch_occupancy
from kopt.tools.profiling.bottleneck import ProfileFacts, find_bottleneck
from support.estimate_cases import EstimateCase
from support.scripted_timer import FACTS

SMALL = EstimateCase()
LARGE = EstimateCase(
    blocks=16384, load_bytes=256 << 20, store_bytes=128 << 20, phases=0.0, barriers=0.0
)


def facts_of(case: EstimateCase) -> ProfileFacts:
    """Return what is known of a made-up candidate without a GPU."""
    gpu = load_gpus()[case.gpu]
    launches = tuple(
        LaunchProfile(
            kernel=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            dynamic_smem_bytes=0,
            resources=case.kernel(),
            occupancy=launch_occupancy(launch, case.kernel(), gpu),
        )
        for launch in case.plan().launches
    )
    return ProfileFacts(case.model(), launches, case.estimate())


def timed(us: float, copy_fraction: float, null_us: float = 1.1) -> MeasuredTime:
    """Return a measured time."""
    latency = Latency(median_us=us, p10_us=us, p90_us=us, min_us=us, replays=30)
    return MeasuredTime(
        device="cuda:0",
        gpu=FACTS,
        latency=latency,
        null_kernel_us=null_us,
        above_null_us=us - null_us,
        achieved_gb_s=3000.0 * copy_fraction,
        roofline_fraction=copy_fraction * 0.9,
        copy_gb_s=3000.0,
        copy_fraction=copy_fraction,
        rotation=Rotation(sets=8, set_bytes=1 << 20, over_l2=4.0),
    )


IDLE = LaunchCounters(
    kernel="kernel",
    time_us=4.0,
    compute_fraction=0.12,
    memory_fraction=0.35,
    dram_fraction=0.33,
    l2_fraction=0.2,
    achieved_occupancy=0.4,
    stalls=(
        StallShare(reason="long_scoreboard", cycles_per_instruction=9.0, fraction=0.6),
        StallShare(reason="barrier", cycles_per_instruction=3.0, fraction=0.2),
    ),
    stall_lines=(StallLine(line=42, reason="long_scoreboard", samples=90, fraction=0.7),),
)


def with_counters(counters: LaunchCounters, case: EstimateCase = SMALL) -> ProfileFacts:
    """Return the facts of a kernel that neither launches nor bandwidth explain."""
    return replace(facts_of(case), measured=timed(4.0, 0.4), counters=(counters,))


def test_mostly_empty_launches_is_launch_bound() -> None:
    found = find_bottleneck(replace(facts_of(SMALL), measured=timed(1.6, 0.1)))
    assert (found.name, found.provenance) == ("launch_bound", Provenance.MEASURED)
    assert "1.10 us of 1.60 us" in found.facts[0]


def test_launch_bound_suggests_fusion_only_for_several_launches() -> None:
    one = find_bottleneck(replace(facts_of(SMALL), measured=timed(1.6, 0.1)))
    assert "pass_fusion" not in one.families
    assert "little is left beyond fewer bytes or an earlier start" in one.statement
    two = replace(facts_of(replace(SMALL, launches=2)), measured=timed(1.6, 0.1))
    assert "pass_fusion" in find_bottleneck(two).families


def test_bandwidth_of_a_copy_is_memory_bound() -> None:
    found = find_bottleneck(replace(facts_of(LARGE), measured=timed(140.0, 0.93)))
    assert (found.name, found.provenance) == ("memory_bound", Provenance.MEASURED)
    assert "93% of the copy bandwidth" in found.facts[0]


@pytest.mark.parametrize(("fraction", "name"), [(0.8, "memory_bound"), (0.79, "latency_bound")])
def test_copy_fraction_has_a_threshold(fraction: float, name: str) -> None:
    facts = replace(facts_of(SMALL), measured=timed(4.0, fraction), counters=(IDLE,))
    assert find_bottleneck(facts).name == name


def test_busy_instructions_are_compute_bound() -> None:
    counters = IDLE.model_copy(update={"compute_fraction": 0.82, "issue_fraction": 0.78})
    found = find_bottleneck(with_counters(counters))
    assert (found.name, found.provenance) == ("compute_bound", Provenance.MEASURED)
    assert any("78% of active cycles" in fact for fact in found.facts)


def test_busy_dram_with_rereads_is_memory_bound_and_names_them() -> None:
    model = SMALL.model()
    update = {
        "memory_fraction": 0.75,
        "dram_fraction": 0.74,
        "dram_read_bytes": 2 * model.read_bytes,
    }
    found = find_bottleneck(with_counters(IDLE.model_copy(update=update)))
    assert found.name == "memory_bound"
    assert f"{2 * model.read_bytes:,} bytes read from DRAM" in found.facts[-1]


def test_busy_l2_is_l2_bound() -> None:
    update = {
        "memory_fraction": 0.81,
        "dram_fraction": 0.3,
        "l2_fraction": 0.8,
        "l2_hit_fraction": 0.9,
    }
    assert find_bottleneck(with_counters(IDLE.model_copy(update=update))).name == "l2_bound"


def test_busy_memory_beside_dram_and_l2_is_l1_bound() -> None:
    update = {
        "memory_fraction": 0.85,
        "dram_fraction": 0.3,
        "l2_fraction": 0.2,
        "bank_conflicts": 4096,
    }
    found = find_bottleneck(with_counters(IDLE.model_copy(update=update)))
    assert found.name == "l1_bound"
    assert any("4,096 shared memory bank conflicts" in fact for fact in found.facts)


def test_idle_units_are_latency_bound_with_the_wait_and_its_line() -> None:
    found = find_bottleneck(with_counters(IDLE))
    assert (found.name, found.provenance) == ("latency_bound", Provenance.MEASURED)
    assert any("60% of their time for long_scoreboard" in fact for fact in found.facts)
    assert any("line 42" in fact for fact in found.facts)


def test_idle_units_with_few_resident_warps_are_occupancy_limited() -> None:
    case = replace(LARGE, registers=160)
    found = find_bottleneck(with_counters(IDLE, case))
    assert found.name == "occupancy_limited"
    assert any("limited by registers" in fact for fact in found.facts)


def test_few_blocks_are_no_occupancy_limit() -> None:
    case = replace(SMALL, blocks=16, registers=160)
    found = find_bottleneck(with_counters(IDLE, case))
    assert found.name == "latency_bound"
    assert any("16 blocks: " in fact for fact in found.facts)


def test_longest_launch_decides() -> None:
    short = IDLE.model_copy(update={"kernel": "short", "time_us": 1.0, "compute_fraction": 0.9})
    facts = replace(with_counters(IDLE), counters=(short, IDLE))
    assert find_bottleneck(facts).name == "latency_bound"


def test_time_alone_leaves_the_rest_to_the_estimate() -> None:
    facts = replace(facts_of(replace(SMALL, parts=(("issue", 8.0),))), measured=timed(9.0, 0.2))
    found = find_bottleneck(facts)
    assert (found.name, found.provenance) == ("compute_bound", Provenance.ESTIMATED)
    assert "explain it (measured)" in found.facts[0]


def test_measured_time_overrules_an_estimate_of_bandwidth() -> None:
    assert find_bottleneck(facts_of(LARGE)).name == "memory_bound"
    slow = replace(facts_of(LARGE), measured=timed(900.0, 0.15))
    assert find_bottleneck(slow).name != "memory_bound"


def test_counters_without_throughput_leave_it_to_the_estimate() -> None:
    counters = LaunchCounters(kernel="kernel", time_us=4.0)
    assert find_bottleneck(with_counters(counters)).provenance is Provenance.ESTIMATED


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (replace(SMALL, parts=(("launch", 3.0),)), "launch_bound"),
        (LARGE, "memory_bound"),
        (replace(SMALL, parts=(("l2", 3.0),)), "l2_bound"),
        (replace(SMALL, parts=(("sm_intake", 3.0),)), "l2_bound"),
        (replace(SMALL, parts=(("load_store", 3.0),)), "l1_bound"),
        (replace(SMALL, parts=(("issue", 3.0),)), "compute_bound"),
        (replace(SMALL, phases=4.0), "latency_bound"),
        (replace(LARGE, registers=160, parts=(("waiting", 900.0),)), "occupancy_limited"),
    ],
)
def test_without_a_gpu_what_the_estimate_mostly_is_decides(case: EstimateCase, name: str) -> None:
    found = find_bottleneck(facts_of(case))
    assert (found.name, found.provenance) == (name, Provenance.ESTIMATED)


def test_at_most_three_facts_and_known_families() -> None:
    for counters in (IDLE, IDLE.model_copy(update={"compute_fraction": 0.9})):
        found = find_bottleneck(with_counters(counters))
        assert 2 <= len(found.facts) <= 3
        assert set(found.families) <= set(FAMILIES)


def test_occupancy_is_said_with_its_limit_only_below_half() -> None:
    facts = facts_of(replace(LARGE, registers=64))
    occupancy: Occupancy = facts.launches[0].occupancy
    assert occupancy.theoretical_occupancy >= 0.5
    found = find_bottleneck(replace(facts, measured=timed(400.0, 0.3), counters=(IDLE,)))
    assert found.name == "latency_bound"
