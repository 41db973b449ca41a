"""`kopt verify` from the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.verify_result import Reproduction, VerifyResult
from kopt.server.commands import verify_receipt
from kopt.server.exits import ExitCode
from kopt.tools.bench.bound_files import problem_files
from kopt.tools.bench.receipt_parts import cubins
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from support.command_line import Kopt
from support.receipts import claiming_one, sealed_receipt, write_receipt, write_winner
from support.tiny_problem import write_tiny_problem
from support.verified import verified

PROBLEMS = Path(__file__).parents[2] / "kernels" / "problems"
REFERENCE = PROBLEMS / "silu_and_mul" / "reference.cu"


@pytest.fixture
def receipt_path(tmp_path: Path) -> Path:
    """A receipt of scale_rows whose cubins nobody made."""
    problem = load_problem(write_tiny_problem(tmp_path))
    candidate = claiming_one(read_candidate(problem.folder / "reference.cu"))
    receipt = sealed_receipt("scale_rows", candidate, problem_files=problem_files(problem))
    return write_winner(tmp_path, receipt)[0]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets how the measurement ends."""

    def set_result(reproduction: Reproduction, **fields: Any) -> None:
        result = verified(reproduction, **fields)
        monkeypatch.setattr(verify_receipt, "verify_receipt", _giving(result))

    return set_result


@pytest.mark.parametrize(
    ("reproduction", "ends"),
    [
        ("reproduced", ("Reproduced", ExitCode.PASSED)),
        ("not_reproduced", ("Not reproduced", ExitCode.FELL_SHORT)),
        (
            "other_device",
            ("Measured on another device: neither reproduced nor refuted", ExitCode.MACHINE),
        ),
        ("unavailable", ("Not verified", ExitCode.MACHINE)),
    ],
)
def test_the_outcome_comes_first_and_decides_the_exit_code(
    kopt: Kopt,
    answer: Callable[..., None],
    receipt_path: Path,
    reproduction: Reproduction,
    ends: tuple[str, ExitCode],
) -> None:
    answer(reproduction)
    ending = kopt("verify", receipt_path, "--problems", receipt_path.parent)
    assert (ending.stdout.splitlines()[0], ending.code) == ends


@pytest.mark.parametrize(
    "said",
    [
        "1.250x",
        "1.246 to 1.254",
        "1.251x",
        "1.249 to 1.253",
        "faster",
        "Compiled again with nvcc 13.2.86: the same binary as then",
        "Verified on cuda:0, NVIDIA H100 80GB HBM3, driver 580.159.04",
        "Speedups are measured: baseline time / candidate time",
        "Differs from then: driver 590",
    ],
)
def test_both_measurements_stand_side_by_side(
    kopt: Kopt, answer: Callable[..., None], receipt_path: Path, said: str
) -> None:
    answer("reproduced", notes=("driver 590",))
    assert said in kopt("verify", receipt_path, "--problems", receipt_path.parent).stdout


def test_json_is_the_record(kopt: Kopt, answer: Callable[..., None], receipt_path: Path) -> None:
    answer("not_reproduced", reasons=("b8xh64: slower against reference",))
    ending = kopt("verify", receipt_path, "--problems", receipt_path.parent, "--json")
    result = VerifyResult.model_validate_json(ending.stdout)
    assert (ending.document["schema"], result.reasons) == (
        "kopt.verify/1",
        ("b8xh64: slower against reference",),
    )
    assert (ending.code, ending.stderr) == (ExitCode.FELL_SHORT, "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"digest"', "", "is damaged, or no receipt"),
        ("1.25", "1.35", "damaged or edited after it was made"),
        ("kopt.receipt/2", "kopt.receipt/7", "kopt.receipt/7"),
    ],
    ids=["damaged", "edited", "newer"],
)
def test_an_unusable_receipt_is_wrong_usage(
    kopt: Kopt, receipt_path: Path, old: str, new: str, said: str
) -> None:
    receipt_path.write_text(receipt_path.read_text().replace(old, new))
    ending = kopt("verify", receipt_path, "--problems", receipt_path.parent, "--json")
    assert (ending.code, ending.document["error"]) == (ExitCode.USAGE, "usage")
    assert said in ending.document["message"]


def test_a_winner_s_source_is_answered_with_its_receipt(kopt: Kopt, receipt_path: Path) -> None:
    ending = kopt("verify", receipt_path.with_name("scale_rows.sm_90a.cu"))
    assert ending.code == ExitCode.USAGE
    assert ending.stderr.strip().endswith(f"is a source; name its receipt: {receipt_path}")


def test_a_receipt_of_a_problem_that_is_not_here_is_wrong_usage(
    kopt: Kopt, receipt_path: Path
) -> None:
    ending = kopt("verify", receipt_path)
    assert ending.code == ExitCode.USAGE
    assert "scale_rows" in ending.stderr


@pytest.mark.slow  # compiles a whole winner
def test_without_a_gpu_the_binary_is_compiled_again_and_compared(
    kopt: Kopt, receipt_path: Path, shared_home: Path
) -> None:
    _make_true(receipt_path, Settings(home=shared_home))
    ending = kopt(
        "verify", receipt_path, "--problems", receipt_path.parent, "--device", "sim", "--json"
    )
    result = VerifyResult.model_validate_json(ending.stdout)
    assert (result.reproduction, ending.code) == ("unavailable", ExitCode.MACHINE)
    assert result.cubins is not None
    assert result.cubins.same
    assert "sim measures no time" in result.reasons[0]


def test_a_receipt_with_another_binary_is_refuted_without_a_gpu(
    kopt: Kopt, receipt_path: Path
) -> None:
    ending = kopt("verify", receipt_path, "--problems", receipt_path.parent, "--device", "sim")
    assert ": another binary than then" in ending.stdout
    assert (ending.stdout.splitlines()[0], ending.code) == ("Not reproduced", ExitCode.FELL_SHORT)


def _giving(result: object) -> Callable[..., object]:
    def give(*_: object) -> object:
        return result

    return give


def _make_true(path: Path, settings: Settings) -> None:
    """Write a receipt whose cubins are those of its source."""
    problem = load_problem(path.parent / "scale_rows")
    candidate = claiming_one(read_candidate(problem.folder / "reference.cu"))
    request = CompileRequest(Case(problem, problem.workloads[0], candidate), ("sm_90a",))
    compiled = compile_candidate(request, settings)
    receipt = sealed_receipt(
        "scale_rows",
        candidate,
        problem_files=problem_files(problem),
        cubins=cubins(compiled),
    )
    write_receipt(path, receipt)
