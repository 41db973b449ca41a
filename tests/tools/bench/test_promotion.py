"""Promotions over scripted devices: what is written, and what stops one before."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench import promotion, reference_side
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_parts import read_promotion
from kopt.tools.bench.winner_files import OnExisting
from kopt.tools.check import stage as check_stage
from kopt.tools.devices.device import Arrays, ExecutionRequest
from support.bench_cases import CANDIDATE, ROW_MAJOR, bench_problem
from support.promotion_cases import FileCompiler, Opener, ScriptedSanitizer, promotion_of
from support.scripted_timer import FACTS, LibraryScript, Script

pytestmark = pytest.mark.slow  # whole promotions
OTHER = Candidate(CANDIDATE.source + "// another\n", "other.cu")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FileCompiler:
    fake = FileCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", fake)
    monkeypatch.setattr(reference_side, "compile_candidate", fake)
    return fake


@pytest.fixture
def sanitizer(monkeypatch: pytest.MonkeyPatch) -> ScriptedSanitizer:
    fake = ScriptedSanitizer()
    monkeypatch.setattr(promotion, "sanitize", fake)
    return fake


@pytest.fixture
def request_(
    tmp_path: Path, compiler: FileCompiler, sanitizer: ScriptedSanitizer
) -> PromotionRequest:
    """A candidate whose domain has two workloads."""
    del compiler, sanitizer
    return promotion_of(bench_problem(tmp_path / "problem", shapes=((8, 64), (16, 64))), CANDIDATE)


def test_a_winner_is_written_with_its_receipt_for_every_workload_of_its_domain(
    request_: PromotionRequest, settings: Settings, compiler: FileCompiler
) -> None:
    compiler.flagged = ("kernel k reads the clock",)
    result = promote_candidate(request_, Opener(), settings)
    assert (result.status, result.outcome, result.reasons) == (Status.PASSED, "promoted", ())
    folder = settings.winners / "synthetic"
    assert sorted(path.name for path in folder.iterdir()) == [
        "b16xh64.sm_90a.receipt.json",
        "b8xh64.sm_90a.receipt.json",
        "synthetic.sm_90a.cu",
    ]
    assert (folder / "synthetic.sm_90a.cu").read_text() == CANDIDATE.source
    assert read_receipt(folder / "b8xh64.sm_90a.receipt.json").workloads[0].workload == "b8xh64"
    receipt = read_promotion(folder / "b8xh64.sm_90a.receipt.json")
    assert [entry.workload for entry in receipt.workloads] == ["b8xh64", "b16xh64"]
    assert receipt.flagged == compiler.flagged
    assert receipt.geometric_mean_speedup == pytest.approx(1.25, rel=0.01)
    assert PromotionResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_each_workload_is_measured_in_two_fresh_processes_with_three_allocations_each(
    request_: PromotionRequest, settings: Settings
) -> None:
    opener = Opener()
    result = promote_candidate(request_, opener, settings)
    places = [(one.process, one.allocation) for one in result.attempts if one.workload == "b8xh64"]
    assert places == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    # the first opening is that of the check, and times nothing
    assert [len(device.sessions) for device in opener.opened] == [0, 6, 6]
    assert opener.closed == 3
    assert len({session.layout_seed for session in opener.sessions}) == 12


def test_a_check_is_made_once_and_in_full(request_: PromotionRequest, settings: Settings) -> None:
    opener = Opener()
    result = promote_candidate(request_, opener, settings)
    assert (result.check.level, len(result.check.workloads)) == ("full", 2)
    # both poisons on the timed inputs, for the candidate and the reference, six measurements
    assert [len(device.executions) for device in opener.opened[1:]] == [24, 24]


def test_one_workload_that_is_not_faster_stops_the_promotion_by_name(
    request_: PromotionRequest, settings: Settings
) -> None:
    opener = Opener(candidate_us=lambda process, workload: 4.0 if workload == "b8xh64" else 5.5)
    result = promote_candidate(request_, opener, settings)
    assert (result.status, result.outcome) == (Status.PASSED, "not_promoted")
    (reason,) = result.reasons
    assert reason.startswith("b16xh64: slower against reference: 0.9")
    assert [one.verdict for one in result.attempts] == [Verdict.FASTER, Verdict.SLOWER]
    assert not settings.winners.exists()


def test_a_finding_of_the_sanitizer_stops_before_anything_is_timed(
    request_: PromotionRequest, settings: Settings, sanitizer: ScriptedSanitizer
) -> None:
    sanitizer.status = Status.DATA_RACE
    opener = Opener()
    result = promote_candidate(request_, opener, settings)
    assert (result.status, result.outcome) == (Status.DATA_RACE, "not_promoted")
    assert "compute-sanitizer finds data_race: racecheck: scripted hazard" in result.reasons[0]
    assert opener.sessions == []


def test_the_sanitizer_sees_every_workload(
    request_: PromotionRequest, settings: Settings, sanitizer: ScriptedSanitizer
) -> None:
    promote_candidate(request_, Opener(), settings)
    assert sanitizer.workloads == ["b8xh64", "b16xh64"]


def test_a_missing_sanitizer_stands_in_the_receipt(
    request_: PromotionRequest, settings: Settings, sanitizer: ScriptedSanitizer
) -> None:
    sanitizer.unavailable = "no compute-sanitizer found"
    result = promote_candidate(request_, Opener(), settings)
    assert result.outcome == "promoted"
    receipt = read_receipt(Path(result.files[0].receipt_path))
    assert [run.outcome for run in receipt.sanitizer[0].runs] == ["unavailable"] * 4
    assert receipt.sanitizer[0].runs[0].reason == "no compute-sanitizer found"


def test_a_wrong_candidate_is_neither_sanitized_nor_timed(
    request_: PromotionRequest, settings: Settings, sanitizer: ScriptedSanitizer
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][:, 60:] = 0

    result = promote_candidate(request_, Opener(Script(spoil=spoil)), settings)
    assert (result.status, result.outcome) == (Status.INCORRECT, "not_promoted")
    assert result.reasons[0].startswith("the full check ended with incorrect")
    assert (sanitizer.workloads, result.attempts) == ([], ())


def test_a_candidate_that_faults_when_it_is_timed_has_that_status(
    request_: PromotionRequest, settings: Settings
) -> None:
    result = promote_candidate(request_, Opener(Script(candidate_fails_at=90)), settings)
    assert (result.status, result.outcome) == (Status.OUT_OF_BOUNDS, "not_promoted")
    assert "out_of_bounds when it was timed (process 1, allocation 1)" in result.reasons[0]


def test_faster_than_the_library_but_slower_than_the_reference_is_no_winner(
    request_: PromotionRequest, settings: Settings
) -> None:
    libraries = {("lib", pdl): LibraryScript(us=6.0) for pdl in (False, True)}
    problem = request_.case.problem.model_copy(update={"baselines": (ROW_MAJOR,)})
    opener = Opener(Script(libraries=libraries), candidate_us=lambda process, workload: 5.5)
    result = promote_candidate(promotion_of(problem, CANDIDATE), opener, settings)
    assert result.outcome == "not_promoted"
    assert "but slower than reference" in result.reasons[0]


def test_a_cubin_that_changes_after_the_check_is_not_timed(
    request_: PromotionRequest, settings: Settings
) -> None:
    def change(process: int) -> None:
        if process == 1:
            (cubin,) = (settings.home / "cubins").glob("*/mine.cu")
            cubin.write_bytes(b"another binary")

    with pytest.raises(InfraError, match="changed after it was checked"):
        promote_candidate(request_, Opener(before=change), settings)


def test_another_gpu_at_a_later_opening_ends_the_promotion(
    request_: PromotionRequest, settings: Settings
) -> None:
    facts = FACTS.model_copy(update={"uuid": "GPU-other"})
    opener = Opener(facts=lambda process: facts if process == 2 else FACTS)
    with pytest.raises(InfraError, match="not the one of before: uuid GPU-other"):
        promote_candidate(request_, opener, settings)


def test_an_interrupt_before_the_end_leaves_nothing(
    request_: PromotionRequest, settings: Settings
) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("process 2 of 2, allocation 3 of 3, b16xh64"):
            raise KeyboardInterrupt

    opener = Opener()
    with pytest.raises(KeyboardInterrupt):
        promote_candidate(replace(request_, progress=interrupt), opener, settings)
    assert opener.closed == 3
    assert not settings.winners.exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(
    request_: PromotionRequest, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    opener = Opener()
    request = replace(request_, winners=tmp_path / "taken" / "winners")
    with pytest.raises(SetupError, match="no writable folder"):
        promote_candidate(request, opener, settings)
    assert opener.opened[0].executions == []


def test_a_receipt_names_neither_this_machine_nor_a_hidden_seed(
    request_: PromotionRequest, settings: Settings, tmp_path: Path
) -> None:
    with patch("kopt.tools.check.hidden_seeds.secrets") as drawn:
        drawn.randbits.side_effect = seeds = [7_000_000_007 * n for n in range(1, 99)]
        result = promote_candidate(request_, Opener(), settings)
    text = Path(result.files[0].receipt_path).read_text()
    assert drawn.randbits.call_count > 2
    assert [part for part in (*seeds, tmp_path, "/nvcc") if str(part) in text] == []


def test_a_better_winner_of_the_same_device_stays(
    request_: PromotionRequest, settings: Settings
) -> None:
    _promote(request_.case.problem, CANDIDATE, 4.0, settings)
    result = _promote(request_.case.problem, OTHER, 4.5, settings)
    assert result.outcome == "kept_existing"
    assert result.reasons[0].startswith("b8xh64: synthetic.sm_90a.cu is 1.2")
    source = settings.winners / "synthetic" / "synthetic.sm_90a.cu"
    assert source.read_text() == CANDIDATE.source


def test_a_better_candidate_takes_the_place(request_: PromotionRequest, settings: Settings) -> None:
    _promote(request_.case.problem, CANDIDATE, 4.5, settings)
    result = _promote(request_.case.problem, OTHER, 4.0, settings)
    assert [file.action for file in result.files] == ["written", "written"]
    receipt = read_receipt(Path(result.files[1].receipt_path))
    assert receipt.candidate == OTHER.id
    name = f"synthetic-{OTHER.id[:8]}.sm_90a.cu"
    folder = settings.winners / "synthetic"
    assert [path.name for path in folder.glob("*.cu")] == [name]
    assert {file.source_path for file in result.files} == {str(folder / name)}
    assert (folder / name).read_text() == OTHER.source


def test_winners_are_compared_workload_by_workload(
    request_: PromotionRequest, settings: Settings
) -> None:
    _promote(request_.case.problem, CANDIDATE, 4.3, settings)
    opener = Opener(candidate_us=lambda process, workload: 4.0 if workload == "b8xh64" else 4.6)
    other = promotion_of(request_.case.problem, OTHER)
    result = promote_candidate(other, opener, settings)
    assert [file.action for file in result.files] == ["written", "kept_existing"]
    sources = [Path(file.source_path) for file in result.files]
    assert [path.read_text() for path in sources] == [OTHER.source, CANDIDATE.source]
    partial = read_promotion(Path(result.files[0].receipt_path))
    assert (len(partial.workloads), partial.claimed) == (1, ("b8xh64", "b16xh64"))


def test_the_same_candidate_gets_a_fresh_receipt(
    request_: PromotionRequest, settings: Settings
) -> None:
    _promote(request_.case.problem, CANDIDATE, 4.0, settings)
    assert _promote(request_.case.problem, CANDIDATE, 4.5, settings).outcome == "promoted"


@pytest.mark.parametrize("on_existing", ["keep_better", "replace"])
def test_a_winner_of_another_device_is_replaced_only_on_request(
    request_: PromotionRequest, settings: Settings, on_existing: OnExisting
) -> None:
    _promote(request_.case.problem, CANDIDATE, 4.0, settings)
    facts = FACTS.model_copy(update={"uuid": "GPU-other"})
    opener = Opener(facts=lambda process: facts)
    request = promotion_of(request_.case.problem, OTHER, on_existing)
    if on_existing == "replace":
        assert promote_candidate(request, opener, settings).outcome == "promoted"
    else:
        with pytest.raises(ToolError, match="measured on another device"):
            promote_candidate(request, opener, settings)
        assert opener.opened[0].executions == []


def test_a_winner_whose_receipt_is_damaged_is_in_the_way(
    request_: PromotionRequest, settings: Settings
) -> None:
    first = _promote(request_.case.problem, CANDIDATE, 4.0, settings)
    receipt = Path(first.files[0].receipt_path)
    receipt.write_text(receipt.read_text()[:-100])
    with pytest.raises(ToolError, match="cannot be read whole"):
        _promote(request_.case.problem, OTHER, 4.0, settings)


def _promote(
    problem: Problem, candidate: Candidate, us: float, settings: Settings
) -> PromotionResult:
    opener = Opener(candidate_us=lambda process, workload: us)
    return promote_candidate(promotion_of(problem, candidate), opener, settings)
