"""Reviews of torch extensions: outputs are judged as bytes, and no time is believed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.review_result import Claim, ReviewResult
from kopt.kernels.status import Status
from kopt.server.views.review_page import review_markdown
from kopt.tools.devices.examination import CounterReading, ExaminedCall, SanitizerReading
from kopt.tools.review import extension_device, extension_stage
from kopt.tools.review.extension_call import ExtensionCall
from kopt.tools.review.extension_stage import ExtensionRequest, review_extension
from kopt.tools.review.stage import Reviewer, ReviewRequest
from kopt.tools.sim.device import SimDevice
from support.bench_cases import bench_problem
from support.extension_sources import PlayedSandbox
from support.promotion_cases import FileCompiler
from support.scripted_timer import Script, ScriptedTimer

OUTPUTS = ("codes", "block_scale", "y_bf16", "y_fp8", "total")
CALL = ExtensionCall("forward", ("x", "kept"), OUTPUTS)
EXTENSION = Candidate("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", "ext.cu")
Review = Callable[..., ReviewResult]


def _installed(name: str) -> object:
    return name


def _missing(name: str) -> object:
    del name
    return None


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return bench_problem(tmp_path / "problem")


@pytest.fixture
def sandbox(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> PlayedSandbox:
    played = PlayedSandbox(problem)
    monkeypatch.setattr(extension_device, "run_sandboxed", played)
    monkeypatch.setattr(extension_stage, "find_spec", _installed)
    return played


@pytest.fixture
def review(
    problem: Problem, settings: Settings, sandbox: PlayedSandbox, compiler: FileCompiler
) -> Review:
    del sandbox, compiler

    def run(claim: float = 1.5) -> ReviewResult:
        timer = ScriptedTimer(Script())
        case = Case(problem, problem.workloads[0], EXTENSION)
        asked = ReviewRequest(case, Claim(speedup=claim), (case.workload,), arch=timer.facts.arch)
        return review_extension(ExtensionRequest(asked, CALL), Reviewer(timer, timer, settings))

    return run


def test_what_is_right_cannot_be_told_for_no_time_of_it_counts(
    review: Review, sandbox: PlayedSandbox
) -> None:
    result = review()
    assert (result.answer, result.status) == ("cannot_be_told", Status.PASSED)
    assert "no time of it can be believed" in result.reasons[0]
    assert result.check.workloads[0].hidden_seeds == 2
    assert all(one.bench is None for one in result.workloads)
    page = review_markdown(result)
    assert "## Speed" not in page and "it was not run under compute-sanitizer" in page
    build, *calls = sandbox.jobs
    assert (build["step"], {job["step"] for job in calls}) == ("build", {"call"})
    assert len({job["poison"] for job in calls}) == 2


def test_a_claim_beyond_physics_is_refuted_by_the_baseline_s_time(review: Review) -> None:
    result = review(8.0)
    assert result.answer == "does_not_hold"
    assert "no kernel can be so fast: reference took" in result.reasons[0]


def test_wrong_bytes_refute_the_claim(review: Review, sandbox: PlayedSandbox) -> None:
    def spoil(folder: Path) -> None:
        raw = bytearray((folder / "y_bf16.out").read_bytes())
        raw[1] ^= 0x40
        (folder / "y_bf16.out").write_bytes(raw)

    sandbox.spoil = spoil
    result = review()
    assert (result.answer, result.status) == ("does_not_hold", Status.INCORRECT)


def test_a_changed_input_refutes_the_claim(review: Review, sandbox: PlayedSandbox) -> None:
    def spoil(folder: Path) -> None:
        (folder / "x.out").write_bytes(b"\1" * 1024)

    sandbox.spoil = spoil
    result = review()
    assert (result.answer, result.status) == ("does_not_hold", Status.INPUT_MUTATED)


@pytest.mark.parametrize("spoiled", ["short", "missing", "link", "no answer", "lie"])
def test_what_does_not_come_back_whole_is_not_judged(
    review: Review, sandbox: PlayedSandbox, spoiled: str
) -> None:
    def spoil(folder: Path) -> None:
        out, answer = folder / "codes.out", folder / "answer.json"
        if spoiled == "short":
            out.write_bytes(b"\0")
        elif spoiled == "no answer":
            answer.unlink()
        elif spoiled == "lie":
            answer.write_text('["passed"]')
        else:
            out.unlink()
        if spoiled == "link":
            out.symlink_to(folder / "y_fp8.out")

    sandbox.spoil = spoil
    result = review()
    assert (result.answer, result.status) == ("cannot_be_told", Status.LAUNCH_ERROR)


def test_a_crash_refutes_and_a_build_that_fails_does_not(
    review: Review, sandbox: PlayedSandbox
) -> None:
    sandbox.returncode = -11
    crashed = review()
    assert (crashed.answer, crashed.status) == ("does_not_hold", Status.CRASH)
    sandbox.build_failure = "RuntimeError: ...\n/tmp/x/extension.cu(7): error: expected a ';'\n"
    result = review()
    assert (result.answer, result.status) == ("cannot_be_told", Status.COMPILE_ERROR)
    assert "line 7: expected a ';'" in result.reasons[0]


def test_its_process_reaches_nothing_of_kopt(
    review: Review, sandbox: PlayedSandbox, settings: Settings, problem: Problem
) -> None:
    import kopt

    review()
    for policy in sandbox.policies:
        (own,) = policy.writable
        assert own.name.startswith("kopt-extension-")
        for path in policy.readable:
            assert path not in (Path(kopt.__path__[0]), problem.folder)
            assert not path.is_relative_to(settings.home.absolute())
        assert str(settings.home) not in " ".join(policy.environment.values())


def test_without_a_gpu_it_is_not_run(
    problem: Problem, settings: Settings, sandbox: PlayedSandbox
) -> None:
    case = Case(problem, problem.workloads[0], EXTENSION)
    asked = ReviewRequest(case, Claim(speedup=2.0), (case.workload,))
    where = Reviewer(SimDevice(settings), None, settings)
    result = review_extension(ExtensionRequest(asked, CALL), where)
    assert (result.answer, sandbox.jobs) == ("cannot_be_told", [])
    assert "a torch extension runs on a GPU alone" in result.reasons[0]
    assert "--device cuda:0" in str(result.check.diagnostics[0].hint)


class _Elsewhere(ScriptedTimer):
    """A GPU of another machine."""

    def read_counters(self, call: ExaminedCall) -> CounterReading:
        """Fail the test."""
        raise AssertionError(call)

    def sanitize(self, call: ExaminedCall, *_: object) -> SanitizerReading:
        """Fail the test."""
        raise AssertionError(call)


def test_on_another_machine_s_gpu_it_is_refused(
    problem: Problem, settings: Settings, sandbox: PlayedSandbox
) -> None:
    case = Case(problem, problem.workloads[0], EXTENSION)
    asked = ReviewRequest(case, Claim(speedup=2.0), (case.workload,))
    timer = _Elsewhere(Script())
    with pytest.raises(ToolError, match="cuda:0 is on another machine: call kopt review"):
        review_extension(ExtensionRequest(asked, CALL), Reviewer(timer, timer, settings))
    assert sandbox.jobs == []


def test_without_torch_it_says_how_to_get_it(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension_stage, "find_spec", _missing)
    with pytest.raises(SetupError, match="needs torch"):
        review()
