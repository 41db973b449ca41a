"""No honest candidate is said to contradict its family: the good samples, as they are compiled."""

from pathlib import Path

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem_loader import find_kernel
from kopt.search.selection.family_evidence import MachineCode, judge_family
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.estimate.stage import find_build
from kopt.tools.selftest.sample import ShippedSample, read_samples
from support.samples import is_nightly
from support.shared_caches import share_caches

SAMPLES = read_samples()
CASES = [
    pytest.param(one, id=one.path.stem, marks=[pytest.mark.nightly] if is_nightly(one) else [])
    for one in SAMPLES
    if one.path.name.startswith("good_")
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(share_caches(tmp_path_factory.mktemp("claims"), shared_caches))


@pytest.mark.slow  # compiles every good sample
@pytest.mark.parametrize("sample", CASES)
def test_good_samples_contradict_no_claim_of_theirs(
    sample: ShippedSample, settings: Settings
) -> None:
    problem, workload = find_kernel(sample.kernel, sample.path.parent / "problems")
    arch = sample.arch_instead_of(DEFAULT_ARCH)
    candidate, gpu = read_candidate(sample.path), gpu_for_arch(arch)
    header = parse_header(candidate, problem).header
    assert header is not None
    request = CompileRequest(Case(problem, workload, candidate), (arch,), compiler="nvrtc")
    compiled = compile_candidate(request, settings)
    plans = make_plans(CheckRequest(request.case, "quick"), gpu)
    plan = plans.final(compiled, gpu, simulated=False)[workload.name]
    code = MachineCode(find_build(compiled, plan, gpu), plan, compiled.occupancy)
    for family in header.family:
        evidence = judge_family(family, code)
        assert evidence.verdict != "contradicted", evidence.why
