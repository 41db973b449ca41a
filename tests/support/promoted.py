"""A receipt made with 4 us against a reference of 5 us: promoted once, copied for each test."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.receipt import Receipt
from kopt.kernels.verify_result import VerifyResult
from kopt.tools.bench import promotion, reference_side, reproduction
from kopt.tools.bench.promotion import promote_candidate
from kopt.tools.bench.receipt_parts import read_promotion
from kopt.tools.bench.reproduction import VerifyRequest, verify_receipt
from kopt.tools.check import stage as check_stage

from .bench_cases import CANDIDATE, bench_problem
from .promotion_cases import FileCompiler, Opener, ScriptedSanitizer, promotion_of
from .race_checks import replaced_simulator

_PROBLEM, _HOME, _PLACE = "problem", "home", "receipt"
_SHAPES = ((8, 64), (16, 64))


@dataclass
class Promoted:
    """The receipt, and what made it."""

    receipt: Receipt
    problem: Problem
    compiler: FileCompiler
    settings: Settings

    def verify(self, opener: Opener, receipt: Receipt | None = None) -> VerifyResult:
        """Verify the receipt, or a changed one."""
        request = VerifyRequest(receipt or self.receipt, self.problem)
        return verify_receipt(request, opener, self.settings)


def promote_two(folder: Path) -> Path:
    """Promote a candidate at two workloads, with files below `folder`, which is returned."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        _without_hardware(monkeypatch)
        replaced_simulator(monkeypatch)
        problem = bench_problem(folder / _PROBLEM, shapes=_SHAPES)
        settings = Settings(home=folder / _HOME, jobs=2)
        result = promote_candidate(promotion_of(problem, CANDIDATE), Opener(), settings)
    place = Path(result.files[0].receipt_path).relative_to(folder)
    (folder / _PLACE).write_text(str(place), "utf-8")
    return folder


def copy_promoted(made: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Promoted:
    """Return what `promote_two` made in `made`, in files below `folder`, without hardware."""
    settings = Settings(home=shutil.copytree(made / _HOME, folder / _HOME), jobs=2)
    receipt = read_promotion(folder / (made / _PLACE).read_text("utf-8"))
    problem = bench_problem(folder / _PROBLEM, shapes=_SHAPES)
    return Promoted(receipt, problem, _without_hardware(monkeypatch), settings)


def _without_hardware(monkeypatch: pytest.MonkeyPatch) -> FileCompiler:
    """Have a compiler that compiles nothing in place of nvcc, and return it."""
    compiler = FileCompiler()
    for module in (check_stage, reference_side, reproduction):
        monkeypatch.setattr(module, "compile_candidate", compiler)
    monkeypatch.setattr(promotion, "sanitize", ScriptedSanitizer())
    return compiler
