"""What is made of searches on the simulator and of times from a GPU."""

from pathlib import Path

from sim_picks import SimPick, read_picks, read_times, score_table, won_kernels

from kopt.kernels.problem_loader import find_kernel

TIMES = """\
NVIDIA H200, driver 580.159.04; all measured
kernel_a 2.000 us kernel_a-0 BLOCK=256
kernel_a 1.000 us kernel_a-1
kernel_a kernel_a-2 BLOCK=64: incorrect: y differs
kernel_a: 4.2 s
"""


def test_times_are_read_by_the_name_of_the_file() -> None:
    assert read_times(TIMES) == {"kernel_a-0": 2.0, "kernel_a-1": 1.0}


def test_a_pick_is_near_the_best_within_five_percent() -> None:
    times_us = {"a-0": 1.05, "a-1": 1.0, "b-0": 1.06, "b-1": 1.0}
    picks = [SimPick("a", ("a-0", "a-1"), "a-0"), SimPick("b", ("b-0", "b-1"), "b-0")]
    table = score_table(picks, times_us)
    assert "| a | 2 | 1.050 | 1.000 | 1.050 |" in table
    assert "| b | 2 | 1.060 | 1.000 | 1.060 |" in table
    assert table.endswith("1 of 2 picks are within 5% of the best")


def test_a_pick_without_a_time_is_not_counted() -> None:
    table = score_table([SimPick("a", ("a-0", "a-1"), "a-0")], {"a-1": 1.0})
    assert "| a | 1 | - | - | - |" in table
    assert table.endswith("0 of 0 picks are within 5% of the best")


def test_nothing_was_searched_in_a_new_folder(tmp_path: Path) -> None:
    assert read_picks(tmp_path) == []


def test_the_kernels_to_search_for_exist() -> None:
    kernels = won_kernels()
    assert len(kernels) == 18
    for kernel in kernels:
        find_kernel(kernel)
