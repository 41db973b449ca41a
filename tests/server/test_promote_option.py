"""`kopt bench --promote` from the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.promotion_result import (
    HeldWorkload,
    NarrowerDomain,
    PromotionResult,
    WinnerFile,
)
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from kopt.tools.bench import promotion
from kopt.tools.bench.promotion import PromotionRequest
from support.bench_results import H100
from support.command_line import Kopt
from support.receipts import evidence

PROBLEMS = Path(__file__).parents[2] / "kernels" / "problems"
REFERENCE = PROBLEMS / "silu_and_mul" / "reference.cu"


def test_promote_writes_what_the_promotion_says(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests: list[PromotionRequest] = []

    def promote(request: PromotionRequest, *_: object) -> PromotionResult:
        requests.append(request)
        return _promotion("promoted")

    monkeypatch.setattr(promotion, "promote_candidate", promote)
    ending = kopt("bench", REFERENCE, "--promote", "--winners", tmp_path, "--tune", "BLOCK=512")
    assert ending.code == ExitCode.PASSED
    first = "Promoted: 1.250x faster than reference, 1.250 to 1.250 in 6 measurements"
    assert ending.stdout.splitlines()[0] == first
    assert "Written: w.cu and w.receipt.json" in ending.stdout
    assert "kopt verify w.receipt.json" in ending.stdout
    assert ending.stdout.splitlines()[-1].startswith("Next: kopt export w.receipt.json --as torch")
    (request,) = requests
    assert request.winners == tmp_path
    # the value of --tune is the first of its list now: the file says by itself how it is built
    assert request.case.candidate.source != REFERENCE.read_text()
    assert "BLOCK: [512" in request.case.candidate.source


def test_what_is_not_promoted_ends_with_one_and_says_why(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _promotion("not_promoted", reasons=("b8xh64: slower",), workloads=(), files=())
    monkeypatch.setattr(promotion, "promote_candidate", _giving(result))
    ending = kopt("bench", REFERENCE, "--promote")
    assert (ending.code, ending.stdout.splitlines()[0]) == (ExitCode.FELL_SHORT, "Not promoted")
    assert "- b8xh64: slower" in ending.stdout


def test_workloads_that_held_stand_with_the_line_that_claims_them_alone(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldWorkload(workload="b8xh64", baseline="lib", speedup=1.49, measurements=1)
    narrower = NarrowerDomain(workloads=(held,), where="B <= 8")
    fields = {"reasons": ("b16xh64: slower",), "workloads": (), "files": (), "narrower": narrower}
    monkeypatch.setattr(
        promotion, "promote_candidate", _giving(_promotion("not_promoted", **fields))
    )
    lines = kopt("bench", REFERENCE, "--promote").stdout.splitlines()
    said = " ".join(lines).replace("  ", " ")
    assert "Faster in every measurement so far: b8xh64 1.490x." in said
    assert "`where: B <= 8`" in said
    document = json.loads(kopt("bench", REFERENCE, "--promote", "--json").stdout)
    assert document["narrower"]["where"] == "B <= 8"
    assert document["files"] == []


def test_a_candidate_that_loses_to_the_winner_that_is_there_is_not_called_faster(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _promotion("kept_existing", reasons=("w.cu is 1.3x as fast",), files=())
    monkeypatch.setattr(promotion, "promote_candidate", _giving(result))
    ending = kopt("bench", REFERENCE, "--promote")
    assert ending.stdout.splitlines()[0] == "Not written: the existing winner stays"


def test_each_of_several_workloads_stands_with_its_range(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = (evidence("k", "b8xh14336"), evidence("k", "b128xh14336", 1.5))
    result = _promotion("promoted", workloads=both, geometric_mean_speedup=1.369)
    monkeypatch.setattr(promotion, "promote_candidate", _giving(result))
    lines = kopt("bench", REFERENCE, "--promote").stdout.splitlines()
    assert lines[0] == "Promoted: 1.369x faster (geometric mean of 2 workloads)"
    assert "b128xh14336: 1.500x faster than reference, 1.500 to 1.500 in 6 measurements" in lines


def test_a_variant_that_nothing_was_promoted_of_is_named(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = _promotion("promoted")
    compiled = known.check.compiled.model_copy(update={"unserved": ("B % 8 != 0",)})
    check = known.check.model_copy(update={"compiled": compiled})
    promoted = known.model_copy(update={"check": check})
    monkeypatch.setattr(promotion, "promote_candidate", _giving(promoted))
    said = " ".join(kopt("bench", REFERENCE, "--promote").stdout.split())
    assert "Variant 'when: B % 8 != 0': taken by no workload within `where`: not compiled" in said
    assert "an export refuses shapes that would take it" in said


def test_promotion_on_the_simulator_is_refused(kopt: Kopt) -> None:
    ending = kopt("bench", REFERENCE, "--promote", "--device", "sim")
    assert ending.code == ExitCode.MACHINE
    assert "a measurement needs a GPU: sim measures no time" in ending.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--all", "--promote"),
        (REFERENCE, "--promote", "--baseline", "reference"),
        (REFERENCE, "--promote", "--pairs", "200"),
        (REFERENCE, "--replace"),
        (REFERENCE, "--winners", "w"),
    ],
)
def test_flags_that_contradict_a_promotion_are_refused(
    kopt: Kopt, words: tuple[object, ...]
) -> None:
    assert kopt("bench", *words).code == ExitCode.USAGE


def _giving(result: object) -> Callable[..., object]:
    def give(*_: object) -> object:
        return result

    return give


def _promotion(outcome: str, **fields: Any) -> PromotionResult:
    kernel = "silu_and_mul_b8xh14336"
    compiled = CompileResult(status=Status.PASSED, kernel=kernel, candidate="c" * 64)
    known: dict[str, Any] = {
        "status": Status.PASSED,
        "outcome": outcome,
        "kernel": kernel,
        "domain": ("b8xh14336",),
        "candidate": "c" * 64,
        "device": "cuda:0",
        "gpu": H100,
        "check": CheckResult(
            status=Status.PASSED,
            kernel=kernel,
            candidate="c" * 64,
            device="cuda:0",
            level="full",
            compiled=compiled,
            elapsed_s=1.0,
        ),
        "workloads": (evidence(kernel, "b8xh14336"),),
        "geometric_mean_speedup": 1.25,
        "files": (
            WinnerFile(
                workload="b8xh14336",
                source_path="w.cu",
                receipt_path="w.receipt.json",
                action="written",
            ),
        ),
        "elapsed_s": 60.0,
    }
    return PromotionResult.model_validate(known | fields)
