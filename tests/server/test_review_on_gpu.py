"""Claims about shipped kernels on a real GPU; skipped where there is none."""

from pathlib import Path

import pytest

from kopt.kernels.review_result import ReviewResult
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.extension_sources import KEEPS, SILU, WRONG

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
PROBLEM = ROOT / "kernels" / "problems" / "silu_and_mul"
WINNER = PROBLEM / "winners" / "silu_and_mul.sm_90a.cu"
SAMPLES = ROOT / "tools" / "selftest" / "samples"
GPU = ("--device", "cuda:0", "--json")
KERNEL = ("--kernel", "silu_and_mul_b8xh14336")


def _reviewed(kopt: Kopt, *words: object) -> tuple[int, ReviewResult]:
    ending = kopt("review", *words, *GPU)
    return ending.code, ReviewResult.model_validate_json(ending.stdout)


def test_a_claim_that_is_modest_holds_against_the_reference_kernel(kopt: Kopt) -> None:
    code, result = _reviewed(kopt, WINNER, "--claim", "1.01x", "--against", "reference", *KERNEL)
    assert (code, result.answer) == (ExitCode.PASSED, "holds"), result.reasons
    assert result.gpu is not None
    assert result.sanitizer and all(one.is_complete for one in result.sanitizer)
    for one in result.workloads:
        assert one.bench is not None and one.bench.checked == "full"
        assert one.limit is not None and one.limit.evidence == "timed here"
    assert result.page_path is not None and Path(result.page_path).is_file()


def test_a_claim_beyond_physics_does_not_hold(kopt: Kopt) -> None:
    code, result = _reviewed(kopt, WINNER, "--claim", "60x", *KERNEL)
    assert (code, result.answer) == (ExitCode.FELL_SHORT, "does_not_hold")
    assert "no kernel can be so fast" in result.reasons[0]


def test_the_reference_kernel_is_not_half_as_fast_again_as_the_library(kopt: Kopt) -> None:
    code, result = _reviewed(kopt, PROBLEM / "reference.cu", "--claim", "1.5x", *KERNEL)
    assert (code, result.answer) == (ExitCode.FELL_SHORT, "does_not_hold"), result.reasons


@pytest.mark.parametrize(
    ("source", "answer", "said"),
    [
        (SILU, "cannot_be_told", "no time of it can be believed"),
        (WRONG, "does_not_hold", "it is not right"),
        (KEEPS, "does_not_hold", "it is not right: incorrect"),
        (SILU.replace("row[column]", "row[column"), "cannot_be_told", "compile_error"),
    ],
    ids=["right", "wrong", "keeps its first result", "does not compile"],
)
def test_a_torch_extension_is_built_and_judged_but_not_timed(
    kopt: Kopt, tmp_path: Path, source: str, answer: str, said: str
) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "ext.cu"
    path.write_text(source)
    _, result = _reviewed(kopt, path, "--claim", "1.5x", *KERNEL)
    assert (result.form, result.answer) == ("torch_extension", answer), result.reasons
    assert said in result.reasons[0]
    if answer == "cannot_be_told" and result.workloads:
        (one,) = result.workloads
        assert one.bench is None and one.limit is not None and one.limit.speedup > 1


@pytest.mark.parametrize("name", ["evil_missing_barrier", "evil_truncation"])
def test_what_is_wrong_is_never_timed(kopt: Kopt, name: str) -> None:
    source = SAMPLES / f"{name}.cu"
    kernel = next(
        word.removeprefix("kernel=")
        for word in source.read_text().split()
        if word.startswith("kernel=")
    )
    code, result = _reviewed(kopt, source, "--claim", "1.5x", "--kernel", kernel)
    assert (code, result.answer) == (ExitCode.FELL_SHORT, "does_not_hold"), result.reasons
    assert result.status is not Status.PASSED
    assert not any(one.bench for one in result.workloads)
