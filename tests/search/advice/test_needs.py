"""A family is suggested only where the program has what it changes."""

from dataclasses import replace

import pytest

from kopt.kernels.compile_result import DependencyOrder
from kopt.kernels.families import FAMILIES
from kopt.kernels.profile_result import ProfileResult, Suspect
from kopt.search.advice.needs import helpful_families, with_helpful_families
from support.estimate_cases import SCALAR_MIX, VECTOR_MIX, EstimateCase
from support.made_profiles import profile_of

ALL = ("vectorization", "fp4_intrinsics", "shape_specialization")
ORDER = DependencyOrder(loads=4, loads_before_wait=2, loads_after_trigger=0)
GOOD = EstimateCase(blocks=132, threads=1024, order=ORDER)
"""One wave of wide accesses that starts before the launch before it has ended."""


def can_help(family: str, profile: ProfileResult) -> bool:
    return [*helpful_families([family], profile, {"uint8"})] == [family]


def mix(**changes: int) -> tuple[tuple[str, int], ...]:
    return tuple({**VECTOR_MIX, **changes}.items())


@pytest.mark.parametrize(
    ("family", "needy"),
    [
        ("vectorization", replace(GOOD, mix=tuple(SCALAR_MIX.items()))),
        ("layout", replace(GOOD, sectors=32.0)),
        ("register_caching", replace(GOOD, unique_load_bytes=1 << 20)),
        ("bank_conflicts", replace(GOOD, suspects=("bank_conflicts",))),
        ("launch_bounds", replace(GOOD, spill_bytes=8)),
        ("reduction", replace(GOOD, suspects=("barriers",))),
        ("pass_fusion", replace(GOOD, launches=2)),
        ("pass_fusion", replace(GOOD, order=ORDER.model_copy(update={"loads_before_wait": None}))),
        ("ilp_unroll", replace(GOOD, phases=3.0)),
        ("coarsening", replace(GOOD, blocks=132 * 8)),
        ("algebra", replace(GOOD, suspects=("instruction_issue",))),
    ],
)
def test_family_helps_where_the_program_has_what_it_changes(
    family: str, needy: EstimateCase
) -> None:
    assert can_help(family, profile_of(needy))
    assert not can_help(family, profile_of(GOOD))


def test_copies_past_the_registers_need_no_asynchronous_pipeline() -> None:
    assert can_help("async_pipeline", profile_of(GOOD))
    assert not can_help("async_pipeline", profile_of(replace(GOOD, mix=mix(ldgsts=4))))


def test_stores_with_hints_need_no_other_cache_policy() -> None:
    assert can_help("cache_policy", profile_of(GOOD))
    assert not can_help("cache_policy", profile_of(replace(GOOD, streaming_stores=2)))


@pytest.mark.parametrize(("share", "helps"), [(None, True), (0.2, True), (0.7, False)])
def test_code_that_makes_two_values_at_once_needs_no_packed_arithmetic(
    share: float | None, helps: bool
) -> None:
    busy = replace(GOOD, suspects=("instruction_issue",), packed_math=share)
    assert can_help("packed_simd", profile_of(busy)) == helps
    assert not can_help("packed_simd", profile_of(replace(busy, suspects=())))


def test_family_without_a_rule_may_always_help() -> None:
    assert can_help("divergence", profile_of(GOOD))
    assert "divergence" in FAMILIES


def test_a_profile_names_no_family_that_has_nothing_to_change() -> None:
    profile = profile_of(replace(GOOD, suspects=("memory_bandwidth", "instruction_issue")))
    named = [Suspect(name="memory_bandwidth", statement="", evidence=(), gain_us=1.0, families=ALL)]
    profile = profile.model_copy(update={"suspects": (*profile.suspects, *named)})
    shown = with_helpful_families(profile, {"bfloat16"}).suspects[-1].families
    assert "vectorization" not in shown  # its accesses are wide
    assert "fp4_intrinsics" not in shown  # no tensor is narrow
    assert "shape_specialization" in shown  # may always help
    assert "fp4_intrinsics" in with_helpful_families(profile, {"uint8"}).suspects[-1].families


def test_narrow_conversions_in_hardware_need_no_other_ones() -> None:
    made = replace(GOOD, suspects=("instruction_issue",))
    assert can_help("fp4_intrinsics", profile_of(made))
    assert not can_help("fp4_intrinsics", profile_of(GOOD))  # its instructions are no limit
    profile = profile_of(made)
    launch = profile.launches[0]
    resources = launch.resources.model_copy(update={"conversions": {"e4m3": 8}})
    launches = (launch.model_copy(update={"resources": resources}),)
    assert not can_help("fp4_intrinsics", profile.model_copy(update={"launches": launches}))
