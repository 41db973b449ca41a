"""The time of a plain copy: what is timed, when it is measured anew, what a benchmark says."""

from dataclasses import replace

import pytest

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import PlainCopy
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.roofline import ByteModel, workload_bytes
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench import plain_copy as module
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.facts.bench_facts import bench_facts, doubts
from support.bench_cases import CANDIDATE, FakeCompiler
from support.copying_timer import CopyingTimer
from support.scripted_timer import FACTS, QUIET, Script


@pytest.fixture
def model(problem: Problem) -> ByteModel:
    return workload_bytes(problem, problem.workloads[0])


@pytest.fixture(autouse=True)
def compiled_copies(compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compile_candidate", compiler)


def _timer(candidate_us: float = 4.0, copy_us: float = 5.0) -> CopyingTimer:
    return CopyingTimer(Script(candidate_us=candidate_us, reference_us=copy_us, noise=QUIET))


def test_as_many_bytes_are_read_and_written_in_whole_words(
    model: ByteModel, settings: Settings
) -> None:
    timer = _timer()
    found = module.plain_copy(model, timer, settings)
    assert found is not None
    assert 0 <= found.read_bytes - model.read_bytes < module.WORD_BYTES
    assert 0 <= found.written_bytes - model.written_bytes < module.WORD_BYTES
    assert found.latency.median_us == pytest.approx(5.0)
    assert len(timer.sessions[0].sides) == 2 * len(module.SHAPES)


def test_the_same_bytes_on_the_same_device_are_measured_once(
    model: ByteModel, settings: Settings
) -> None:
    timer = _timer()
    assert module.plain_copy(model, timer, settings) == module.plain_copy(model, timer, settings)
    assert len(timer.sessions) == 1
    module.plain_copy(model.model_copy(update={"read_bytes": 4096}), timer, settings)
    assert len(timer.sessions) == 2


@pytest.mark.parametrize("change", [{"uuid": "GPU-other"}, {"driver_version": "999.1"}])
def test_another_device_or_driver_is_measured_anew(
    model: ByteModel, settings: Settings, change: dict[str, str]
) -> None:
    module.plain_copy(model, _timer(), settings)
    other = _timer()
    other.device_facts = FACTS.model_copy(update=change)
    module.plain_copy(model, other, settings)
    assert len(other.sessions) == 1


def test_other_copy_kernels_are_measured_anew(
    model: ByteModel, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = _timer()
    module.plain_copy(model, timer, settings)
    monkeypatch.setattr(module, "SHAPES", ((256, 1),))
    module.plain_copy(model, timer, settings)
    assert [len(session.sides) for session in timer.sessions] == [8, 2]


def test_a_device_without_dependent_launch_times_copies_without_it(
    model: ByteModel, settings: Settings
) -> None:
    timer = _timer()
    timer.device_facts = FACTS.model_copy(update={"compute_capability": (8, 0)})
    found = module.plain_copy(model, timer, settings)
    assert found is not None
    assert not found.pdl
    assert len(timer.sessions[0].sides) == len(module.SHAPES)


def test_a_copy_that_is_wrong_is_no_yardstick(model: ByteModel, settings: Settings) -> None:
    timer = _timer()
    timer.spoils_copy = True
    with pytest.raises(ToolError, match="the copy is wrong"):
        module.plain_copy(model, timer, settings)


def test_a_copy_beside_other_work_is_no_yardstick_and_is_measured_again(
    model: ByteModel, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = _timer()
    calm = module.measure_copy(model.read_bytes, model.written_bytes, timer, settings)
    spread = calm.latency.model_copy(update={"p90_us": 1.2 * (calm.latency.p10_us or 0.0)})
    answers = iter((calm.model_copy(update={"latency": spread}), calm))

    def answer(*_: object) -> PlainCopy:
        return next(answers)

    monkeypatch.setattr(module, "measure_copy", answer)
    with pytest.raises(InfraError, match="something else may use the GPU"):
        module.plain_copy(model, timer, settings)
    assert module.plain_copy(model, timer, settings) == calm


def test_a_copy_of_more_than_a_gigabyte_is_not_measured(
    model: ByteModel, settings: Settings
) -> None:
    timer = _timer()
    huge = model.model_copy(update={"total_bytes": (1 << 30) + 1})
    assert module.plain_copy(huge, timer, settings) is None
    assert timer.sessions == []


def test_a_benchmark_has_the_copy_where_it_is_asked_for(
    problem: Problem, settings: Settings
) -> None:
    asked = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1, copies=True)
    result = bench_candidate(asked, _timer(), settings)
    assert result.plain_copy is not None
    assert bench_facts(result, "concise")["measured"]["plain_copy_us"] == pytest.approx(5.0)
    assert bench_candidate(replace(asked, copies=False), _timer(), settings).plain_copy is None


def test_a_copy_that_fails_takes_nothing_of_the_candidate_s_result(
    problem: Problem, settings: Settings
) -> None:
    asked = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1, copies=True)
    timer = _timer()
    timer.spoils_copy = True
    result = bench_candidate(asked, timer, settings)
    assert (result.status, result.plain_copy) == (Status.PASSED, None)
    assert result.verdict is not None and result.latency is not None
    assert "no plain copy was timed beside it: the copy is wrong" in str(result.diagnostics)


@pytest.mark.parametrize(("candidate_us", "is_doubted"), [(4.7, True), (4.8, False), (6.0, False)])
def test_a_time_clearly_below_the_copy_is_doubted_and_not_refused(
    problem: Problem, settings: Settings, candidate_us: float, is_doubted: bool
) -> None:
    asked = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1, copies=True)
    result = bench_candidate(asked, _timer(candidate_us, copy_us=5.0), settings)
    assert result.status is Status.PASSED
    assert result.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert any("of a plain copy" in doubt for doubt in doubts(result)) is is_doubted
