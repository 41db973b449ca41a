"""Which strategy families have something to change in a program, by the facts of its profile.

A family that is not named here may always help.
"""

from kopt.kernels.profile_result import ProfileResult
from kopt.search.knowledge.states.signature import find_traits

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
    "fp4_intrinsics": {"instruction_issue"},
    "packed_simd": {"instruction_issue"},
    "fast_math": {"special_functions"},
    "algebra": {"instruction_issue", "code_fetch"},
    "cache_policy": {"plain_stores"},
}
"""Words of a profile, one of which has to hold: traits, suspects, and what `_more` tells."""


def can_help(family: str, profile: ProfileResult) -> bool:
    """Return whether a program has what a family changes."""
    needed = _NEEDS.get(family)
    return needed is None or not needed.isdisjoint(_words(profile))


def _words(profile: ProfileResult) -> set[str]:
    suspects = {suspect.name for suspect in profile.suspects}
    return {*find_traits(profile), *suspects, *_more(profile)}


def _more(profile: ProfileResult) -> set[str]:
    mixes = [launch.resources.instruction_mix for launch in profile.launches]
    copies = any(mix.get("ldgsts") or mix.get("tma") for mix in mixes)
    waves = max((launch.occupancy.waves for launch in profile.launches), default=0.0)
    orders = [launch.resources.dependency_order for launch in profile.launches]
    said = {
        "through_registers": not copies,
        "several_blocks": waves > 1.0,
        "plain_stores": not any(launch.resources.streaming_stores for launch in profile.launches),
        "own_launch": any(one is not None and one.loads_before_wait is None for one in orders),
    }
    return {word for word, holds in said.items() if holds}
