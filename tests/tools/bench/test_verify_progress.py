"""What verifying one receipt tells: its three steps, their parts, and the time left."""

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.receipt import Receipt
from kopt.tools.bench import promotion, reference_side, reproduction
from kopt.tools.bench.promotion import promote_candidate
from kopt.tools.bench.receipt_parts import read_promotion
from kopt.tools.bench.reproduction import VerifyRequest, verify_receipt
from kopt.tools.check import stage as check_stage
from kopt.tools.devices.timer import TimingDevice
from support.bench_cases import CANDIDATE, bench_problem
from support.promotion_cases import FileCompiler, Opener, ScriptedSanitizer, promotion_of

pytestmark = pytest.mark.slow  # whole reproductions of receipts


def _opener() -> Opener:
    return Opener(candidate_us=lambda process, name: 4.0)


@pytest.fixture
def request_(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> VerifyRequest:
    """Return the request for a receipt of two workloads."""
    for module in (check_stage, reference_side, reproduction):
        monkeypatch.setattr(module, "compile_candidate", FileCompiler())
    monkeypatch.setattr(promotion, "sanitize", ScriptedSanitizer())
    problem = bench_problem(tmp_path / "problem", shapes=((8, 64), (16, 64)))
    made = promote_candidate(promotion_of(problem, CANDIDATE), _opener(), settings)
    receipt: Receipt = read_promotion(Path(made.files[0].receipt_path))
    return VerifyRequest(receipt, problem)


def test_each_step_of_three_is_told_with_its_cases_and_workloads(
    request_: VerifyRequest, settings: Settings
) -> None:
    told: list[str] = []
    verify_receipt(replace(request_, progress=told.append), _opener(), settings)
    assert told[0] == "step 1 of 3: compiling from an empty cache"
    check = [line for line in told if line.startswith("step 2 of 3: ")]
    assert check[0] == "step 2 of 3: compiling" and check[1].startswith("step 2 of 3: 1 of ")
    timing = [line for line in told if line.startswith("step 3 of 3: ")]
    assert timing[0].startswith("step 3 of 3: 1 of 2: ")
    assert timing[-1].startswith("step 3 of 3: 2 of 2: ")
    assert told == [told[0], *check, *timing]


def test_second_time_tells_how_long_the_steps_took_before(
    request_: VerifyRequest, settings: Settings
) -> None:
    verify_receipt(request_, _opener(), settings)
    kept = settings.durations / "verify-2.json"
    assert list(json.loads(kept.read_text("utf-8"))) == ["1", "2", "3"]
    kept.write_text('{"1": 60.0, "2": 20.4, "3": 10.4}', "utf-8")
    told: list[str] = []
    verify_receipt(replace(request_, progress=told.append), _opener(), settings)
    assert told[0].endswith(", about 91 s left as last time")
    assert "step 2 of 3: compiling, about 31 s left as last time" in told
    assert told[-1].endswith(", about 10 s left as last time")


def test_machine_without_a_gpu_leaves_the_times_of_one_that_has_one(
    request_: VerifyRequest, settings: Settings
) -> None:
    def no_gpu() -> AbstractContextManager[TimingDevice]:
        raise SetupError("no NVIDIA driver")

    verify_receipt(request_, _opener(), settings)
    before = (settings.durations / "verify-2.json").read_bytes()
    assert verify_receipt(request_, no_gpu, settings).reproduction == "unavailable"
    assert (settings.durations / "verify-2.json").read_bytes() == before
