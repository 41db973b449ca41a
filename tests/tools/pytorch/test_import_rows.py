"""Which functions have rows, as their import finds out."""

from pathlib import Path

import pytest

from kopt.kernels.problem_loader import load_problem
from kopt.tools.pytorch.importing.request import Mode
from support.imported_modules import import_text
from support.torch_sources import HEAD, SOURCES

pytestmark = pytest.mark.slow  # torch.export: 10 s for the first of a process, 1 to 3 s for others


SQUARE = (
    HEAD
    + """N = 4096

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.rand(N, N), torch.rand(N, N)]
"""
)


def test_rows_of_a_square_product_are_told_from_its_columns(tmp_path: Path) -> None:
    problem = load_problem(Path(import_text(tmp_path, SQUARE).folder))
    assert problem.row_axis == "B"
    assert [tensor.shape for tensor in problem.tensors] == [("B", "C"), ("C", "C"), ("B", "C")]
    assert [dict(one.axes) for one in problem.workloads] == [
        {"B": 128, "C": 128},
        {"B": 4096, "C": 4096},
    ]


def test_rows_against_rows_are_those_of_the_first_input(tmp_path: Path) -> None:
    text = SQUARE.replace("a @ b", "a @ b.T")
    assert import_text(tmp_path, text).row_axis == "B"


def test_a_product_of_columns_has_no_rows(tmp_path: Path) -> None:
    assert import_text(tmp_path, SQUARE.replace("a @ b", "a.T @ b")).row_axis is None


def test_a_batch_norm_has_no_rows_in_training_and_rows_in_use(tmp_path: Path) -> None:
    text = SOURCES["groups"].replace("nn.GroupNorm(groups, outside)", "nn.BatchNorm1d(outside)")
    for place, mode in (("a", "as-is"), ("b", "eval")):
        (tmp_path / place).mkdir()
        chosen: Mode = "eval" if mode == "eval" else "as-is"
        result = import_text(tmp_path / place, text, mode=chosen)
        assert result.row_axis == (None if mode == "as-is" else "B")
