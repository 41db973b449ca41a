"""`kopt review --reference`: a claim of a kernel that is to replace a PyTorch function."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.server.exits import ExitCode
from kopt.server.review_reference import KEPT_REFERENCES, import_reference
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


def _references(home: Path) -> list[Path]:
    return sorted((home / "cache" / "references").glob("reference-*"))


@pytest.mark.slow  # torch is loaded, and exports
def test_a_kernel_is_judged_by_the_function_that_it_is_to_replace(
    kopt: Kopt, gated: Path, tmp_path: Path, shared_home: Path
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
        assert ending.document["kernel"] == "reference_gated_small"
        page = Path(ending.document["page_path"]).read_text("utf-8")
        assert len([one for one in _references(shared_home) if str(one) in page]) == 1
        assert f"gated.py ({sha256(GATED.encode()).hexdigest()[:12]})" in page


def test_a_reference_and_a_kernel_are_one_too_many(kopt: Kopt, gated: Path) -> None:
    words = ("--claim", "2x", "--reference", gated, "--kernel", "silu_and_mul_b8xh14336")
    ending = kopt("review", gated, *words)
    assert ending.code == ExitCode.USAGE
    assert "leave --kernel out" in ending.stderr


@pytest.mark.slow
def test_a_reference_that_is_no_function_is_refused(
    kopt: Kopt, gated: Path, tmp_path: Path, shared_home: Path
) -> None:
    before = set(_references(shared_home))
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n", "utf-8")
    ending = kopt("review", gated, "--claim", "2x", "--reference", empty, "--device", "sim")
    assert ending.code == ExitCode.USAGE
    assert "empty.py" in ending.stderr
    assert set(_references(shared_home)) == before  # nothing stays of it


@pytest.mark.slow  # functions are imported by PyTorch
def test_problems_of_references_are_kept_up_to_a_number(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "home")
    for number in range(KEPT_REFERENCES + 3):
        old = settings.references / f"reference-{number:02}"
        old.mkdir(parents=True)
        os.utime(old, (number, number))
    with pytest.raises(ToolError, match=r"cannot read .*missing\.py"):  # but the oldest are gone
        import_reference(tmp_path / "missing.py", settings, ignore)
    kept = [one.name for one in _references(settings.home)]
    assert kept == [f"reference-{number:02}" for number in range(4, KEPT_REFERENCES + 3)]


def test_a_reference_has_to_be_a_python_file(kopt: Kopt, gated: Path, tmp_path: Path) -> None:
    other = tmp_path / "gated.txt"
    other.write_text(GATED, "utf-8")
    ending = kopt("review", gated, "--claim", "2x", "--reference", other, "--device", "sim")
    assert ending.code == ExitCode.USAGE
    assert "gated.txt is no Python file" in ending.stderr


@pytest.mark.slow
def test_a_reference_may_be_called_as_a_packaged_problem(kopt: Kopt, tmp_path: Path) -> None:
    called, theirs = tmp_path / "silu_and_mul.py", tmp_path / "theirs.cu"
    called.write_text(GATED, "utf-8")
    theirs.write_text("/* kopt: 1\n*/\n", "utf-8")
    words = ("--claim", "2x", "--reference", called, "--device", "sim", "--arch", "sm_90a")
    ending = kopt("review", theirs, *words, "--json")
    assert ending.document["kernel"] == "reference_silu_and_mul_small", ending
