"""How far work is, and how long it will still take."""

import pytest

from kopt.config.time_left import TimeLeft, counted_down


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


@pytest.mark.parametrize(
    ("total", "done", "is_told"),
    [(3, 1, True), (8, 1, False), (8, 2, True), (20, 2, False), (20, 3, True)],
)
def test_a_quarter_of_few_pieces_tells_how_long_the_rest_takes(
    total: int, done: int, is_told: bool
) -> None:
    now = [0.0]
    pace = TimeLeft(total, clock=lambda: now[0])
    now[0] = 4.0 * done
    assert pace.left(done + 1) == (f", about {4 * (total - done)} s left" if is_told else "")


@pytest.mark.parametrize(
    ("line", "elapsed_s", "words", "left"),
    [
        ("compiling", 5.0, "compiling", ""),
        ("2 of 3: compiling, about 12 s left", 5.0, "2 of 3: compiling", ", about 7 s left"),
        ("2 of 3: compiling, about 12 s left", 30.0, "2 of 3: compiling", ""),
        (
            "compiling, about 9 s left as last time",
            3.0,
            "compiling",
            ", about 6 s left as last time",
        ),
        ("4 of 9, about 4 min left: writing", 60.0, "4 of 9: writing", ", about 3 min left"),
    ],
)
def test_time_left_goes_down_while_a_line_stands(
    line: str, elapsed_s: float, words: str, left: str
) -> None:
    assert counted_down(line, elapsed_s) == (words, left)


def test_line_of_a_piece_has_the_time_left_of_all() -> None:
    now = [0.0]
    told: list[str] = []
    pace = TimeLeft(4, clock=lambda: now[0])
    pace.piece(1, told.append)("compiling, about 3 s left")
    now[0] = 20.0
    second = pace.piece(2, told.append)
    second("compiling, about 3 s left")
    now[0] = 35.0
    second("checking")
    assert told == [
        "1 of 4: compiling",
        "2 of 4: compiling, about 60 s left",
        "2 of 4: checking, about 45 s left",
    ]


def test_time_left_of_the_only_piece_is_its_own() -> None:
    told: list[str] = []
    TimeLeft(1).piece(1, told.append)("compiling, about 3 s left as last time")
    assert told == ["1 of 1: compiling, about 3 s left as last time"]
