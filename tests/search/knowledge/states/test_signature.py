"""Every trait is there where its rule holds, and not on the plain program beside it.

A profile becomes a signature by rule; what was not profiled has an empty one.
"""

from dataclasses import replace

import pytest

from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.counters import LaunchCounters, StallShare
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import TensorTraffic
from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.matching import UNKNOWN_STATE, match_state
from kopt.search.knowledge.states.signature import (
    TRAITS,
    extract_signature,
    find_traits,
    signature_of_time,
)
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice
from support.checked_samples import CheckedSamples
from support.estimate_cases import SCALAR_MIX, VECTOR_MIX, EstimateCase
from support.made_profiles import profile_of

PLAIN = EstimateCase(blocks=132 * 8, threads=256)
"""One whole wave on an H100, 16-byte accesses, two barriers, everything read once."""


def mix(**changes: int) -> tuple[tuple[str, int], ...]:
    return tuple({**VECTOR_MIX, **changes}.items())


def stalled(reason: str, fraction: float = 0.5) -> LaunchCounters:
    share = StallShare(reason=reason, cycles_per_instruction=9.0, fraction=fraction)
    return LaunchCounters(kernel="kernel", stalls=(share,))


def test_plain_program_has_no_trait() -> None:
    assert find_traits(profile_of(PLAIN)) == ()


@pytest.mark.parametrize(
    ("word", "case"),
    [
        ("atomics", replace(PLAIN, mix=mix(atom=1))),
        ("block_limit", replace(PLAIN, blocks=132 * 32, threads=16)),
        ("few_blocks", replace(PLAIN, blocks=131)),
        ("latency_chain", replace(PLAIN, phases=2.0)),
        ("local_memory", replace(PLAIN, mix=mix(ldl=2))),
        ("many_barriers", replace(PLAIN, barriers=5.0)),
        ("matrix", replace(PLAIN, mix=mix(mma=8))),
        ("no_vector_stores", replace(PLAIN, mix=mix(stg_128=0, stg_32=2))),
        ("part_wave", replace(PLAIN, blocks=132 * 8 + 1)),
        ("reads_twice", replace(PLAIN, unique_load_bytes=1 << 20)),
        ("register_limit", replace(PLAIN, registers=128)),
        ("scalar_access", replace(PLAIN, mix=mix(ldg_16=5))),
        ("several_launches", replace(PLAIN, launches=2)),
        ("shared_tile", replace(PLAIN, mix=mix(sts=1, lds=1))),
        ("special_functions", replace(PLAIN, mix=mix(mufu=16))),
        ("spills", replace(PLAIN, spill_bytes=8, mix=mix(ldl=2))),
        ("uncoalesced", replace(PLAIN, sectors=20.0)),
    ],
)
def test_trait_is_found_alone(word: str, case: EstimateCase) -> None:
    assert find_traits(profile_of(case)) == (word,)


@pytest.mark.parametrize(
    "case",
    [
        replace(PLAIN, blocks=132),
        replace(PLAIN, blocks=132 * 8 * 2),
        replace(PLAIN, blocks=132 * 8 * 6 + 1),
        replace(PLAIN, barriers=4.0),
        replace(PLAIN, sectors=19.0),
        replace(PLAIN, mix=mix(ldg_16=4)),
        replace(PLAIN, mix=mix(stg_32=2)),
        replace(PLAIN, mix=mix(mufu=15)),
        replace(PLAIN, mix=mix(sts=1)),
    ],
    ids=lambda case: str(case.mix[-1] if case.blocks == PLAIN.blocks else case.blocks),
)
def test_what_stays_below_a_threshold_is_no_trait(case: EstimateCase) -> None:
    assert find_traits(profile_of(case)) == ()


def test_few_loads_are_those_of_a_thread_that_makes_many() -> None:
    few = replace(PLAIN, loads_in_flight=2)
    assert find_traits(profile_of(few)) == ("few_loads",)
    assert find_traits(profile_of(replace(PLAIN, loads_in_flight=3))) == ()


def test_small_input_of_every_block_is_shared_and_not_read_twice() -> None:
    profile = profile_of(PLAIN)
    weight = TensorTraffic(
        name="weight",
        role="in",
        needed_read_bytes=8192,
        needed_written_bytes=0,
        load_bytes=4 * 8192,
        store_bytes=0,
        sectors_per_request=16.0,
        ideal_sectors_per_request=16.0,
    )
    shared = profile.model_copy(update={"traffic": (*profile.traffic, weight)})
    assert find_traits(shared) == ("shared_operand",)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("long_scoreboard", "waits_memory"),
        ("barrier", "waits_barrier"),
        ("short_scoreboard", "waits_shared"),
        ("lg_throttle", "waits_queue"),
        ("mio_throttle", "waits_queue"),
        ("math_pipe_throttle", "waits_math"),
    ],
)
def test_largest_stall_of_the_counters_is_a_trait(reason: str, word: str) -> None:
    assert find_traits(profile_of(PLAIN, stalled(reason))) == (word,)
    assert find_traits(profile_of(PLAIN, stalled(reason, 0.29))) == ()


def test_bank_conflicts_are_counted_against_instructions() -> None:
    many = LaunchCounters(kernel="kernel", bank_conflicts=50, instructions=1000)
    few = many.model_copy(update={"bank_conflicts": 49})
    assert find_traits(profile_of(PLAIN, many)) == ("bank_conflicts",)
    assert find_traits(profile_of(PLAIN, few)) == ()


def test_without_counts_no_counted_trait_is_named() -> None:
    profile = profile_of(replace(PLAIN, barriers=9.0, phases=3.0, sectors=32.0))
    uncounted = [
        one.model_copy(update={"load_bytes": None, "sectors_per_request": None})
        for one in profile.traffic
    ]
    bare = profile.model_copy(update={"counters": None, "traffic": tuple(uncounted)})
    assert find_traits(bare) == ()


def test_every_trait_is_explained_and_in_order() -> None:
    assert list(TRAITS) == sorted(TRAITS)
    assert all(text and not text.endswith(".") for text in TRAITS.values())


NARROW = EstimateCase(
    mix=tuple(SCALAR_MIX.items()),
    phases=8.0,
    loads_in_flight=1,
    suspects=("narrow_access", "memory_latency", "instruction_issue", "barriers"),
)


def test_signature_has_what_the_profile_says() -> None:
    profile = profile_of(NARROW)
    signature = extract_signature(profile)
    assert profile.bottleneck is not None
    assert signature.bottleneck == profile.bottleneck.name == "latency_bound"
    assert signature.suspects == ("memory_latency", "narrow_access", "barriers")
    assert "scalar_access" in signature.traits
    assert signature.provenance is Provenance.ESTIMATED


def test_candidate_that_does_not_compile_has_no_signature() -> None:
    changes = {"status": Status.COMPILE_ERROR, "bottleneck": None, "launches": (), "suspects": ()}
    failed = profile_of(NARROW).model_copy(update=changes)
    assert extract_signature(failed) == signature_of_time()


def test_time_alone_is_the_unknown_state() -> None:
    signature = signature_of_time()
    match = match_state(signature, load_seed().states)
    assert (signature.bottleneck, signature.provenance) == ("unknown", Provenance.UNAVAILABLE)
    assert (match.state.id, match.confidence, match.is_new) == (UNKNOWN_STATE, 1.0, False)


@pytest.mark.slow  # a compile, a run and a profile each
@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        ("fused_add_rmsnorm_b8xh4096", "narrow_streams"),
        ("merge_state_n128xh64xd128", "few_bytes_in_flight"),
    ],
)
def test_reference_kernel_run_on_sim_is_in_the_state_that_it_shows(
    kernel: str, state: str, checked_samples: CheckedSamples
) -> None:
    problem, workload = find_kernel(kernel)
    candidate = read_candidate(problem.folder / "reference.cu")
    request = ProfileRequest(Case(problem, workload, candidate), "sm_90a", counters=False)
    settings = checked_samples.settings
    profile = profile_candidate(request, settings, ProfileDevices(SimDevice(settings)))
    match = match_state(extract_signature(profile), load_seed().states)
    assert (match.state.id, match.is_new, match.rivals) == (state, False, ())
