"""The whole stage over a fake compiler and a fake device."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.check import stage
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program
from support.synthetic_check import NumpyDevice, synthetic_problem

SOURCE = """/* kopt: 1
family: vectorization
where: "WHERE"
tune: {LANES: [32, 64]}
launch:
  - {kernel: k, grid: B, block: LANES,
     args: [x, kept, codes, block_scale, y_bf16, y_fp8, total]}
*/
"""


@dataclass
class FakeCompiler:
    """Answers with one status and remembers the request."""

    status: Status = Status.PASSED
    diagnostics: tuple[Diagnostic, ...] = ()
    request: CompileRequest | None = None

    def __call__(self, request: CompileRequest, settings: Settings) -> CompileResult:
        """Stand in for `compile_candidate`."""
        del settings
        self.request = request
        return CompileResult(
            status=self.status,
            kernel=request.case.problem.kernel_id(request.case.workload),
            candidate=request.case.candidate.id,
            diagnostics=self.diagnostics,
        )


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    fake = FakeCompiler()
    monkeypatch.setattr(stage, "compile_candidate", fake)
    return fake


@pytest.fixture
def request_(tmp_path: Path) -> CheckRequest:
    problem = synthetic_problem(tmp_path / "problem", ((16, 64), (8, 64), (4, 64)))
    return CheckRequest(
        case=Case(problem, problem.workloads[0], Candidate(SOURCE.replace("WHERE", "B >= 8"))),
        level="full",
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", jobs=2)


@pytest.mark.usefixtures("compiler")
def test_a_right_candidate_passes_on_its_whole_domain(
    request_: CheckRequest, settings: Settings
) -> None:
    result = check_candidate(request_, NumpyDevice(), settings)
    assert result.status is Status.PASSED
    assert (result.kernel, result.device) == ("synthetic_b16xh64", "numpy")
    assert [check.workload for check in result.workloads] == ["b8xh64", "b16xh64"]
    assert CheckResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


@pytest.mark.usefixtures("compiler")
def test_quick_checks_the_named_workload_alone(request_: CheckRequest, settings: Settings) -> None:
    result = check_candidate(replace(request_, level="quick"), NumpyDevice(), settings)
    (check,) = result.workloads
    assert (check.workload, check.executions, check.hidden_seeds) == ("b16xh64", 2, 0)


def test_tune_values_reach_compiler_plan_and_result(
    request_: CheckRequest, settings: Settings, compiler: FakeCompiler
) -> None:
    device = NumpyDevice()
    result = check_candidate(
        replace(request_, case=replace(request_.case, tune={"LANES": 64})), device, settings
    )
    assert result.tune == {"LANES": 64}
    assert {request.program.plan.launches[0].block for request in device.requests} == {(64, 1, 1)}
    assert compiler.request is not None
    assert compiler.request.case.tune == {"LANES": 64}


def test_a_source_that_does_not_compile_is_not_executed(
    request_: CheckRequest, settings: Settings, compiler: FakeCompiler
) -> None:
    compiler.status = Status.COMPILE_ERROR
    compiler.diagnostics = (Diagnostic(message="expected a ;", line=9),)
    device = NumpyDevice()
    result = check_candidate(request_, device, settings)
    assert result.status is Status.COMPILE_ERROR
    assert result.diagnostics == compiler.diagnostics
    assert device.requests == []


@pytest.mark.usefixtures("compiler")
def test_a_workload_outside_the_domain_is_a_plan_error(
    request_: CheckRequest, settings: Settings
) -> None:
    outside = replace(
        request_, case=replace(request_.case, workload=request_.case.problem.workloads[2])
    )
    result = check_candidate(outside, NumpyDevice(), settings)
    assert result.status is Status.PLAN_ERROR
    assert "b4xh64" in result.diagnostics[0].message


@pytest.mark.usefixtures("compiler")
def test_what_the_device_cannot_prepare_is_its_status(
    request_: CheckRequest, settings: Settings
) -> None:
    class Unable(NumpyDevice):
        def prepare(self, program: Program) -> ExecutionOutcome | None:
            return ExecutionOutcome(Status.UNSUPPORTED_ON_SIM, (Diagnostic(message="no wgmma"),))

    device = Unable()
    result = check_candidate(request_, device, settings)
    assert result.status is Status.UNSUPPORTED_ON_SIM
    assert result.diagnostics[0].message == "no wgmma"
    assert device.requests == []


def test_a_refused_source_reaches_no_compiler_of_the_device(
    request_: CheckRequest, settings: Settings, compiler: FakeCompiler
) -> None:
    compiler.status = Status.REFUSED
    prepared: list[Program] = []

    class Watched(NumpyDevice):
        def prepare(self, program: Program) -> ExecutionOutcome | None:
            prepared.append(program)
            return None

    endless = Candidate(request_.case.candidate.source + '#include "/dev/zero"\n')
    result = check_candidate(
        replace(request_, case=replace(request_.case, candidate=endless)), Watched(), settings
    )
    assert result.status is Status.REFUSED
    assert prepared == []


@pytest.mark.usefixtures("compiler")
def test_a_wrong_candidate_is_refused_with_a_place(
    request_: CheckRequest, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][:, 60:] = 0

    result = check_candidate(request_, NumpyDevice(spoil), settings)
    assert result.status is Status.INCORRECT
    assert result.mismatch is not None
    pattern = result.mismatch.pattern
    assert pattern == "tail only, the last 4 elements (from 60) of every row"
    assert result.diagnostics[0].hint == "the wrong elements are all 0"


@pytest.mark.usefixtures("compiler")
def test_a_reference_that_is_wrong_points_at_the_oracle_too(
    request_: CheckRequest, settings: Settings
) -> None:
    def spoil(execution: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][0, 0] = 1e3

    device = NumpyDevice(spoil)
    case = request_.case
    told = "own reference kernel, so that oracle.py may be what is wrong"
    other = check_candidate(request_, device, settings)
    assert not any(told in one.message for one in other.diagnostics)
    (case.problem.folder / "reference.cu").write_text(case.candidate.source)
    own = check_candidate(request_, device, settings)
    assert own.status is Status.INCORRECT
    assert any(told in one.message for one in own.diagnostics)


@pytest.mark.usefixtures("compiler")
def test_a_check_says_the_same_twice(request_: CheckRequest, settings: Settings) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        if request.schedule_seed > 2:
            outputs["y_fp8"][request.schedule_seed % 8, 3] = 448

    results = [check_candidate(request_, NumpyDevice(spoil), settings) for _ in range(2)]
    assert results[0].mismatch == results[1].mismatch
    assert results[0].mismatch is not None


@pytest.mark.usefixtures("compiler")
def test_a_check_without_seeds_is_refused(request_: CheckRequest, settings: Settings) -> None:
    with pytest.raises(ToolError, match="seed"):
        check_candidate(replace(request_, seeds=()), NumpyDevice(), settings)


@pytest.mark.usefixtures("compiler")
def test_an_oracle_that_gives_nan_is_a_fault_of_the_problem(
    request_: CheckRequest, settings: Settings
) -> None:
    path = request_.case.problem.folder / "oracle.py"
    path.write_text(path.read_text().replace("total = y.sum(axis=1)", "total = y[:, 0] * np.nan"))
    with pytest.raises(ToolError, match="NaN as an exact value"):
        check_candidate(request_, NumpyDevice(), settings)
