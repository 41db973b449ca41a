"""Shipped receipts are of the problems that they lie beside."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_parts import read_promotion
from kopt.tools.bench.reproduction import problem_of

RECEIPTS = [
    pytest.param(path, id=f"{problem.name}-{path.name}")
    for problem in load_problems().values()
    for path in sorted((problem.folder / "winners").glob("*.receipt.json"))
]


@pytest.mark.parametrize("path", RECEIPTS)
def test_a_shipped_receipt_is_of_its_problem_as_it_is_now(path: Path, settings: Settings) -> None:
    problem = problem_of(read_receipt(path), settings)
    assert problem.folder == path.parent.parent


@pytest.mark.parametrize("path", RECEIPTS)
def test_the_receipts_of_a_shipped_promotion_agree(path: Path) -> None:
    assert path.name.split(".")[0] in {one.workload for one in read_promotion(path).workloads}
