"""A family is suggested only where the program has what it changes."""

from dataclasses import replace

import pytest

from kopt.kernels.compile_result import DependencyOrder
from kopt.kernels.families import FAMILIES
from kopt.search.advice.needs import can_help
from support.estimate_cases import SCALAR_MIX, VECTOR_MIX, EstimateCase
from support.made_profiles import profile_of

ORDER = DependencyOrder(loads=4, loads_before_wait=2, loads_after_trigger=0)
GOOD = EstimateCase(blocks=132, threads=1024, order=ORDER)
"""One wave of wide accesses that starts before the launch before it has ended."""


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


def test_family_without_a_rule_may_always_help() -> None:
    assert can_help("divergence", profile_of(GOOD))
    assert "divergence" in FAMILIES
