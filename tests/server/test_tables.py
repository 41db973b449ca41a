"""Tables where they have room, and where they have not."""

from io import StringIO

import pytest
from rich.console import Console

from kopt.server.views.tables import WideOrNarrow, grid

IDS = ("fused_add_rmsnorm_fp8_block_quant_b1024xh7168", "silu_and_mul_b8xh14336")
ROWS = [(IDS[0], "norm", "66,304,000"), (IDS[1], "activation", "688,128")]


def _printed(width: int, *, is_terminal: bool = True) -> str:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=is_terminal, color_system=None)
    console.print(grid("kernel id", "operation", "bytes#", rows=ROWS, whole=("kernel id",)))
    return out.getvalue()


@pytest.mark.parametrize("width", [200, 80])
def test_a_table_with_room_has_one_line_a_row(width: int) -> None:
    head, *rows = _printed(width).splitlines()
    assert head.split() == ["kernel", "id", "operation", "bytes"]
    assert [row.split() for row in rows] == [list(row) for row in ROWS]


@pytest.mark.parametrize("width", [60, 46])
def test_without_room_every_value_is_whole_below_its_id(width: int) -> None:
    printed = _printed(width)
    assert max(map(len, printed.splitlines())) <= width
    for row in ROWS:
        assert all(cell in printed for cell in row)
    assert printed.splitlines()[0] == IDS[0]


def test_a_list_breaks_its_lines_between_values_and_not_within_one() -> None:
    rows = [("an_id_of_a_kernel", "0.59 us", "one, two", "winner for sm_90a")]
    out = StringIO()
    console = Console(file=out, width=27, force_terminal=True, color_system=None)
    heads = ("kernel id", "floor B200", "library baseline", "shipped")
    console.print(grid(*heads, rows=rows, whole=heads))
    assert [line.strip() for line in out.getvalue().splitlines()] == [
        *("an_id_of_a_kernel", "floor B200 0.59 us", "library baseline one, two"),
        "shipped winner for sm_90a",
    ]


def test_an_id_longer_than_the_terminal_is_folded_and_not_cut() -> None:
    assert IDS[0] in _printed(30).replace("\n", "")


@pytest.mark.parametrize("width", range(30, 140, 3))
def test_no_word_of_a_table_is_cut_at_any_width(width: int) -> None:
    note = "starting point: one block per row, scalar loads, one element a time"
    rows = [("1", "#0 (start)", "other", "BLOCK=256,ROWS=1", "30.775 us estimated", "22", note)]
    heads = ("rank", "candidate", "family", "tune", "time", "registers#", "hypothesis")
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    console.print(grid(*heads, rows=rows))
    words = out.getvalue().split()
    assert set(words) == {word for text in (*heads, *rows[0]) for word in text.rstrip("#").split()}
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_a_pipe_gets_a_line_a_row_whatever_the_width() -> None:
    assert len(_printed(60, is_terminal=False).splitlines()) >= 3


@pytest.mark.parametrize(
    ("width", "is_terminal", "shown"),
    [(80, True, "wide"), (79, True, "narrow"), (79, False, "wide")],
)
def test_the_narrow_form_is_for_narrow_terminals_alone(
    width: int, is_terminal: bool, shown: str
) -> None:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=is_terminal, color_system=None)
    console.print(WideOrNarrow(80, ["wide"], ["narrow"]))
    assert out.getvalue() == f"{shown}\n"
