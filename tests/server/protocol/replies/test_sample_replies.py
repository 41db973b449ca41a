"""Replies to the real results of every sample, good and evil, and of the reference kernels."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.status import ADVICE, Status
from kopt.server.jobs.records import JobView
from kopt.server.protocol.replies.reply import job_reply
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.selftest.sample import SAMPLES as FOLDER
from kopt.tools.selftest.sample import ShippedSample, read_samples
from kopt.tools.sim.device import SimDevice
from support.checked_samples import CheckedSamples
from support.job_views import done_job
from support.samples import is_nightly
from support.sound_replies import PAGE_TOKENS, sound

pytestmark = pytest.mark.slow  # every sample over MCP

SAMPLES = read_samples()
QUICK_REFERENCES = ("fused_add_rmsnorm", "merge_state", "rope_quantize_fp8", "silu_and_mul")
PROFILED = ("good_two_pass", "good_split_row_scratch", "good_scalar", "evil_missing_barrier")


def _name(sample: ShippedSample) -> str:
    return sample.path.stem


# Backwards: the process that is at tests/test_samples.py meanwhile checks others, and none waits.
CASES = [
    pytest.param(one, id=_name(one), marks=[pytest.mark.nightly] if is_nightly(one) else [])
    for one in reversed(SAMPLES)
]
REFERENCES = [
    pytest.param(name, marks=[] if name in QUICK_REFERENCES else [pytest.mark.nightly])
    for name in sorted(load_problems())
]


@pytest.mark.parametrize("sample", CASES)
def test_replies_to_a_sample_are_sound_and_say_where_and_what_next(
    sample: ShippedSample, checked_samples: CheckedSamples
) -> None:
    source = sample.path.read_text("utf-8")
    result = checked_samples.result(sample)
    view = done_job(result, source)
    facts = sound(job_reply(view, "concise"))
    assert (facts["status"], facts["kernel"]) == (sample.status.value, sample.kernel)
    named = f"kernel={sample.kernel}" if sample.status is not Status.PASSED else "the same kernel"
    assert named in facts["next"]
    _assert_findings(facts, sample, source)
    _assert_compiled(done_job(result.compiled, source), result.compiled)
    whole = sound(job_reply(view, "full"), PAGE_TOKENS)
    assert whole["measured"]["elapsed_s"] >= 0
    assert whole["next"] == facts["next"]


def _assert_findings(facts: dict[str, Any], sample: ShippedSample, source: str) -> None:
    if sample.status is Status.PASSED:
        assert "what_to_do" not in facts
        assert "benchmark" in facts["next"]
        return
    assert facts["what_to_do"] == ADVICE[sample.status]
    assert "check_correctness" in facts["next"]
    found = facts.get("diagnostics", [])
    assert found or "first_mismatch" in facts
    lines: dict[int, str] = {one["line"]: one["source"] for one in found if "line" in one}
    assert not sample.marked_lines or set(lines) & sample.marked_lines
    for line, shown in lines.items():
        assert shown.splitlines()[0].strip() in source.splitlines()[line - 1].replace("\t", " ")


def _assert_compiled(view: JobView, compiled: CompileResult) -> None:
    facts = sound(job_reply(view, "concise"))
    assert facts["status"] == compiled.status.value
    if compiled.status is Status.PASSED:
        shown = {row["function"]: row for row in facts["computed"]["functions"]}
        for kernel in compiled.builds[0].kernels[:3]:
            assert shown[kernel.name]["registers_per_thread"] == kernel.registers_per_thread


@pytest.mark.parametrize("name", PROFILED)
def test_reply_to_a_profile_names_the_bottleneck_and_its_families(
    name: str, checked_samples: CheckedSamples
) -> None:
    (sample,) = (one for one in SAMPLES if one.path.stem == name)
    result = _profiled(sample.path, sample.kernel, checked_samples.settings)
    facts = sound(job_reply(done_job(result), "concise"))
    assert result.bottleneck is not None
    assert facts["bottleneck"]["name"] == result.bottleneck.name
    assert facts["bottleneck"]["provenance"] == "estimated"
    assert "faster" not in str(facts)
    if result.status is Status.PASSED:
        assert result.bottleneck.families[0] in facts["next"]
    sound(job_reply(done_job(result), "full"), PAGE_TOKENS)


@pytest.mark.parametrize("name", REFERENCES)
def test_reply_to_profiling_a_reference_kernel_fits(
    name: str, checked_samples: CheckedSamples
) -> None:
    problem = load_problems()[name]
    path = problem.folder / "reference.cu"
    result = _profiled(path, problem.kernel_ids[0], checked_samples.settings)
    facts = sound(job_reply(done_job(result), "concise"))
    assert facts["status"] == "passed"
    assert facts["estimated"]["latency_us"] > facts["computed"]["floor_us"]


def _profiled(path: Path, kernel: str, settings: Settings) -> ProfileResult:
    problem, workload = find_kernel(kernel, FOLDER / "problems")
    request = ProfileRequest(
        case=Case(problem, workload, read_candidate(path)),
        arch=DEFAULT_ARCH,
        counters=False,
        progress=_ignore,
    )
    return profile_candidate(request, settings, ProfileDevices(SimDevice(settings), None))


def _ignore(*_: Any) -> None:
    """Say nothing."""
