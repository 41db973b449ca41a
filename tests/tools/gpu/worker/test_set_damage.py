"""Images of a buffer set compared: which changed bytes are damage."""

import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch, LaunchPlan, Scratch
from kopt.kernels.problem import Problem
from kopt.tools.gpu.worker.buffer_layout import Bytes
from kopt.tools.gpu.worker.l2_rotation import (
    SLACK_BYTES,
    CacheSpan,
    SetComparison,
    SetLayout,
    lay_out_set,
)
from support.timing_rig import TENSORS

WINDOW_START = 3 * 256


@pytest.fixture
def problem(compile_problem: Problem) -> Problem:
    """An input, an in-place operand, an output and a weight."""
    return compile_problem.model_copy(update={"tensors": TENSORS})


@pytest.fixture
def layout(problem: Problem) -> SetLayout:
    """Of the problem, and of a side with scratch; a gap whose size is no multiple of eight."""
    launch = Launch(
        kernel="k",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        arguments=tuple(Argument(kind="scratch", name=name) for name in ("s", "t")),
    )
    plan = LaunchPlan(
        workload="w",
        axes={},
        defines={},
        launches=(launch,),
        scratch=tuple(Scratch(name=name, dtype="uint8", shape=(77,)) for name in ("s", "t")),
    )
    random = np.random.default_rng(1)
    return lay_out_set(problem, problem.workload("b8xh64"), (None, plan), random)


def _window(layout: SetLayout) -> CacheSpan:
    return CacheSpan(WINDOW_START, WINDOW_START + layout.part_bytes)


def _changed(layout: SetLayout, at: int) -> tuple[Bytes, Bytes]:
    painted = np.random.default_rng(2).integers(0, 256, layout.layout.total_bytes, dtype=np.uint8)
    found = painted.copy()
    found[at] ^= 0x40
    return painted, found


def test_each_byte_in_the_window_is_damage_unless_a_call_may_write_it(
    problem: Problem, layout: SetLayout
) -> None:
    window = _window(layout)
    comparison = SetComparison(problem, layout.layout)
    edges = [window.start, window.end]
    edges += [edge for slot in layout.layout.slots for edge in (slot.offset, slot.end)]
    near = {edge + step for edge in edges for step in range(-9, 10)}
    random = np.random.default_rng(3).integers(window.start, window.end, 300).tolist()
    written = [slot for slot in layout.layout.slots if slot.name not in ("x", "scale")]
    assert len(written) == 4
    for at in sorted(near.union(random)):
        painted, found = _changed(layout, at)
        if at < window.start or at >= window.end:
            found[at] = 0xFF - painted[at]  # was never read back
        damage = comparison.damage(painted, found, window)
        may_change = any(slot.offset <= at < slot.end for slot in written)
        outside = not window.start <= at < window.end
        expected = [] if may_change or outside else [1]
        assert [one.changed_bytes for one in damage] == expected, at


def test_bytes_outside_of_the_window_are_no_part_of_the_damage(
    problem: Problem, layout: SetLayout
) -> None:
    window = _window(layout)
    slot = layout.layout.by_name["x"]
    painted, found = _changed(layout, slot.offset + 5)
    found[: window.start] += 1
    found[window.end :] += 1
    (damage,) = SetComparison(problem, layout.layout).damage(painted, found, window)
    assert (damage.buffer, damage.where, damage.first_byte) == ("x", "inside", 5)
    assert 0 < WINDOW_START < SLACK_BYTES
