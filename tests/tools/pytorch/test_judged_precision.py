"""Functions that roundings to TF32 drown: imported with IEEE products where these can be judged."""

from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.kernels.precision import Precision
from kopt.kernels.problem_loader import load_problem
from kopt.tools.pytorch.importing.child import export
from kopt.tools.pytorch.importing.exported import Exported
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.stage import ImportRequest, write_problem
from support.torch_sources import HEAD

pytestmark = pytest.mark.slow  # torch.export: 10 s for the first of a process, 1 to 3 s for others

SUMMED = (
    HEAD
    + """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3)

    def forward(self, x):
        return torch.sigmoid(F.avg_pool2d(self.conv(x), 4)).sum((1, 2, 3))

batch, size = 16, 128

def get_inputs():
    return [torch.rand(batch, 8, size, size)]
"""
)
"""A sum over so many sigmoids that what one input changes is as small as their roundings."""


def _exported(folder: Path, text: str, precision: Precision = "torch") -> Exported:
    source, work = folder / "task.py", folder / "work"
    source.write_text(text, "utf-8")
    work.mkdir()
    return export(ExportRequest(source=str(source), precision=precision), work, ignore)


def test_a_sum_that_tf32_drowns_asks_for_ieee_products(tmp_path: Path) -> None:
    exported = _exported(tmp_path, SUMMED)
    assert exported.precision == "ieee"
    assert exported.warnings[0].startswith("convolutions in TF32 could not be judged")
    request = ExportRequest(source=str(tmp_path / "task.py"))
    place = tmp_path / "problems" / "task"
    write_problem(ImportRequest(request, place.parent), exported, tmp_path / "work", place)
    assert load_problem(place).precision == "ieee"
    assert 'precision="ieee"' in (place / "oracle.py").read_text("utf-8")


def test_tf32_that_was_asked_for_is_not_taken_away(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="roundings may move out by"):
        _exported(tmp_path, SUMMED, "tf32")


def test_a_convolution_that_can_be_judged_keeps_its_precision(tmp_path: Path) -> None:
    exported = _exported(tmp_path, SUMMED.replace(".sum((1, 2, 3))", ""))
    assert exported.precision == "torch"
    assert exported.warnings == ()


def test_what_ieee_products_do_not_help_is_refused(tmp_path: Path) -> None:
    text = SUMMED.replace("torch.sigmoid(", "1e6 + torch.sigmoid(")
    with pytest.raises(ToolError, match="out hardly depends on input x"):
        _exported(tmp_path, text)
