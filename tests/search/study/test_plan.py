"""The order of a study's runs."""

from collections import Counter

from support.study_cases import plan


def test_every_arm_runs_every_kernel_in_every_repeat_once() -> None:
    cells = list(plan("a", "b", "c", repeats=2).cells())
    assert len({(one.arm, one.kernel, one.repeat) for one in cells}) == len(cells) == 12
    assert len({one.run for one in cells}) == 12


def test_arms_take_turns_and_each_goes_first_as_often() -> None:
    cells = list(plan("a", "b", repeats=2).cells())
    turns = [cells[place : place + 2] for place in range(0, len(cells), 2)]
    assert all(one.kernel == other.kernel for one, other in turns)
    assert Counter(turn[0].arm for turn in turns) == {"full": 2, "memory_off": 2}


def test_each_kernel_comes_first_in_one_repeat_and_in_one_order_for_all_arms() -> None:
    cells = list(plan("a", "b", "c", repeats=3).cells())
    firsts = {(one.repeat, one.kernel) for one in cells if one.place == 0}
    assert firsts == {(0, "a"), (1, "b"), (2, "c")}
    orders = {
        arm: [(one.repeat, one.kernel) for one in cells if one.arm == arm]
        for arm in ("full", "memory_off")
    }
    assert orders["full"] == orders["memory_off"]


def test_id_of_a_run_says_of_which_study_arm_and_repeat_it_is() -> None:
    first = next(iter(plan().cells()))
    assert first.run == "run-20260101-120000-000-full-r0-k0"
