"""How far work is, and how long it will still take."""

import pytest

from kopt.config.time_left import TimeLeft


@pytest.mark.parametrize(
    ("number", "elapsed_s", "said"),
    [
        (1, 0.0, ""),
        (3, 20.0, ""),  # two pieces tell too little
        (4, 30.0, ", about 2 min left"),
        (15, 28.0, ", about 4 s left"),
        (16, 3.0, ""),  # less than a second
        (4, 3600.0, ", about 260 min left"),
    ],
)
def test_time_left_is_told_once_three_pieces_are_done(
    number: int, elapsed_s: float, said: str
) -> None:
    now = [100.0]
    pace = TimeLeft(16, clock=lambda: now[0])
    now[0] += elapsed_s
    assert pace.left(number) == said
    assert pace.place(number) == f"{number} of 16"
