"""Which files a receipt binds, and what a change of each does to it."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problem, load_problems
from kopt.kernels.receipt import Receipt
from kopt.tools.bench.bound_files import BASELINE_FILES, changed_files, problem_files
from kopt.tools.bench.reproduction import problem_of
from support.receipts import sealed_receipt
from support.tiny_problem import tiny_candidate, write_tiny_problem

IMPORTED = ("graph.json", "import.json", "model.py", "mask.npy", "table.small.npy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A problem's folder with the files of an import."""
    (tmp_path / "problems").mkdir()
    folder = write_tiny_problem(tmp_path / "problems")
    for name in IMPORTED:
        (folder / name).write_bytes(b"some bytes")
    return folder


def _receipt(folder: Path) -> Receipt:
    files = problem_files(load_problem(folder))
    return sealed_receipt("scale_rows", tiny_candidate(), problem_files=files)


@pytest.mark.parametrize("name", IMPORTED)
def test_one_other_byte_of_an_imported_file_ends_the_receipt(
    folder: Path, settings: Settings, name: str
) -> None:
    own, receipt = replace(settings, problems=folder.parent), _receipt(folder)
    (folder / name).write_bytes(b"some_bytes")
    with pytest.raises(ToolError, match=rf"{name} has changed since.*promote"):
        problem_of(receipt, own)


@pytest.mark.parametrize("name", IMPORTED[1:])
def test_a_lost_file_of_an_import_ends_the_receipt(
    folder: Path, settings: Settings, name: str
) -> None:
    own, receipt = replace(settings, problems=folder.parent), _receipt(folder)
    (folder / name).unlink()
    with pytest.raises(ToolError, match=rf"{name} is missing, and the receipt was made with it"):
        problem_of(receipt, own)


def test_an_array_that_an_import_would_take_instead_ends_the_receipt(
    folder: Path, settings: Settings
) -> None:
    own, receipt = replace(settings, problems=folder.parent), _receipt(folder)
    (folder / "table.npy").write_bytes(b"other bytes")
    with pytest.raises(ToolError, match=r"table\.npy is none of the files"):
        problem_of(receipt, own)


def test_an_early_receipt_of_an_import_must_be_made_again(folder: Path, settings: Settings) -> None:
    own, receipt = replace(settings, problems=folder.parent), _receipt(folder)
    early = {name: sha for name, sha in receipt.problem_files.items() if name not in set(IMPORTED)}
    with pytest.raises(ToolError, match=r"is none of the files that the receipt was made with"):
        problem_of(receipt.model_copy(update={"problem_files": early}), own)


def test_kernels_documents_and_hidden_files_are_not_bound(folder: Path) -> None:
    before = problem_files(load_problem(folder))
    (folder / "winners").mkdir()
    for name in ("mine.cu", "README.md", ".note", "winners/mine.receipt.json"):
        (folder / name).write_text("text", "utf-8")
    assert problem_files(load_problem(folder)) == before


def test_an_early_receipt_of_a_written_problem_still_holds(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    early = problem_files(load_problem(folder))
    (folder / "steps.py").write_text("STEP = 1\n", "utf-8")
    problem = load_problem(folder)
    assert not list(changed_files(problem, early))
    now = problem_files(problem)
    assert "steps.py" in now
    (folder / "steps.py").write_text("STEP = 2\n", "utf-8")
    assert [name for name, _ in changed_files(problem, now)] == ["steps.py"]


def test_baselines_are_compared_and_decide_nothing(folder: Path, settings: Settings) -> None:
    own, receipt = replace(settings, problems=folder.parent), _receipt(folder)
    (folder / "baseline.py").write_text("# a remark\n", "utf-8")
    problem = load_problem(folder)
    changed = [name for name, _ in changed_files(problem, receipt.problem_files)]
    assert changed == ["baseline.py"]
    assert set(changed) <= set(BASELINE_FILES)
    with pytest.raises(ToolError, match="other workloads"):  # no longer about files
        problem_of(receipt, own)


@pytest.mark.parametrize("name", load_problems())
def test_what_shipped_receipts_list_of_a_problem_is_listed_still(name: str) -> None:
    files = set(problem_files(load_problems()[name]))
    assert {"problem.yaml", "oracle.py", "reference.cu", "baseline.py"} <= files
    assert files <= {"problem.yaml", "oracle.py", "reference.cu", "baseline.py", "steps.py"}
