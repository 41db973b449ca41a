"""Every sample gets its status: honest kernels of many styles pass, each flaw is named and placed.

The candidates are those of `kopt selftest`, with what must come out written in each.
"""

import pytest

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.selftest.sample import ShippedSample, read_samples
from support.checked_samples import CheckedSamples
from support.samples import describe, is_nightly

SAMPLES = read_samples()
EVIL = [sample for sample in SAMPLES if sample.path.name.startswith("evil_")]
GOOD = [sample for sample in SAMPLES if sample.path.name.startswith("good_")]


def _name(sample: ShippedSample) -> str:
    return sample.path.stem


ONE_OF_EACH_STATUS = {sample.status: sample.name for sample in reversed(SAMPLES)}
DEAR = {  # compiled several times, or run for seconds
    *("evil_header_changed", "evil_assert", "evil_infinite_loop", "evil_argument_missing"),
    "evil_atomic_result_read_too_early",
}


def _marks(sample: ShippedSample) -> list[pytest.MarkDecorator]:
    if sample.name in ONE_OF_EACH_STATUS.values() and sample.path.stem not in DEAR:
        return []
    return [pytest.mark.slow, *([pytest.mark.nightly] if is_nightly(sample) else [])]


CASES = [pytest.param(sample, id=_name(sample), marks=_marks(sample)) for sample in SAMPLES]


@pytest.mark.parametrize("sample", CASES)
def test_sample_gets_its_status(sample: ShippedSample, checked_samples: CheckedSamples) -> None:
    result = checked_samples.result(sample)
    found = describe(result)
    assert result.status == sample.status, found
    if sample.says is not None:
        assert sample.says in found
    if sample.marked_lines:
        named = {diagnostic.line for diagnostic in result.diagnostics}
        assert named & sample.marked_lines, found


@pytest.mark.slow  # compiles every sample once more
@pytest.mark.nightly
@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_nvcc_compiles_a_sample_as_nvrtc_does(
    sample: ShippedSample, checked_samples: CheckedSamples
) -> None:
    problem, workload = find_kernel(sample.kernel, sample.path.parent / "problems")
    case = Case(problem, workload, read_candidate(sample.path))
    request = CompileRequest(case, (sample.arch_instead_of(DEFAULT_ARCH),))
    compiled = compile_candidate(request, checked_samples.settings)
    before = checked_samples.result(sample).compiled
    assert (compiled.status, compiled.diagnostics) == (before.status, before.diagnostics)


def test_every_good_sample_passes_the_full_level() -> None:
    wrong = [s.path.name for s in GOOD if (s.status, s.level) != (Status.PASSED, "full")]
    assert wrong == []


def test_no_evil_sample_is_said_to_pass() -> None:
    assert [s.path.name for s in EVIL if s.status is Status.PASSED] == []


def test_every_sample_is_good_or_evil() -> None:
    assert len(GOOD) + len(EVIL) == len(SAMPLES)
    assert len(GOOD) >= 150
    assert len(EVIL) >= 26
