"""Which baselines a candidate is compared with, and what becomes of the others."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.layouts import to_sf_128x4
from kopt.kernels.problem import Baseline
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest
from support.bench_cases import CANDIDATE, OTHER, ROW_MAJOR, TILED, FakeCompiler, bench_problem
from support.scripted_timer import QUIET, LibraryScript, Script, ScriptedTimer

LIB, LIB_PDL, OTHER_LIB = ("lib", False), ("lib", True), ("other", False)


def _request(folder: Path, *baselines: Baseline) -> BenchRequest:
    problem = bench_problem(folder / "problem", baselines)
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)


def _timer(**libraries: LibraryScript) -> ScriptedTimer:
    """Return a quiet timer; `lib`, `lib_pdl` and `other` name the paths."""
    names = {"lib": LIB, "lib_pdl": LIB_PDL, "other": OTHER_LIB, "tiled": ("tiled", False)}
    scripts = {names[name]: script for name, script in libraries.items()}
    return ScriptedTimer(Script(noise=QUIET, libraries=scripts))


def _names(result: BenchResult) -> list[tuple[str, bool]]:
    return [(entry.baseline.name, entry.baseline.pdl) for entry in result.comparisons]


def _write_nothing(request: ExecutionRequest, outputs: Arrays) -> None:
    for name, array in outputs.items():
        if name == "kept":
            array[...] = request.inputs["kept"]
        else:
            array.view(np.uint8)[...] = request.poison


pytestmark = pytest.mark.usefixtures("compiler")


def test_the_fastest_library_path_is_the_main_baseline(tmp_path: Path, settings: Settings) -> None:
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=LibraryScript(us=4.5), other=LibraryScript())
    result = bench_candidate(_request(tmp_path, ROW_MAJOR, OTHER), timer, settings)
    assert _names(result) == [OTHER_LIB, ("reference", False)]
    assert result.comparisons[0].baseline.library == "scripted 1.0"
    assert result.rejected == ()
    assert result.verdict is Verdict.INCONCLUSIVE


def test_a_library_that_writes_nothing_is_rejected_by_the_check(
    tmp_path: Path, settings: Settings
) -> None:
    timer = _timer(
        lib=LibraryScript(us=0.1, spoil=_write_nothing),
        lib_pdl=LibraryScript(us=0.1, spoil=_write_nothing),
    )
    result = bench_candidate(_request(tmp_path, ROW_MAJOR), timer, settings)
    assert _names(result) == [("reference", False)]
    assert [entry.status for entry in result.rejected] == ["failed_check"] * 2
    assert "leaves its output unwritten" in result.rejected[0].reason
    assert result.verdict is Verdict.FASTER


def test_a_wrong_library_is_rejected_with_what_the_gates_found(
    tmp_path: Path, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][0] = 0

    timer = _timer(lib=LibraryScript(spoil=spoil), lib_pdl=LibraryScript(us=4.5))
    result = bench_candidate(_request(tmp_path, ROW_MAJOR), timer, settings)
    assert _names(result)[0] == LIB_PDL
    (rejected,) = result.rejected
    assert (rejected.pdl, rejected.status) == (False, "failed_check")
    assert "y_bf16" in rejected.reason


def test_a_library_that_is_not_installed_is_unavailable(tmp_path: Path, settings: Settings) -> None:
    missing = LibraryScript(status=Status.LAUNCH_ERROR, message="ImportError: no module lib")
    timer = _timer(lib=missing, lib_pdl=missing)
    result = bench_candidate(_request(tmp_path, ROW_MAJOR), timer, settings)
    assert [(entry.status, entry.reason) for entry in result.rejected] == [
        ("unavailable", "ImportError: no module lib")
    ] * 2
    assert _names(result) == [("reference", False)]


def test_a_library_that_faults_is_rejected_and_no_error(tmp_path: Path, settings: Settings) -> None:
    timer = _timer(lib=LibraryScript(status=Status.OUT_OF_BOUNDS), lib_pdl=LibraryScript())
    result = bench_candidate(_request(tmp_path, ROW_MAJOR), timer, settings)
    assert _names(result)[0] == LIB_PDL
    assert result.rejected[0].reason.startswith("out_of_bounds")


def test_a_library_that_faults_only_when_timed_is_rejected(
    tmp_path: Path, settings: Settings
) -> None:
    crashing = LibraryScript(us=3.0, fails_timed=Status.CRASH)
    timer = _timer(other=crashing)
    result = bench_candidate(_request(tmp_path, OTHER), timer, settings)
    assert (result.status, _names(result)) == (Status.PASSED, [("reference", False)])
    assert "fails when it is timed" in result.rejected[0].reason


def test_one_of_two_paths_that_faults_when_timed_leaves_the_other(
    tmp_path: Path, settings: Settings
) -> None:
    timer = _timer(lib=LibraryScript(us=3.0, fails_timed=Status.CRASH), lib_pdl=LibraryScript())
    timer.script.names_side = False
    result = bench_candidate(_request(tmp_path, ROW_MAJOR), timer, settings)
    assert _names(result)[0] == LIB_PDL
    assert [entry.pdl for entry in result.rejected] == [False]


def test_the_choice_is_kept_and_the_chosen_path_checked_again(
    tmp_path: Path, settings: Settings
) -> None:
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=LibraryScript(us=4.5))
    request = _request(tmp_path, ROW_MAJOR)
    bench_candidate(request, timer, settings)
    assert (len(timer.sessions), len(timer.library_runs)) == (2, 4)
    bench_candidate(request, timer, settings)
    assert (len(timer.sessions), len(timer.library_runs)) == (3, 6)
    assert {run.side.pdl for run in timer.library_runs[4:]} == {True}
    assert {run.poison for run in timer.library_runs[4:]} == {0xFF, 0x55}


def test_a_chosen_path_that_stops_working_is_replaced(tmp_path: Path, settings: Settings) -> None:
    request = _request(tmp_path, ROW_MAJOR)
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=LibraryScript(us=4.5))
    bench_candidate(request, timer, settings)
    timer.script.libraries[LIB_PDL] = LibraryScript(spoil=_write_nothing)
    result = bench_candidate(request, timer, settings)
    assert _names(result)[0] == LIB
    assert [entry.pdl for entry in result.rejected] == [True]


def test_a_path_that_becomes_available_is_considered(tmp_path: Path, settings: Settings) -> None:
    request = _request(tmp_path, ROW_MAJOR)
    missing = LibraryScript(status=Status.LAUNCH_ERROR)
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=missing)
    assert _names(bench_candidate(request, timer, settings))[0] == LIB
    timer.script.libraries[LIB_PDL] = LibraryScript(us=4.5)
    assert _names(bench_candidate(request, timer, settings))[0] == LIB_PDL


def test_a_damaged_choice_is_made_again(tmp_path: Path, settings: Settings) -> None:
    request = _request(tmp_path, ROW_MAJOR)
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=LibraryScript(us=4.5))
    bench_candidate(request, timer, settings)
    for path in (settings.home / "cache" / "timing").iterdir():
        path.write_text("{")
    result = bench_candidate(request, timer, settings)
    assert _names(result)[0] == LIB_PDL
    assert len(timer.sessions) == 4


def test_another_baseline_source_makes_the_choice_anew(tmp_path: Path, settings: Settings) -> None:
    request = _request(tmp_path, ROW_MAJOR)
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=LibraryScript(us=4.5))
    bench_candidate(request, timer, settings)
    (request.case.problem.folder / "baseline.py").write_text("# changed\n")
    bench_candidate(request, timer, settings)
    assert len(timer.sessions) == 4


def test_the_noise_floor_is_measured_once_for_a_baseline(
    tmp_path: Path, settings: Settings
) -> None:
    request = _request(tmp_path)
    timer = _timer()
    floors = [
        bench_candidate(request, timer, settings).comparisons[0].noise_floor for _ in range(2)
    ]
    assert [floor is not None and floor.cached for floor in floors] == [False, True]
    assert [len(session.sides) for session in timer.sessions] == [4, 3]


def test_a_wide_noise_floor_is_used_and_measured_again(tmp_path: Path, settings: Settings) -> None:
    timer = _timer()
    timer.script.noise = replace(QUIET, white=0.2)
    request = replace(_request(tmp_path), max_pairs=100)
    for _ in range(2):
        result = bench_candidate(request, timer, settings)
        floor = result.comparisons[0].noise_floor
        assert floor is not None
        assert floor.threshold > 0.01
        assert not floor.cached


def test_a_library_with_another_layout_is_not_like_for_like(
    tmp_path: Path, settings: Settings
) -> None:
    def tile(request: ExecutionRequest, outputs: Arrays) -> None:
        scales = outputs["block_scale"]
        outputs["block_scale"] = to_sf_128x4(scales, 0).reshape(scales.shape)

    problem = bench_problem(tmp_path / "problem", (TILED,), ((128, 64),))
    request = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)
    timer = _timer(tiled=LibraryScript(us=6.0, spoil=tile))
    result = bench_candidate(request, timer, settings)
    assert _names(result) == [("reference", False), ("tiled", False)]
    unlike = result.comparisons[1]
    assert unlike.verdict is Verdict.NOT_LIKE_FOR_LIKE
    assert unlike.like_for_like.differences == (
        "it lays block_scale out as sf_128x4, the problem as row_major",
    )
    assert result.verdict is Verdict.FASTER


def test_a_layout_that_needs_a_larger_buffer_is_not_run(tmp_path: Path, settings: Settings) -> None:
    timer = _timer(tiled=LibraryScript())
    result = bench_candidate(_request(tmp_path, TILED), timer, settings)
    assert timer.library_runs == []
    assert "of another size" in result.rejected[0].reason


def test_a_library_that_allocates_inside_the_call_is_not_like_for_like(
    tmp_path: Path, settings: Settings
) -> None:
    timer = _timer(other=LibraryScript(us=6.0, allocations=2))
    result = bench_candidate(_request(tmp_path, OTHER), timer, settings)
    assert [entry.verdict for entry in result.comparisons] == [
        Verdict.FASTER,
        Verdict.NOT_LIKE_FOR_LIKE,
    ]
    assert "allocates memory" in result.comparisons[1].like_for_like.differences[0]
    assert (_names(result)[0], result.verdict) == (("reference", False), Verdict.FASTER)


def test_reference_alone_runs_no_library(tmp_path: Path, settings: Settings) -> None:
    timer = _timer(other=LibraryScript())
    request = replace(_request(tmp_path, OTHER), baselines="reference")
    assert _names(bench_candidate(request, timer, settings)) == [("reference", False)]
    assert timer.library_runs == []


def test_a_library_that_was_asked_for_and_fails_is_an_error(
    tmp_path: Path, settings: Settings
) -> None:
    timer = _timer(other=LibraryScript(spoil=_write_nothing))
    request = replace(_request(tmp_path, OTHER), baselines="library")
    with pytest.raises(ToolError, match="unwritten"):
        bench_candidate(request, timer, settings)


def test_every_path_can_be_compared_with(tmp_path: Path, settings: Settings) -> None:
    timer = _timer(lib=LibraryScript(us=5.0), lib_pdl=LibraryScript(us=4.5), other=LibraryScript())
    request = _request(tmp_path, ROW_MAJOR, OTHER)
    bench_candidate(request, timer, settings)
    result = bench_candidate(replace(request, baselines="every"), timer, settings)
    assert _names(result) == [OTHER_LIB, LIB_PDL, LIB, ("reference", False)]


def test_the_reference_kernel_is_not_compared_with_itself_beside_a_library(
    tmp_path: Path, settings: Settings
) -> None:
    request = _request(tmp_path, OTHER)
    itself = read_candidate(request.case.problem.folder / "reference.cu")
    timer = _timer(other=LibraryScript())
    assert _names(
        bench_candidate(
            replace(request, case=replace(request.case, candidate=itself)), timer, settings
        )
    ) == [OTHER_LIB]


def test_a_reference_kernel_that_does_not_compile_is_the_problems_fault(
    tmp_path: Path, settings: Settings, compiler: FakeCompiler
) -> None:
    compiler.status["reference.cu"] = Status.COMPILE_ERROR
    with pytest.raises(ToolError, match=r"reference\.cu cannot be a baseline.*compile_error"):
        bench_candidate(_request(tmp_path), _timer(), settings)


def test_a_device_that_fails_under_the_reference_kernel_is_the_machines(
    tmp_path: Path, settings: Settings
) -> None:
    class Failing(ScriptedTimer):
        def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
            if request.program.candidate.name == "reference.cu":
                raise InfraError("the GPU fell off the bus")
            return super().execute(request)

    with pytest.raises(InfraError, match="fell off"):
        bench_candidate(_request(tmp_path), Failing(), settings)
