"""Which notes fit a program: by what its code, its grid and its bytes are, and silent once done."""

from dataclasses import replace

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.compile_result import DependencyOrder
from kopt.search.advice.note_rules import RULES, ProfiledProgram, fitting
from kopt.tools.docs.own.markdown_chunks import note_uid
from support.estimate_cases import EstimateCase
from support.made_profiles import profile_of

ONE_BARRIER = (("ldg_128", 4), ("stg_128", 2), ("bar", 1), ("shfl", 5), ("lds", 16))
NO_BARRIER = (("ldg_128", 2), ("stg_128", 1))
LARGE = EstimateCase(load_bytes=40 << 20, store_bytes=20 << 20)


def _program(
    case: EstimateCase, order: tuple[int | None, int | None] | None = None
) -> ProfiledProgram:
    """Return a program of 6 loads; `order`: those before the wait, those after the trigger."""
    if order is not None:
        found = DependencyOrder(loads=6, loads_before_wait=order[0], loads_after_trigger=order[1])
        case = replace(case, order=found)
    return ProfiledProgram(
        profile=profile_of(case),
        source="",
        static=("weight",),
        gpu=load_gpus()["H100"],
    )


def _told(program: ProfiledProgram) -> dict[str, str]:
    return {rule.heading: why for rule, why in fitting(program)}


def test_trigger_before_loads_is_told_where_blocks_fill_the_gpu() -> None:
    heading, wide = "Trigger after the loads", EstimateCase(blocks=128, threads=1024)
    assert _told(_program(wide, (2, 4))) == {
        heading: (
            "4 of its 6 global loads stand after the trigger, and its 128 blocks take 48% of the"
            " GPU's room for blocks"
        )
    }
    assert heading not in _told(_program(replace(wide, blocks=8), (2, 4)))
    assert heading not in _told(_program(replace(wide, threads=32), (2, 4)))


def test_nothing_is_told_once_the_loads_are_where_they_should_be() -> None:
    assert _told(_program(EstimateCase(blocks=128, threads=1024), (2, 0))) == {}


def test_kernel_that_waits_and_never_triggers_is_told() -> None:
    program = _program(EstimateCase(blocks=128, threads=1024), (2, None))
    why = _told(program)["Trigger after the loads"]
    assert why == "it waits and never triggers, so the next launch waits for all 128 blocks"


def test_static_inputs_are_named_where_no_load_stands_before_the_wait() -> None:
    program, heading = _program(EstimateCase(), (0, 0)), "Prefetch across the dependency (sm_90 on)"
    assert _told(program)[heading] == (
        "none of its 6 global loads stands before the wait, though weight may"
    )
    assert heading not in _told(replace(program, static=()))


def test_early_start_is_told_to_short_calls_without_it_alone() -> None:
    heading = "Hide the launch between two kernels"
    assert heading in _told(_program(EstimateCase(), (None, None)))
    assert heading not in _told(_program(EstimateCase(), (1, None)))
    assert heading not in _told(_program(LARGE, (None, None)))
    before_hopper = replace(_program(EstimateCase(), (None, None)), gpu=load_gpus()["A100"])
    assert heading not in _told(before_hopper)


def test_small_blocks_are_told_where_nothing_joins_the_threads_of_few_blocks() -> None:
    heading = "Many small blocks for few rows"
    why = _told(_program(EstimateCase(blocks=8, threads=1024, mix=NO_BARRIER)))[heading]
    assert why == (
        "8 blocks leave 124 of 132 SMs idle, and nothing joins the 1024 threads of a block"
    )
    assert heading not in _told(_program(EstimateCase(blocks=8, mix=ONE_BARRIER)))
    assert heading not in _told(_program(EstimateCase(blocks=448, mix=NO_BARRIER)))
    assert heading not in _told(_program(EstimateCase(blocks=8, threads=32, mix=NO_BARRIER)))


def test_partial_sums_that_are_read_one_by_one_are_told() -> None:
    heading = "Partial sums as vectors"
    assert (
        "by 16 loads from shared memory" in _told(_program(EstimateCase(mix=ONE_BARRIER)))[heading]
    )
    assert heading not in _told(_program(EstimateCase()))


def test_widening_is_told_for_few_blocks_by_the_names_in_code_not_in_comments() -> None:
    heading, few = "Widen bf16 by its bits", _program(EstimateCase(blocks=8))
    widening = "float2 f = __bfloat1622float2(pair);"
    assert "it widens by __bfloat1622float2" in _told(replace(few, source=widening))[heading]
    assert heading not in _told(replace(few, source="// __bfloat1622float2"))
    narrow = _program(EstimateCase(blocks=8, mix=(("ldg_16", 4),)))
    assert heading not in _told(replace(narrow, source=widening))
    assert heading not in _told(replace(_program(EstimateCase(blocks=66)), source=widening))


@pytest.mark.parametrize(
    ("case", "streaming", "why"),
    [
        (EstimateCase(), 0, "its stores are ordinary and the 3,145,728 bytes of a call fit in L2"),
        (EstimateCase(), 2, None),
        (LARGE, 0, None),
        (LARGE, 2, "its stores are streaming and the 62,914,560 bytes of a call do not fit in L2"),
        (EstimateCase(), None, None),
        (EstimateCase(mix=(("ldg_16", 4),)), 0, None),
    ],
    ids=["fits", "fits_streaming", "exceeds", "exceeds_streaming", "not_counted", "narrow"],
)
def test_stores_are_told_where_they_do_not_suit_the_size_of_a_call(
    case: EstimateCase, streaming: int | None, why: str | None
) -> None:
    told = _told(_program(replace(case, streaming_stores=streaming)))
    found = told.get("Streaming stores by the size of a call")
    assert (None if found is None else found.partition(" (")[0]) == why


def test_nothing_is_told_of_several_launches() -> None:
    assert _told(_program(EstimateCase(launches=2), (0, 6))) == {}


def test_every_rule_names_a_note_and_no_note_twice() -> None:
    uids = [note_uid(rule.family, rule.heading) for rule in RULES]
    assert len(set(uids)) == len(RULES)
    with pytest.raises(LookupError):
        note_uid("reduction", "no such note")
