"""Verifying receipts over scripted devices."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status, Verdict
from kopt.kernels.verify_result import VerifyResult
from kopt.tools.bench import reproduction
from kopt.tools.bench.bound_files import problem_files
from kopt.tools.bench.receipt_file import with_digest
from kopt.tools.bench.reproduction import VerifyRequest, problem_of, verify_receipt
from kopt.tools.check import stage as check_stage
from kopt.tools.devices.device import Arrays, ExecutionRequest
from kopt.tools.devices.timer import TimingDevice
from support.bench_cases import CANDIDATE, ROW_MAJOR
from support.promoted import Promoted, copy_promoted, promote_two
from support.promotion_cases import FileCompiler, Opener
from support.receipts import sealed_receipt
from support.scripted_timer import FACTS, LibraryScript, Script
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # whole reproductions of receipts


@pytest.fixture(scope="module")
def promotion_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which two workloads are promoted, once for all tests."""
    return promote_two(tmp_path_factory.mktemp("promoted"))


@pytest.fixture
def promoted(promotion_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Promoted:
    """Two workloads, promoted, in files of this test."""
    return copy_promoted(promotion_folder, tmp_path, monkeypatch)


def _us(us: float, other: float | None = None, facts: DeviceFacts = FACTS) -> Opener:
    """Return devices on which the candidate takes `us`, at b16xh64 `other`."""
    return Opener(
        candidate_us=lambda process, name: us if other is None or name == "b8xh64" else other,
        facts=lambda process: facts,
    )


def test_the_same_speed_reproduces(promoted: Promoted) -> None:
    result = promoted.verify(_us(4.0))
    assert (result.reproduction, result.reasons, result.notes) == ("reproduced", (), ())
    assert [entry.holds for entry in result.workloads] == [True, True]
    assert result.workloads[0].speedup == pytest.approx(1.25, rel=0.01)
    assert result.cubins is not None and result.cubins.same
    assert VerifyResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_a_slower_workload_does_not_reproduce_and_is_named(promoted: Promoted) -> None:
    result = promoted.verify(_us(4.0, 5.5))
    assert result.reproduction == "not_reproduced"
    assert result.reasons == ("b16xh64: slower against reference",)
    assert [entry.verdict for entry in result.workloads] == [Verdict.FASTER, Verdict.SLOWER]


@pytest.mark.parametrize("us", [3.8, 4.2])
def test_faster_by_another_ratio_does_not_reproduce(promoted: Promoted, us: float) -> None:
    result = promoted.verify(_us(us))
    assert result.reproduction == "not_reproduced"
    assert "faster than reference, but by another ratio" in result.reasons[0]


def test_another_model_of_gpu_is_measured_without_a_claim(promoted: Promoted) -> None:
    facts = FACTS.model_copy(update={"name": "NVIDIA H200", "uuid": "GPU-h200"})
    opener = _us(4.0, facts=facts)
    result = promoted.verify(opener)
    assert result.reproduction == "other_device"
    assert result.reasons[0].startswith("measured on NVIDIA H200; the receipt is of NVIDIA H100")
    assert result.workloads[0].speedup == pytest.approx(1.25, rel=0.01)


def test_another_gpu_of_the_same_model_may_reproduce_and_is_noted(promoted: Promoted) -> None:
    facts = FACTS.model_copy(update={"uuid": "GPU-second", "driver_version": "590.1"})
    result = promoted.verify(_us(4.0, facts=facts))
    assert result.reproduction == "reproduced"
    assert result.notes == (
        f"driver 590.1; receipt: {FACTS.driver_version}",
        "another NVIDIA H100 80GB HBM3 than the receipt's",
    )


@pytest.mark.parametrize(
    ("us", "outcome"), [(3.95, "reproduced"), (4.05, "reproduced"), (4.2, "not_reproduced")]
)
def test_another_gpu_may_differ_by_a_part_of_the_gain(
    promoted: Promoted, us: float, outcome: str
) -> None:
    facts = FACTS.model_copy(update={"uuid": "GPU-second"})
    assert promoted.verify(_us(us)).reproduction == "not_reproduced"
    elsewhere = promoted.verify(_us(us, facts=facts))
    assert elsewhere.reproduction == outcome
    is_told = any("only because another GPU" in note for note in elsewhere.notes)
    assert is_told == (outcome == "reproduced")


@contextmanager
def _no_gpu() -> Generator[TimingDevice]:
    raise SetupError("no NVIDIA driver")
    yield


def test_without_a_gpu_the_binary_is_still_compared(promoted: Promoted) -> None:
    request = VerifyRequest(promoted.receipt, promoted.problem)
    result = verify_receipt(request, _no_gpu, promoted.settings)
    assert (result.reproduction, result.device) == ("unavailable", None)
    assert result.reasons == ("not measured: no NVIDIA driver",)
    assert result.cubins is not None
    assert result.cubins.same
    then = [(entry.workload, entry.receipt_speedup) for entry in result.workloads]
    assert then == [(entry.workload, entry.speedup) for entry in promoted.receipt.workloads]
    assert {(entry.speedup, entry.holds) for entry in result.workloads} == {(None, False)}


def test_another_binary_of_the_same_compiler_does_not_reproduce(promoted: Promoted) -> None:
    promoted.compiler.flavor = b"other"
    result = promoted.verify(_us(4.0))
    assert result.reproduction == "not_reproduced"
    assert result.reasons == (
        "nvcc 13.2.86 makes another binary of the source than then (b8xh64, b16xh64)",
    )


def test_another_binary_of_the_same_compiler_needs_no_gpu_to_refute(promoted: Promoted) -> None:
    promoted.compiler.flavor = b"other"
    request = VerifyRequest(promoted.receipt, promoted.problem)
    result = verify_receipt(request, _no_gpu, promoted.settings)
    assert (result.reproduction, result.device) == ("not_reproduced", None)
    assert result.reasons == (
        "nvcc 13.2.86 makes another binary of the source than then (b8xh64, b16xh64)",
        "not measured: no NVIDIA driver",
    )


def test_another_binary_of_another_compiler_refutes_nothing_without_a_gpu(
    promoted: Promoted,
) -> None:
    promoted.compiler.flavor = b"other"
    promoted.compiler.version = "13.3.1"
    request = VerifyRequest(promoted.receipt, promoted.problem)
    result = verify_receipt(request, _no_gpu, promoted.settings)
    assert result.reproduction == "unavailable"
    assert result.reasons == ("not measured: no NVIDIA driver",)


def test_another_binary_of_another_compiler_is_noted(promoted: Promoted) -> None:
    promoted.compiler.flavor = b"other"
    promoted.compiler.version = "13.3.1"
    result = promoted.verify(_us(4.0))
    assert result.reproduction == "reproduced"
    assert result.notes == ("nvcc 13.3.1 makes another binary; receipt: nvcc 13.2.86",)


def test_the_binary_is_compiled_without_the_cache(promoted: Promoted) -> None:
    homes: list[Path] = []
    real = promoted.compiler.__class__.__call__

    def compiling(request: object, settings: Settings) -> object:
        homes.append(settings.home)
        return real(promoted.compiler, request, settings)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "compile_candidate", compiling)
        promoted.verify(_us(4.0))
    assert homes != [promoted.settings.home]
    assert not homes[0].exists()


def test_a_cache_that_holds_another_binary_is_the_machines_fault(
    promoted: Promoted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_stage, "compile_candidate", FileCompiler(flavor=b"other"))
    with pytest.raises(InfraError, match="compile cache holds another binary"):
        promoted.verify(_us(4.0))


def test_a_source_that_does_not_compile_here_does_not_reproduce(promoted: Promoted) -> None:
    promoted.compiler.status[CANDIDATE.name] = Status.COMPILE_ERROR
    opener = _us(4.0)
    result = promoted.verify(opener)
    assert (result.status, result.reproduction) == (Status.COMPILE_ERROR, "not_reproduced")
    assert result.reasons == ("the source ends with compile_error here: expected a ;",)
    assert opener.opened == []


def test_a_candidate_that_is_wrong_here_is_not_timed(promoted: Promoted) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][:, 60:] = 0

    opener = Opener(Script(spoil=spoil))
    result = promoted.verify(opener)
    assert (result.status, result.reproduction) == (Status.INCORRECT, "not_reproduced")
    assert {entry.status for entry in result.workloads} == {Status.INCORRECT}
    assert opener.sessions == []


def test_a_library_that_does_not_run_here_leaves_the_receipt_unverified(
    promoted: Promoted,
) -> None:
    library = promoted.receipt.workloads[0].baseline.model_copy(
        update={"name": "lib", "library": "scripted 1.0"}
    )
    entries = tuple(
        entry.model_copy(update={"baseline": library}) for entry in promoted.receipt.workloads
    )
    receipt = with_digest(promoted.receipt.model_copy(update={"workloads": entries}))
    result = promoted.verify(_us(4.0), receipt)
    assert (result.status, result.reproduction) == (Status.PASSED, "unavailable")
    assert "no library path of synthetic_b8xh64" in result.reasons[0]


def test_a_slower_workload_counts_although_another_is_not_measured(promoted: Promoted) -> None:
    first, second = promoted.receipt.workloads
    library = first.baseline.model_copy(update={"name": "lib", "library": "scripted 1.0"})
    changed = (first.model_copy(update={"baseline": library}), second)
    receipt = with_digest(promoted.receipt.model_copy(update={"workloads": changed}))
    result = promoted.verify(_us(4.0, 5.5), receipt)
    assert (result.reproduction, len(result.reasons)) == ("not_reproduced", 2)


def test_a_receipt_against_a_library_is_measured_against_a_library(promoted: Promoted) -> None:
    library = promoted.receipt.workloads[0].baseline.model_copy(
        update={"name": "lib", "library": "scripted 0.9"}
    )
    entries = tuple(
        entry.model_copy(update={"baseline": library}) for entry in promoted.receipt.workloads
    )
    receipt = with_digest(promoted.receipt.model_copy(update={"workloads": entries}))
    problem = promoted.problem.model_copy(update={"baselines": (ROW_MAJOR,)})
    script = Script(libraries={("lib", pdl): LibraryScript(us=5.0) for pdl in (False, True)})
    request = VerifyRequest(receipt, problem)
    result = verify_receipt(request, replace(_us(4.0), script=script), promoted.settings)
    assert result.reproduction == "reproduced"
    assert result.workloads[0].baseline in ("lib (PDL off)", "lib (PDL on)")
    assert "b8xh64: scripted 1.0; receipt: scripted 0.9" in result.notes


@pytest.mark.parametrize(("us", "outcome"), [(5.0, "reproduced"), (3.5, "not_reproduced")])
def test_a_receipt_against_the_reference_meets_a_library_that_runs_here(
    promoted: Promoted, us: float, outcome: str
) -> None:
    problem = promoted.problem.model_copy(update={"baselines": (ROW_MAJOR,)})
    script = Script(libraries={("lib", pdl): LibraryScript(us=us) for pdl in (False, True)})
    request = VerifyRequest(promoted.receipt, problem)
    result = verify_receipt(request, replace(_us(4.0), script=script), promoted.settings)
    assert (result.reproduction, result.workloads[0].baseline) == (outcome, "reference")
    if outcome == "not_reproduced":
        assert "faster than reference, but slower than lib" in result.reasons[0]


def test_a_receipt_of_an_unknown_problem_names_the_option(settings: Settings) -> None:
    with pytest.raises(ToolError, match=r"problem 'synthetic', which is not here.*--problems"):
        problem_of(sealed_receipt(), settings)


@pytest.mark.parametrize("name", ["problem.yaml", "oracle.py"])
def test_a_problem_that_changed_since_is_another_problem(
    tmp_path: Path, settings: Settings, name: str
) -> None:
    folder = write_tiny_problem(tmp_path)
    own = replace(settings, problems=tmp_path)
    files = problem_files(load_problem(folder))
    with (folder / name).open("a") as file:
        file.write("\n# a remark\n")
    changed = sealed_receipt("scale_rows", problem_files=files)
    with pytest.raises(ToolError, match=rf"{name} has changed since"):
        problem_of(changed, own)
