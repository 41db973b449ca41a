"""Each trait that costs time is named, with its numbers; what costs nothing is not."""

from dataclasses import replace

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.families import FAMILIES
from kopt.kernels.profile_result import Suspect
from kopt.tools.profiling.suspects import find_suspects
from kopt.tools.profiling.what_if import Evaluated
from support.estimate_cases import SCALAR_MIX, EstimateCase, compiled

LARGE = EstimateCase(
    blocks=16384, load_bytes=256 << 20, store_bytes=128 << 20, phases=0.0, barriers=0.0
)


def suspects(case: EstimateCase) -> tuple[Suspect, ...]:
    gpu = load_gpus()[case.gpu]
    evaluated = Evaluated(compiled(case, gpu.arch), case.counters(), case.plan(), gpu, case.model())
    return find_suspects(evaluated)


TRAITS = {
    "several_launches": (replace(EstimateCase(), launches=2), "2 launches"),
    "uncoalesced_access": (replace(LARGE, sectors=64.0), "x: 64 sectors"),
    "repeated_reads": (
        replace(LARGE, load_bytes=1 << 30, unique_load_bytes=256 << 20),
        "1.07e+03 MB loaded, 268 MB needed",
    ),
    "narrow_access": (replace(EstimateCase(), mix=tuple(SCALAR_MIX.items())), "4 ldg_16"),
    "spills": (replace(LARGE, spill_bytes=400), "400 bytes stored"),
    "low_occupancy": (replace(LARGE, phases=8.0, registers=128), "limited by registers"),
    "few_blocks": (replace(EstimateCase(), blocks=16), "16 blocks for 132 SMs"),
    "many_blocks": (replace(EstimateCase(), blocks=8192, threads=32), "8,192 blocks of 32 threads"),
    "barriers": (replace(EstimateCase(), barriers=20.0), "20 barriers"),
}


@pytest.mark.parametrize("name", TRAITS)
def test_trait_is_named_with_its_numbers(name: str) -> None:
    case, number = TRAITS[name]
    found = next(suspect for suspect in suspects(case) if suspect.name == name)
    assert found.gain_us is not None
    assert found.gain_us > 0
    assert number in " ".join(found.evidence)


def test_streaming_kernel_is_bound_by_bandwidth_and_nothing_else() -> None:
    assert [suspect.name for suspect in suspects(LARGE)] == ["memory_bandwidth"]


def test_tiny_kernel_is_bound_by_its_launch() -> None:
    case = replace(EstimateCase(), load_bytes=1 << 18, store_bytes=1 << 17, barriers=0.0)
    found = suspects(case)[0]
    assert (found.name, found.gain_us) == ("launch_latency", None)


def test_one_launch_is_not_told_to_be_fused() -> None:
    case = replace(EstimateCase(), load_bytes=1 << 18, store_bytes=1 << 17, barriers=0.0)
    one, several = suspects(case)[0], suspects(replace(case, launches=2))[0]
    assert "pass_fusion" not in one.families
    assert "little is left" in one.statement
    assert several.name == "launch_latency"
    assert "pass_fusion" in several.families


def test_kernel_of_many_instructions_is_bound_by_them() -> None:
    assert suspects(replace(EstimateCase(), instructions=20_000))[0].name == "instruction_issue"


def test_narrow_loads_are_bound_by_latency() -> None:
    case = replace(TRAITS["narrow_access"][0], blocks=32)
    assert suspects(case)[0].name == "memory_latency"


def test_suspects_follow_the_bound_by_falling_gain() -> None:
    found = suspects(replace(LARGE, sectors=64.0, spill_bytes=400, barriers=50.0))
    gains = [suspect.gain_us for suspect in found if suspect.gain_us]
    assert len(gains) > 1
    assert gains == sorted(gains, reverse=True)


def test_every_advised_family_exists() -> None:
    named = {
        family
        for case, _ in TRAITS.values()
        for suspect in suspects(case)
        for family in suspect.families
    }
    assert named <= set(FAMILIES)
