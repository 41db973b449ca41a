"""How many buffer sets there are and where they lie."""

from itertools import pairwise

import numpy as np
import pytest

from kopt.kernels.plan import LaunchPlan, Scratch
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.set_contents import CallWork, call_work
from kopt.tools.gpu.worker.buffer_layout import ALIGNMENT_BYTES, GUARD_BYTES
from kopt.tools.gpu.worker.l2_rotation import (
    MAX_SETS,
    SLACK_BYTES,
    SetLayout,
    lay_out_set,
    place_sets,
    scratch_name,
    set_count,
)
from support.oracle_run import problems, workload_of

H100_L2_BYTES = 50 << 20


def _plan(*names: str) -> LaunchPlan:
    scratch = tuple(Scratch(name=name, dtype="float32", shape=(3, 7)) for name in names)
    return LaunchPlan(workload="w", axes={}, defines={}, launches=(), scratch=scratch)


def _norm() -> tuple[Problem, Workload]:
    problem = problems()["add_rmsnorm_fp4quant"]
    return problem, workload_of(problem, {"B": 5, "H": 48})


def _layout(*plans: LaunchPlan | None, seed: int = 1) -> SetLayout:
    return lay_out_set(*_norm(), plans, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("set_bytes", "l2_bytes", "affordable", "expected"),
    [
        (2_000_000, H100_L2_BYTES, 10**6, 105),  # ceil(4 * 52428800 / 2000000)
        (100 << 20, H100_L2_BYTES, 10**6, 8),  # two would hold 4 x L2, eight are the least
        (400 << 20, H100_L2_BYTES, 10**6, 4),  # 32 x L2 in all: as long as eight of 200 MB
        (12 << 30, H100_L2_BYTES, 10**6, 2),  # one set is many times L2
        (12 << 30, H100_L2_BYTES, 1, 2),
        (24_000, H100_L2_BYTES, 10**6, MAX_SETS),  # 8739 would be too many nodes
        (2_000_000, H100_L2_BYTES, 40, 40),
        (2_000_000, H100_L2_BYTES, 3, 8),  # does not fit; that is for the allocation to say
    ],
)
def test_set_count(set_bytes: int, l2_bytes: int, affordable: int, expected: int) -> None:
    work = CallWork(set_bytes, call_bytes=set_bytes)
    assert set_count(work, l2_bytes, affordable) == expected


def test_products_that_take_longer_than_their_tensors_need_fewer_sets() -> None:
    gemm = problems()["gemm_bf16"]
    few_rows, square = (
        call_work(gemm, workload_of(gemm, {"M": rows, "N": 4096, "K": 4096}).axes)
        for rows in (8, 8192)
    )
    assert few_rows.call_bytes == few_rows.set_bytes
    assert square.call_bytes == 2 * 8192 * 4096 * 4096 * 2 // 600 > square.set_bytes
    assert set_count(few_rows, H100_L2_BYTES, 10**6) == 8
    assert set_count(square, H100_L2_BYTES, 10**6) == 3  # two others are six times what L2 holds


def test_products_do_not_make_a_rotation_smaller_than_l2_wants() -> None:
    work = CallWork(10 << 20, call_bytes=10 << 30)
    assert set_count(work, H100_L2_BYTES, 10**6) == 21  # of which 20 are touched in between


def test_roles_follow_one_another_so_that_one_copy_and_one_fill_restore_a_set() -> None:
    layout = _layout(_plan("partial"), None, _plan("partial", "flags"))
    names = [slot.name for slot in layout.layout.slots]
    problem, _ = _norm()
    by_role = [
        [t.name for t in problem.tensors if t.role == role] for role in ("in", "inout", "out")
    ]
    scratch = [scratch_name(0, "partial"), scratch_name(2, "partial"), scratch_name(2, "flags")]
    assert names == [*by_role[0], *by_role[1], *by_role[2], *scratch]
    inside = [
        slot.name
        for slot in layout.layout.slots
        if layout.restored.start <= slot.offset and slot.end <= layout.restored.end
    ]
    assert inside == by_role[1]
    poisoned = [s.name for s in layout.layout.slots if s.offset >= layout.poisoned.start]
    assert poisoned == [*by_role[2], *scratch]
    assert layout.poisoned.end == layout.layout.slots[-1].end


def test_a_problem_without_in_place_operands_restores_nothing() -> None:
    problem = problems()["silu_and_mul"]
    workload = workload_of(problem, {"B": 2, "H": 32})
    layout = lay_out_set(problem, workload, [None], np.random.default_rng(1))
    assert layout.restored.size_bytes == 0


def test_all_bytes_of_a_set_are_a_buffer_or_a_guard_zone() -> None:
    layout = _layout(_plan("partial")).layout
    owners = np.zeros(layout.total_bytes, dtype=np.int64)
    for slot in layout.slots:
        assert slot.offset % ALIGNMENT_BYTES == 0
        owners[slot.offset : slot.end] += 1
    for zone in layout.guard_zones():
        assert zone.end - zone.start >= GUARD_BYTES
        owners[zone.start : zone.end] += 1
    assert (owners == 1).all()


@pytest.mark.parametrize("seed", range(5))
def test_sets_do_not_overlap_and_fill_the_allocation(seed: int) -> None:
    layout = _layout(_plan("partial"), seed=seed)
    places = place_sets(37, 5, np.random.default_rng(seed))
    assert sorted(place.part for place in places) == list(range(38))
    for place in places:
        first = place.origin(layout) + SLACK_BYTES  # where the set itself begins
        last = place.origin(layout) + layout.layout.total_bytes - SLACK_BYTES
        part_start = place.part * layout.part_bytes
        assert part_start <= first and last <= part_start + layout.part_bytes
        assert place.origin(layout) + place.window_start == part_start
        assert place.shift % ALIGNMENT_BYTES == 0


def test_no_distance_leads_from_one_call_to_the_next() -> None:
    layout = _layout()
    places = place_sets(200, 5, np.random.default_rng(3))
    origins = [place.origin(layout) for place in places[:200]]
    steps = [b - a for a, b in pairwise(origins)]
    assert len(set(steps)) > 190
    in_memory = [b - a for a, b in pairwise(sorted(origins))]
    assert len(set(in_memory)) > 50


def test_rotations_are_all_used_and_in_no_order() -> None:
    places = place_sets(64, 64, np.random.default_rng(3))
    rotations = [place.rotation for place in places]
    assert sorted(rotations[:64]) == list(range(64))
    assert rotations[:64] != sorted(rotations[:64])
    assert rotations[64] == 0


def test_few_sets_have_any_of_many_contents() -> None:
    met: set[int] = set()
    for seed in range(40):
        places = place_sets(2, 64, np.random.default_rng(seed))
        first, second, warm = (place.rotation for place in places)
        assert first != second and warm == 0
        met |= {first, second}
    assert len(met) > 30 and met <= set(range(64))


def test_rotations_are_modulo_the_rows() -> None:
    places = place_sets(64, 3, np.random.default_rng(3))
    assert {place.rotation for place in places} == {0, 1, 2}


def test_the_seed_decides_all() -> None:
    draws = [place_sets(16, 8, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
