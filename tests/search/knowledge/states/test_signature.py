"""A profile becomes a signature by rule; what was not profiled has an empty one."""

import pytest

from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.matching import UNKNOWN_STATE, match_state
from kopt.search.knowledge.states.signature import extract_signature, signature_of_time
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice
from support.checked_samples import CheckedSamples
from support.estimate_cases import SCALAR_MIX, EstimateCase
from support.made_profiles import profile_of

NARROW = EstimateCase(mix=tuple(SCALAR_MIX.items()), phases=8.0, loads_in_flight=1)


def test_signature_has_what_the_profile_says() -> None:
    profile = profile_of(NARROW)
    signature = extract_signature(profile)
    assert profile.bottleneck is not None
    assert signature.bottleneck == profile.bottleneck.name == "latency_bound"
    assert signature.suspects == tuple(suspect.name for suspect in profile.suspects)
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


@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        ("fused_add_rmsnorm_b8xh4096", "idle_multiprocessors"),
        ("fused_add_rmsnorm_b128xh4096", "narrow_round_trips"),
        ("merge_state_n128xh64xd128", "repeated_instructions"),
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
