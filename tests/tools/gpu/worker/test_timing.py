"""A whole timing session on a stand-in for the driver, whose kernels are Python functions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.plan import Scratch
from kopt.kernels.problem import Problem
from kopt.tools.devices.timer import LibrarySide
from kopt.tools.gpu.worker.driver import CudaError
from kopt.tools.gpu.worker.failure import ExecutionFailure
from support.host_cuda import CUresult, DeviceFault, KernelArguments, memory_at
from support.host_timing import HostTimingCuda
from support.timing_rig import (
    COUNT,
    POISON,
    ROWS,
    SET_BYTES,
    SETS,
    TENSORS,
    TimingRig,
    accumulate,
)


@pytest.fixture
def rig(host_timing: HostTimingCuda, compile_problem: Problem, tmp_path: Path) -> TimingRig:
    """A worker on the stand-in."""
    return TimingRig(host_timing, compile_problem, tmp_path)


def refused(work: Callable[[], object]) -> ExecutionFailure:
    """Do the work and return how it failed."""
    with pytest.raises(ExecutionFailure) as caught:
        work()
    return caught.value


def test_facts_are_those_of_the_layout_and_of_one_call(rig: TimingRig) -> None:
    scratch = (Scratch(name="flags", dtype="int32", shape=(3,), init="zero"),)
    sides = (rig.side(), rig.side(launches=2, scratch=scratch), rig.empty_side())
    facts = rig.session(*sides).facts
    assert (facts.sets, facts.set_bytes) == (SETS, SET_BYTES)
    assert facts.rotation_over_l2 == 4.0
    assert [side.nodes_per_call for side in facts.sides] == [1, 3, 1]
    assert [side.kernels for side in facts.sides] == [("k",), ("k", "k"), ("empty_kernel",)]


@pytest.mark.parametrize("copies_late", [False, True])
def test_every_set_gives_the_outputs_of_its_rotation(rig: TimingRig, copies_late: bool) -> None:
    rig.cuda.copies_late = copies_late
    end = rig.session(rig.side(), rig.side())
    end.replay([0, 1, 1, 0])
    answer, outputs = rig.collected(end)
    assert sorted(set(answer.rotations)) == list(range(ROWS))
    for rotation, found in zip(answer.rotations, outputs, strict=True):
        for name, right in rig.rotated(rotation).items():
            np.testing.assert_array_equal(found[name], right)
    assert answer.damage == ()


def test_outputs_of_chosen_sets_come_in_the_order_asked_for(rig: TimingRig) -> None:
    end = rig.session(rig.side())
    end.replay([0])
    every, all_outputs = rig.collected(end)
    chosen = (SETS - 1, 0, 3)
    answer, outputs = rig.collected(end, chosen)
    assert answer.rotations == tuple(every.rotations[place] for place in chosen)
    for place, found in zip(chosen, outputs, strict=True):
        np.testing.assert_array_equal(found["out"], all_outputs[place]["out"])


def test_a_kernel_that_skips_its_work_finds_no_outputs_of_an_earlier_replay(rig: TimingRig) -> None:
    end = rig.session(rig.side(), rig.side("lazy"))
    end.replay([0, 1])
    answer, outputs = rig.collected(end)
    for rotation, found in zip(answer.rotations, outputs, strict=True):
        assert (found["out"].view(np.uint8) == POISON).all()
        given = np.roll(rig.inputs["sum"], rotation, axis=0)
        np.testing.assert_array_equal(found["sum"], given)


def test_times_are_those_of_one_call(rig: TimingRig) -> None:
    end = rig.session(rig.side(), rig.side(launches=3))
    rig.cuda.us_per_launch = 5.0
    answer = end.replay([0, 1, 0])
    assert answer.replays is not None
    assert answer.replays.us_per_call == pytest.approx((5.0, 15.0, 5.0))


def test_both_sides_run_after_the_same_restore_in_replay_order(rig: TimingRig) -> None:
    end = rig.session(rig.side(), rig.empty_side())
    rig.cuda.restored.clear()
    end.replay([0, 1])
    third = len(rig.cuda.restored) // 3  # one restore more gives the host time
    first, second = rig.cuda.restored[third : 2 * third], rig.cuda.restored[2 * third :]
    assert len(first) == SETS
    assert first == second
    sets = [end.sets.tensor_addresses(k)["out"] for k in range(SETS)]
    assert [address for address, _ in first] == sets


def test_warm_up_is_500_calls_or_8_replays_of_each_side(rig: TimingRig) -> None:
    rig.cuda.launched.clear()
    rig.session(rig.side(), rig.side())
    # 40 calls would be 3 replays; and one plain call before the capture.
    assert len(rig.cuda.launched) == 2 * (8 * SETS + 1)


def test_warm_time_leaves_the_outputs_of_the_last_replay(rig: TimingRig) -> None:
    end = rig.session(rig.side())
    end.replay([0])
    before = rig.collected(end)[1]
    rig.cuda.us_per_launch = 4.0
    assert end.warm(0).us_per_call == pytest.approx(4.0)
    for old, new in zip(before, rig.collected(end)[1], strict=True):
        np.testing.assert_array_equal(old["sum"], new["sum"])


def test_scratch_of_a_side_is_its_own_and_poisoned_before_each_replay(rig: TimingRig) -> None:
    found: list[int] = []

    def scribble(arguments: KernelArguments) -> None:
        scratch = arguments.array(len(TENSORS), "u1", 4)
        found.extend(scratch.tolist())
        scratch[:] = 1

    rig.cuda.kernels["k"] = scribble
    side = rig.side(scratch=(Scratch(name="s", dtype="float32", shape=(1,)),))
    end = rig.session(side, side)
    assert end.sets.plan_addresses(0, 0)["s"] != end.sets.plan_addresses(0, 1)["s"]
    found.clear()
    end.replay([0, 1, 0])
    assert set(found) == {POISON}


@pytest.mark.parametrize(
    ("ordinal", "element", "damage"),
    [
        (0, COUNT, ("out", "after", 0)),
        (0, -1, ("out", "before", -4)),
        (1, COUNT + 2, ("x", "after", 8)),
        (1, 7, ("x", "inside", None)),
    ],
)
def test_a_stray_write_of_a_timed_call_is_damage(
    rig: TimingRig, ordinal: int, element: int, damage: tuple[str, str, int | None]
) -> None:
    def stray(arguments: KernelArguments) -> None:
        accumulate(arguments)
        start = int.from_bytes(arguments.raw(ordinal, 8), "little")
        memory_at(start + 4 * element, "f4", 1)[0] = -1.5e-3

    rig.cuda.kernels["k"] = stray
    end = rig.session(rig.side())
    end.replay([0])
    (found,) = rig.collected(end)[0].damage
    assert (found.buffer, found.where) == damage[:2]
    assert damage[2] in (None, found.first_byte)


@pytest.mark.parametrize("place", [0, SETS // 2, SETS - 1, SETS])
@pytest.mark.parametrize("copies_late", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        ("x", 0, "inside"),
        ("x", 4 * COUNT - 1, "inside"),
        ("scale", 3, "inside"),
        ("x", -4096, "before"),
        ("x", 4 * COUNT, "after"),
        ("sum", -1, "before"),
        ("sum", 4 * COUNT, "after"),
        ("out", -1, "before"),
        ("out", 4 * COUNT + 4095, "after"),
    ],
)
def test_one_changed_bit_of_one_set_is_damage(
    rig: TimingRig, place: int, copies_late: bool, damage: tuple[str, int, str]
) -> None:
    tensor, byte, where = damage
    end = rig.session(rig.side())
    end.replay([0])
    memory_at(end.sets.tensor_addresses(place)[tensor] + byte, "u1", 1)[0] ^= 1
    rig.cuda.copies_late = copies_late
    (found,) = rig.collected(end)[0].damage
    assert (found.buffer, found.where, found.changed_bytes) == (tensor, where, 1)


@pytest.mark.parametrize("is_timed_warm_first", [False, True])
@pytest.mark.parametrize("ordinal", [0, 2])
def test_a_call_that_also_computes_for_other_calls_is_damage(
    rig: TimingRig, ordinal: int, is_timed_warm_first: bool
) -> None:
    rig.cuda.kernels["ahead"] = accumulate
    end = rig.session(rig.side("ahead"))
    name = ("out", "", "sum")[ordinal]
    own = {end.sets.tensor_addresses(k)[name] for k in range(SETS)}
    idle = end.sets.tensor_addresses(end.sets.warm_set)[name]

    def compute_ahead(arguments: KernelArguments) -> None:
        accumulate(arguments)
        for address in own | {idle}:  # whatever looks like outputs
            memory_at(address, "u1", 4)[:] += 1

    if is_timed_warm_first:
        end.warm(0)
    rig.cuda.kernels["ahead"] = compute_ahead
    end.replay([0])
    damage = rig.collected(end)[0].damage
    assert [(found.buffer, found.where) for found in damage] == [(name, "idle")]


def test_damage_of_a_set_that_was_not_asked_for_is_not_looked_for(rig: TimingRig) -> None:
    end = rig.session(rig.side())
    end.replay([0])
    memory_at(end.sets.tensor_addresses(2)["x"], "u1", 1)[0] ^= 1
    assert rig.collected(end, (0, 1))[0].damage == ()
    assert len(rig.collected(end, (1, 2))[0].damage) == 1


def test_a_side_that_cannot_be_launched_is_named_and_all_is_freed(rig: TimingRig) -> None:
    rig.cuda.refused["lazy"] = CUresult.CUDA_ERROR_INVALID_VALUE
    answer = refused(lambda: rig.session(rig.side(), rig.side("lazy")))
    assert (answer.side, answer.fault.during, answer.fault.sticky) == (1, "launch", False)
    assert rig.cuda.live == set()


def test_a_side_whose_kernel_is_missing_is_named(rig: TimingRig) -> None:
    answer = refused(lambda: rig.session(rig.side(), rig.side("no_such_kernel")))
    assert (answer.side, answer.fault.code) == (1, "CUDA_ERROR_NOT_FOUND")


def test_a_side_that_breaks_the_context_is_named(rig: TimingRig) -> None:
    def crash(_: KernelArguments) -> None:
        raise DeviceFault

    rig.cuda.kernels["lazy"] = crash
    answer = refused(lambda: rig.session(rig.side(), rig.side("lazy")))
    assert (answer.side, answer.fault.during, answer.fault.sticky) == (1, "run", True)


def test_a_replay_that_breaks_the_context_is_a_fault(rig: TimingRig) -> None:
    end = rig.session(rig.side())

    def crash(_: KernelArguments) -> None:
        raise DeviceFault

    rig.cuda.kernels["k"] = crash
    assert refused(lambda: end.replay([0])).fault.code == "CUDA_ERROR_ILLEGAL_ADDRESS"
    refused(lambda: end.collect(rig.folder))
    refused(lambda: end.warm(0))


def test_no_memory_is_a_fault_of_no_side(rig: TimingRig) -> None:
    rig.cuda.memory_bytes = SET_BYTES
    answer = refused(lambda: rig.session(rig.side()))
    assert (answer.side, answer.fault.code) == (None, "CUDA_ERROR_OUT_OF_MEMORY")


def test_sets_fit_into_half_of_the_free_memory(rig: TimingRig) -> None:
    part = rig.session(rig.side()).sets.memory_bytes // (SETS + 1)
    rig.cuda.memory_bytes = 2 * part * 12
    assert 8 <= rig.session(rig.side()).facts.sets < SETS


def test_closing_frees_all_and_another_session_opens(rig: TimingRig) -> None:
    for seed in (3, 4):
        end = rig.session(rig.side(), rig.empty_side(), seed=seed)
        end.warm(0)
        end.close()
        assert rig.cuda.live == set()


def test_a_library_that_cannot_be_loaded_is_a_fault_of_its_side(rig: TimingRig) -> None:
    baseline = {"name": "b", "entry": "no_such_function", "layout": "row_major"}
    side = LibrarySide.model_validate({"baseline": baseline, "pdl": False})
    answer = refused(lambda: rig.session(rig.side(), side))
    assert (answer.side, answer.fault.during) == (1, "library")


def test_closing_after_a_lost_context_says_so(
    rig: TimingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = rig.session(rig.side())

    def lose(_: int) -> tuple[CUresult]:
        return (CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,)

    monkeypatch.setattr(rig.cuda, "cuMemFree", lose)
    with pytest.raises(CudaError, match="ILLEGAL_ADDRESS"):
        end.close()
