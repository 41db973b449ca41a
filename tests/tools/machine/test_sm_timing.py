"""The warps of one SM take as long as what they wait for: relations, on steps made by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.tools.estimate.machine.block_starts import last_start
from kopt.tools.estimate.machine.memory_share import memory_share
from kopt.tools.estimate.machine.sm_timing import time_sm
from kopt.tools.estimate.machine.sm_work import SmTiming, SmWork
from kopt.tools.estimate.machine.steps import WarpStep
from kopt.tools.estimate.machine.timing_constants import Clocks

CLOCKS = Clocks()
GPU = load_gpus()["H100"]


def load(first: int, count: int = 16, board: int = 0) -> WarpStep:
    """Return a load of `count` sectors."""
    return WarpStep("load", 0, 1, 2, sets=board, sectors=tuple(range(first, first + count)))


def work(clocks: int, waits: int = 0) -> WarpStep:
    """Return arithmetic of so many instructions and clocks."""
    return WarpStep("arithmetic", 0, clocks, clocks, waits=waits)


def timed(warps: Sequence[Sequence[WarpStep]], blocks: int = 1, resident: int = 1) -> SmTiming:
    """Return the timing of equal blocks on one SM that has the whole memory of a hundredth."""
    memory = memory_share(GPU, 0.01, CLOCKS, {})
    return time_sm(SmWork([0] * blocks, {0: warps}, resident), memory)


def test_warp_waits_for_its_load_and_no_other() -> None:
    waits = timed([[load(0), work(10, waits=1)]]).ended
    goes_on = timed([[load(0), work(10)]]).ended
    assert waits > CLOCKS.dram
    assert goes_on < CLOCKS.dram


def test_loads_under_way_together_cost_one_latency() -> None:
    together = timed([[load(0), load(100), work(1, waits=1)]]).ended
    one_by_one = timed([[load(0), work(1, waits=1), load(100), work(1, waits=1)]]).ended
    assert one_by_one > together + 0.9 * CLOCKS.dram


def test_what_was_loaded_before_is_near() -> None:
    again = timed([[load(0), work(1, waits=1), load(0), work(1, waits=1)]]).ended
    other = timed([[load(0), work(1, waits=1), load(100), work(1, waits=1)]]).ended
    assert again < other - 0.9 * CLOCKS.dram + CLOCKS.l1 * 2


def test_barrier_lets_go_when_the_last_warp_has_come() -> None:
    slow, fast = (
        [work(500), WarpStep("barrier", 0, 1, 1)],
        [work(5), WarpStep("barrier", 0, 1, 1), work(7)],
    )
    assert 505 < timed([slow, fast]).ended < 700


def test_barrier_does_not_wait_for_warps_that_have_ended() -> None:
    assert timed([[work(5)], [work(50), WarpStep("barrier", 0, 1, 1), work(5)]]).ended < 500


def test_blocks_beyond_those_that_fit_take_rounds() -> None:
    warps = [[work(1000)]]
    assert timed(warps, blocks=4, resident=4).ended < 2500
    assert timed(warps, blocks=4, resident=1).ended >= 4000


def test_schedulers_share_the_issue_of_many_warps() -> None:
    four, sixteen = ([[work(400)]] * count for count in (4, 16))
    assert timed(sixteen).ended > 3 * timed(four).ended - 2 * CLOCKS.first_fetch


def test_store_to_the_cluster_wakes_who_waits_for_it() -> None:
    sender = [work(100), WarpStep("remote_store", 0, 1, 1), WarpStep("arrival", 0, 1, 1), work(5)]
    waiter = [WarpStep("arrival", 0, 1, 1), work(5)]
    assert timed([sender, waiter]).ended > 100 + CLOCKS.cluster


def test_more_passes_over_the_banks_take_longer() -> None:
    def shared(passes: int) -> float:
        step = WarpStep("shared", 0, 1, 1, sets=0, passes=passes)
        return timed([[*[step] * 50, work(1, waits=1)]]).ended

    assert shared(16) > shared(1) + 600


def test_bytes_beyond_the_bandwidth_take_their_time() -> None:
    many = [[*(load(64 * place, 64) for place in range(200)), work(1, waits=1)]]
    few = [[*(load(64 * place, 64) for place in range(20)), work(1, waits=1)]]
    assert timed(many).ended > 5 * (timed(few).ended - CLOCKS.dram)


def test_trigger_and_wait_are_told() -> None:
    timing = timed(
        [[work(50), WarpStep("wait", 0, 1, 1), work(50), WarpStep("trigger", 0, 1, 1), work(9)]]
    )
    assert 0 < timing.waited < timing.triggered < timing.ended
    assert timed([[work(10)]]).triggered == timed([[work(10)]]).ended


def test_code_is_fetched_once() -> None:
    lines = replace(work(10), lines=list(range(40)))
    once = timed([[lines]]).ended
    twice = timed([[lines, replace(work(10), lines=list(range(40)))]]).ended
    assert once > 40 * CLOCKS.fetch
    assert twice < once + 30


def test_barrier_that_nobody_fills_leaves_no_work_out() -> None:
    stuck = [work(10), WarpStep("barrier", 0, 1, 1), work(5000)]
    other = [work(10), WarpStep("cluster_barrier", 0, 1, 1), work(5000)]
    assert timed([stuck, other], blocks=2).ended > 2 * 5000
    waits = [WarpStep("arrival", 0, 1, 1), work(3), WarpStep("remote_store", 0, 1, 1), work(5000)]
    assert timed([waits]).ended > 5000


def test_steps_beyond_those_that_are_simulated_go_on_at_the_same_pace() -> None:
    steps = {0: [[load(0), work(100, waits=1)]]}
    blocks = range(0, 132 * 4000, 132)
    whole, part = (
        time_sm(SmWork(blocks, steps, 4, most), memory_share(GPU, 0.01, CLOCKS, {})).ended
        for most in (1 << 30, 800)
    )
    assert abs(part / whole - 1) < 0.1


def test_waits_are_told_by_what_was_waited_for() -> None:
    weight = replace(load(0), index=3)
    waits = timed([[weight, work(10, waits=1)]]).waits
    assert waits.at("memory").keys() == {3}
    assert waits.at("memory")[3] > 0.8 * CLOCKS.dram
    assert waits.at("barrier") == waits.at("cluster") == waits.at("shared") == {}


def test_who_waits_at_a_barrier_waits_for_the_last_warp_alone() -> None:
    barrier = WarpStep("barrier", 7, 1, 1)
    waits = timed([[work(500), barrier], [work(5), barrier]]).waits
    assert 450 < waits.at("barrier")[7] < 600


def test_units_are_busy_for_what_they_do() -> None:
    timing = timed([[work(400)], [load(0, 64), work(5, waits=1)]])
    assert timing.busy["issue"] == 400
    assert timing.busy["load_store"] == 16
    assert timing.busy["sm_intake"] == 64 * 32 / CLOCKS.intake
    assert timing.busy["l2"] >= timing.busy["sm_intake"]


def test_what_l1_no_longer_keeps_comes_from_l2_and_not_from_dram() -> None:
    kept = GPU.smem_per_sm_bytes // 32
    many = [load(64 * place, 64) for place in range(kept // 64 + 2)]
    again = timed([[*many, load(0, 64), work(1, waits=1)]])
    once = timed([[*many, work(1, waits=1)]])
    assert again.busy["l2"] > once.busy["l2"]
    assert again.busy["dram"] == once.busy["dram"]


def spilled(words: int, l1_sectors: int, times: int = 1) -> SmTiming:
    """Return the timing of a warp that puts words aside so many times, and takes them back."""
    memory = memory_share(GPU, 0.01, CLOCKS, {})
    memory.l1_sectors = l1_sectors
    places = [tuple(range(4 * place, 4 * place + 4)) for place in range(words)]
    away = [WarpStep("shared", 0, 1, 1, sectors=p, is_local=True) for p in places]
    back = [WarpStep("shared", 0, 1, 1, sets=0, sectors=p, is_local=True) for p in places]
    steps = [*away * times, *back, work(1, waits=1)]
    return time_sm(SmWork([0], {0: [steps]}, 1), memory)


def test_spilled_registers_come_back_from_l1_while_it_has_room() -> None:
    kept, lost = spilled(20, 80), spilled(20, 40)
    assert kept.busy["sm_intake"] == 0.0
    assert lost.busy["sm_intake"] > 0.0
    assert lost.ended > kept.ended + 0.5 * CLOCKS.l2


def test_spilled_registers_are_work_of_dram_once_however_often_they_are_written() -> None:
    once, often = spilled(20, 80), spilled(20, 80, times=3)
    assert 0.0 < once.busy["dram"] == often.busy["dram"]
    assert often.busy["l2"] == pytest.approx(3 * once.busy["l2"])


def test_cluster_waits_for_its_latest_block_the_longer_the_later_this_one_sends() -> None:
    def ended(clocks: int) -> float:
        sender = [work(clocks), WarpStep("remote_store", 0, 1, 1), WarpStep("arrival", 0, 1, 1)]
        return timed([sender]).ended

    later = ended(4100) - ended(100)
    assert later == pytest.approx(4000 * (1 + CLOCKS.cluster_skew), rel=0.01)


def test_launch_does_not_end_before_its_last_block_was_handed_out() -> None:
    memory = memory_share(GPU, 0.01, CLOCKS, {})
    work_of_one = SmWork([0], {0: [[work(10)]]}, 1, last_start=9000.0)
    assert time_sm(work_of_one, memory).ended == 9000.0


def test_many_blocks_are_handed_out_one_after_the_other_and_few_at_once() -> None:
    assert last_start(GPU, 3 * GPU.sm_count, is_early=False) == 0.0
    assert last_start(GPU, 8192, is_early=False) == pytest.approx(4.7 * GPU.clock_mhz, rel=0.02)
    assert last_start(GPU, 8192, is_early=True) > last_start(GPU, 8192, is_early=False)


def test_wait_for_copies_ends_when_the_group_it_names_is_there() -> None:
    copy, other = (replace(load(first), sets=7, is_copy=True) for first in (0, 100))
    group = WarpStep("copy_group", 1, 1, 1)

    def ended(left: int) -> float:
        wait = WarpStep("copy_wait", 2, 1, 1, groups=left)
        return timed([[copy, group, work(500), other, group, wait, work(1)]]).ended

    assert ended(0) > CLOCKS.dram + 500
    assert CLOCKS.dram < ended(1) < ended(0) - 400
    assert ended(2) < CLOCKS.dram
