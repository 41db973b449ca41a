"""Places of buffers and the damage that is found beside them."""

import numpy as np
import pytest

from kopt.kernels.plan import LaunchPlan, Scratch
from kopt.kernels.problem import Problem
from kopt.tools.gpu.messages import BufferDamage
from kopt.tools.gpu.worker.buffer_layout import (
    GUARD_BYTES,
    Bytes,
    Layout,
    call_sizes,
    content_damage,
    guard_damage,
    lay_out,
    paint_guards,
)

SIZES = [("x", 1000), ("weight", 1), ("empty", 0), ("out", 70_000)]


@pytest.fixture(params=range(5))
def layout(request: pytest.FixtureRequest) -> Layout:
    """A layout of SIZES, with another seed each time."""
    return lay_out(SIZES, np.random.default_rng(request.param))


@pytest.fixture
def painted(layout: Layout) -> Bytes:
    """An image with guards, its buffers zero."""
    image = np.zeros(layout.total_bytes, dtype=np.uint8)
    paint_guards(image, layout, np.random.default_rng(7))
    return image


def test_buffers_are_aligned_and_have_their_sizes(layout: Layout) -> None:
    assert [(slot.name, slot.size_bytes) for slot in layout.slots] == SIZES
    assert all(slot.offset % 256 == 0 for slot in layout.slots)


def test_every_byte_is_of_one_buffer_or_one_guard_zone(layout: Layout) -> None:
    owners = np.zeros(layout.total_bytes, dtype=np.uint8)
    for slot in layout.slots:
        owners[slot.offset : slot.end] += 1
    for zone in layout.guard_zones():
        owners[zone.start : zone.end] += 1
    assert (owners == 1).all()


def test_no_guard_zone_is_shorter_than_promised(layout: Layout) -> None:
    assert min(zone.end - zone.start for zone in layout.guard_zones()) >= 4096


def test_distances_depend_on_the_seed() -> None:
    offsets = {lay_out(SIZES, np.random.default_rng(seed)).slots[-1].offset for seed in range(20)}
    assert len(offsets) > 5


def test_guards_are_not_a_pattern_that_repeats(layout: Layout, painted: Bytes) -> None:
    zones = {painted[z.start : z.start + 64].tobytes() for z in layout.guard_zones()}
    assert len(zones) == 2 * len(SIZES)


def test_an_untouched_image_has_no_damage(layout: Layout, painted: Bytes) -> None:
    found = painted.copy()
    for slot in layout.slots:
        found[slot.offset : slot.end] = 255
    assert guard_damage(layout, painted, found) == ()


@pytest.mark.parametrize(
    ("where", "first_byte"),
    [("before", -1), ("before", -GUARD_BYTES), ("after", 0), ("after", 4095)],
)
def test_one_changed_byte_beside_a_buffer_is_found(
    layout: Layout, painted: Bytes, where: str, first_byte: int
) -> None:
    slot = layout.by_name["weight"]
    found = painted.copy()
    found[(slot.offset if where == "before" else slot.end) + first_byte] ^= 1
    (damage,) = guard_damage(layout, painted, found)
    assert (damage.buffer, damage.where) == ("weight", where)
    assert (damage.first_byte, damage.changed_bytes) == (first_byte, 1)


def test_the_first_and_the_last_byte_of_the_allocation_are_guarded(
    layout: Layout, painted: Bytes
) -> None:
    found = painted.copy()
    found[[0, -1]] ^= 255
    damage = guard_damage(layout, painted, found)
    assert [(d.buffer, d.where) for d in damage] == [("x", "before"), ("out", "after")]
    assert damage[0].first_byte == -layout.slots[0].offset


def test_a_changed_input_is_told_by_its_first_byte() -> None:
    given = np.arange(100, dtype=np.uint8)
    found = given.copy()
    found[[17, 40]] = 0
    expected = BufferDamage(buffer="x", where="inside", first_byte=17, changed_bytes=2)
    assert content_damage("x", given, found) == expected
    assert content_damage("x", given, given) is None


def test_a_call_has_its_tensors_and_its_scratch(compile_problem: Problem) -> None:
    scratch = Scratch(name="partial", dtype="float32", shape=(8, 3))
    plan = LaunchPlan(workload="b8xh64", axes={}, defines={}, launches=(), scratch=(scratch,))
    sizes = call_sizes(compile_problem, compile_problem.workload("b8xh64"), plan)
    assert sizes == [("x", 2048), ("weight", 128), ("out", 2048), ("partial", 96)]
