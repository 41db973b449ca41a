"""Baselines of imported functions are called with kopt's tensors in the user's own arguments."""

from typing import Any

from kopt.tools.pytorch.library_side import arguments_of
from kopt.tools.pytorch.torch_library import load_torch


def _zeros(*shape: int) -> Any:
    return load_torch().zeros(shape)


def test_numbers_and_lists_stay_where_the_user_has_them() -> None:
    given = (_zeros(2, 3), 0.5, [_zeros(4), _zeros(5)])
    mine = [_zeros(2, 3) + 1, _zeros(4) + 2, _zeros(5) + 3]
    first, number, others = arguments_of(given, mine, set())
    assert number == 0.5
    assert first is mine[0]
    assert others[0] is mine[1]
    assert others[1] is mine[2]


def test_an_argument_that_the_problem_left_out_is_the_users_own() -> None:
    given = (_zeros(2, 3), _zeros(7), _zeros(2, 3))
    mine = [_zeros(2, 3) + 1, _zeros(2, 3) + 2]
    made = arguments_of(given, mine, {1})
    assert [one.shape for one in made] == [one.shape for one in given]
    assert made[0] is mine[0]
    assert made[2] is mine[1]
