"""Which strategy families have something to change in a program, by the facts of its profile.

A family that is not named here may always help.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from kopt.kernels.profile_result import Bottleneck, LaunchProfile, ProfileResult, Suspect
from kopt.search.knowledge.states.signature import find_traits

Named = TypeVar("Named", Suspect, Bottleneck)
"""What names families."""
_NEEDS = {
    "vectorization": {"scalar_access", "no_vector_stores", "narrow_access"},
    "layout": {"uncoalesced", "uncoalesced_access"},
    "register_caching": {"reads_twice", "repeated_reads"},
    "smem_tiling": {"reads_twice", "repeated_reads", "uncoalesced"},
    "bank_conflicts": {"bank_conflicts"},
    "launch_bounds": {"spills", "local_memory", "register_limit", "low_occupancy"},
    "reduction": {"barriers", "many_barriers", "cluster_exchange"},
    "pass_fusion": {"several_launches", "own_launch", "trigger_latency"},
    "ilp_unroll": {"few_loads", "latency_chain"},
    "async_pipeline": {"through_registers"},
    "coarsening": {"many_blocks", "block_limit", "code_fetch", "several_blocks"},
    "fp4_intrinsics": {"issue_without_conversions"},
    "packed_simd": {"issue_of_scalar_math"},
    "fast_math": {"special_functions"},
    "algebra": {"instruction_issue", "code_fetch"},
    "cache_policy": {"plain_stores"},
}
"""Words of a profile, one of which has to hold: traits, suspects, and what `_more` tells."""
_NARROW_FORMATS = ("e2m1", "e4m3", "e5m2")
_NARROW_DTYPES = frozenset({"float8_e4m3fn", "float8_e5m2", "uint8"})
"""A tensor of FP8 or FP4 has one of these; packed FP4 is stored as uint8."""


def with_helpful_families(profile: ProfileResult, dtypes: Collection[str]) -> ProfileResult:
    """Return a profile whose suspects and bottleneck name no family that has nothing to change.

    Args:
        profile: As it was made.
        dtypes: Of the problem's tensors.
    """

    def kept(found: Named) -> Named:
        helpful = tuple(helpful_families(found.families, profile, dtypes))
        return found.model_copy(update={"families": helpful})

    limit = profile.bottleneck
    changed = {
        "suspects": tuple(map(kept, profile.suspects)),
        "bottleneck": None if limit is None else kept(limit),
    }
    return profile.model_copy(update=changed)


def helpful_families(
    families: Iterable[str], profile: ProfileResult, dtypes: Collection[str]
) -> Iterator[str]:
    """Yield those of `families` that have something to change in a program.

    Args:
        families: Strategy families, in any order.
        profile: Of the program.
        dtypes: Of the problem's tensors.
    """
    words = _words(profile)
    is_narrow = not _NARROW_DTYPES.isdisjoint(dtypes)
    for family in families:
        needed = _NEEDS.get(family)
        has_it = needed is None or not needed.isdisjoint(words)
        if has_it and (is_narrow or family != "fp4_intrinsics"):
            yield family


def _words(profile: ProfileResult) -> set[str]:
    suspects = {suspect.name for suspect in profile.suspects}
    return {*find_traits(profile), *suspects, *_more(profile)}


def _more(profile: ProfileResult) -> set[str]:
    mixes = [launch.resources.instruction_mix for launch in profile.launches]
    copies = any(mix.get("ldgsts") or mix.get("tma") for mix in mixes)
    waves = max((launch.occupancy.waves for launch in profile.launches), default=0.0)
    orders = [launch.resources.dependency_order for launch in profile.launches]
    made = {name for launch in profile.launches for name in launch.resources.conversions}
    has_issue = any(suspect.name == "instruction_issue" for suspect in profile.suspects)
    said = {
        "issue_without_conversions": made.isdisjoint(_NARROW_FORMATS) and has_issue,
        "issue_of_scalar_math": has_issue and not all(_is_packed(one) for one in profile.launches),
        "through_registers": not copies,
        "several_blocks": waves > 1.0,
        "plain_stores": not any(launch.resources.streaming_stores for launch in profile.launches),
        "own_launch": any(one is not None and one.loads_before_wait is None for one in orders),
    }
    return {word for word, holds in said.items() if holds}


def _is_packed(launch: LaunchProfile) -> bool:
    """Return whether most arithmetic makes two values at once; the rest is sums over a row."""
    share = launch.resources.packed_math
    return share is not None and share > 0.5
