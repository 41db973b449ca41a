"""`kopt review --reference`: a claim of a kernel that is to replace a PyTorch function."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt

GATED = """\
import torch

class Model(torch.nn.Module):
    def forward(self, x, gate):
        return x * torch.sigmoid(gate)

def get_inputs():
    return [torch.randn(64, 1024), torch.randn(64, 1024)]
"""


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    path = tmp_path / "gated.py"
    path.write_text(GATED, "utf-8")
    return path


@pytest.mark.slow  # torch is loaded, and exports
def test_a_kernel_is_judged_by_the_function_that_it_is_to_replace(
    kopt: Kopt, gated: Path, tmp_path: Path
) -> None:
    assert kopt("new", gated, "-o", tmp_path / "made").code == ExitCode.PASSED
    written = (tmp_path / "made" / "gated" / "reference.cu").read_text("utf-8")
    for name, text, code, answer in (
        ("right.cu", written, ExitCode.MACHINE, "cannot_be_told"),  # nothing is timed on sim
        ("wrong.cu", written.replace("multiply(v", "multiply(2 * v"), 1, "does_not_hold"),
    ):
        theirs = tmp_path / name
        theirs.write_text(text, "utf-8")
        ending = kopt(
            *("review", theirs, "--claim", "2x", "--reference", gated),
            *("--device", "sim", "--arch", "sm_90a", "--json"),
        )
        assert (ending.code, ending.document["answer"]) == (code, answer), ending
        assert ending.document["kernel"] == "gated_small"


def test_a_reference_and_a_kernel_are_one_too_many(kopt: Kopt, gated: Path) -> None:
    words = ("--claim", "2x", "--reference", gated, "--kernel", "silu_and_mul_b8xh14336")
    ending = kopt("review", gated, *words)
    assert ending.code == ExitCode.USAGE
    assert "leave --kernel out" in ending.stderr


@pytest.mark.slow
def test_a_reference_that_is_no_function_is_refused(
    kopt: Kopt, gated: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n", "utf-8")
    ending = kopt("review", gated, "--claim", "2x", "--reference", empty, "--device", "sim")
    assert ending.code == ExitCode.USAGE
    assert "empty.py" in ending.stderr
