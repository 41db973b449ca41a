"""The tables of docs/blackwell.md: they say what the facts beside the kernels say."""

from pathlib import Path

from markdown_tables import insert_between
from unproven_facts import subjects
from unproven_tables import MARKS, tables

from kopt.kernels.status import Status, Verdict
from kopt.kernels.unproven_facts import OtherGpuRun, UnprovenFacts, read_facts

DOCUMENT = Path(__file__).parents[2] / "docs" / "blackwell.md"


def _all_facts() -> list[UnprovenFacts]:
    return [read_facts(subject.shipped.evidence) for subject in subjects()]


def _run(facts: UnprovenFacts) -> OtherGpuRun:
    return OtherGpuRun(
        kernel=facts.kernel,
        candidate=facts.candidate,
        gpu="NVIDIA H100 80GB HBM3",
        arch="sm_90a",
        driver_version="580.1",
        measured_at="2026-11-22T14:00:00+00:00",
        status=Status.PASSED,
        executions=9,
        other_bodies=("load_32",),
        candidate_us=4.0,
        reference_us=10.0,
        null_kernel_us=1.5,
        ratio=2.5,
        interval=(2.45, 2.55),
        verdict=Verdict.FASTER,
    )


def test_the_document_has_the_tables_of_the_facts() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert insert_between(text, MARKS, tables(_all_facts())) == text


def test_what_never_ran_says_so_and_what_ran_says_where() -> None:
    facts = _all_facts()[0]
    never = tables([facts.model_copy(update={"other_gpu": None})])
    assert f"| {facts.kernel} | not run |" in never
    ran = tables([facts.model_copy(update={"other_gpu": _run(facts)})])
    assert "measured (NVIDIA H100 80GB HBM3, sm_90a, driver 580.1; 2026-11-22)" in ran
    row = f"| {facts.kernel} | passed, 9 runs | 4.00 | 10.00 | 2.50 (2.45 to 2.55) | 1.50 |"
    assert row in ran


def test_a_kernel_that_failed_there_has_no_time() -> None:
    facts = _all_facts()[0]
    failed = _run(facts).model_copy(
        update={"status": Status.INCORRECT, "ratio": None, "interval": None}
    )
    text = tables([facts.model_copy(update={"other_gpu": failed})])
    assert f"| {facts.kernel} | incorrect | unavailable |" in text
