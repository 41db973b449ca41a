"""What a report says of memory: states, predictions, results, what the learner changed."""

from math import log
from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.edits import AddNote
from kopt.search.knowledge.records import ProfileSignature, Sample
from kopt.search.reports.contents import Contents, read_contents
from kopt.search.reports.markdown import render_markdown
from kopt.search.reports.memory import read_memory
from kopt.search.reports.page import render_page
from kopt.search.store.taught import MemoryUpdate, Taught
from support.told_run import told_run


def _sample(candidate: str, **fields: Any) -> Sample:
    known: dict[str, Any] = {
        "id": f"this/{candidate}",
        "run": "this",
        "kernel": "made_up_b8",
        "op_type": "made_up",
        "arch": "sm_90a",
        "device": "NVIDIA H100",
        "toolkit": "13.2",
        "state": "narrow_accesses",
        "techniques": ("vector_loads",),
        "before": "a" * 64,
        "after": "b" * 64,
        "provenance": Provenance.MEASURED,
        "outcome": "gained",
        "status": Status.PASSED,
        "day": "2026-01-01",
    }
    return Sample(**(known | fields))


SAMPLES = (
    _sample(
        "1",
        predicted=log(1.1),
        predicted_interval=(log(0.9), log(1.3)),
        measured=log(1.2),
        interval=(log(1.19), log(1.21)),
        signature_after=ProfileSignature(bottleneck="memory_bound", provenance=Provenance.MEASURED),
    ),
    _sample("2", outcome="failed", status=Status.INCORRECT, predicted=log(1.5)),
    _sample(
        "4/WITH_PACKED_MATH",
        techniques=("packed_math", "wide_stores"),
        previous="vector_loads",
        outcome="within_noise",
        measured=0.0,
    ),
)
OTHERS = (
    _sample("5/from3", techniques=("tune_constants",), measured=0.1),
    _sample("6/refuted", outcome="failed"),
)
NOTE = AddNote(
    state="narrow_accesses",
    techniques=("vector_loads",),
    text="Only with aligned rows.",
    reason="#2 was wrong at the tail",
    evidence=("this/2",),
    author="model",
)


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    """Return what the pages show of a run that has learned."""
    with told_run(tmp_path) as store:
        store.memory.keep_taught(1, Taught(samples=SAMPLES))
        store.memory.keep_update(1, MemoryUpdate(edits=(NOTE,), dropped=("deprecate: no sample",)))
        return read_contents(store.reader, store.folder, Settings(tmp_path))


def test_run_that_taught_nothing_has_no_memory_section(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        assert read_memory(store.reader) is None
        text = render_markdown(read_contents(store.reader, store.folder, Settings(tmp_path)))
    assert "## Memory" not in text


def test_each_step_has_its_state_and_its_prediction_beside_the_result(contents: Contents) -> None:
    text = render_markdown(contents)
    assert (
        "| \\#1 | narrow\\_accesses | vector\\_loads | 1.100x (0.900 to 1.300) |"
        " 1.200x (1.190 to 1.210) measured | gained | memory\\_bound |" in text
    )
    assert "| \\#2 | narrow\\_accesses | vector\\_loads | 1.500x | incorrect | failed |  |" in text
    assert (
        "| \\#4, WITH\\_PACKED\\_MATH | narrow\\_accesses |"
        " packed\\_math then wide\\_stores (after vector\\_loads) |  | 1.000x measured |"
        " within noise |  |" in text
    )


def test_what_was_compared_is_told_where_it_is_not_the_parent(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        store.memory.keep_taught(1, Taught(samples=OTHERS))
        text = render_markdown(read_contents(store.reader, store.folder, Settings(tmp_path)))
    assert "| \\#5 over \\#3 |" in text
    assert (
        "| \\#6, refuted | narrow\\_accesses | vector\\_loads |  | passed, not credited |" in text
    )


def test_predictions_are_compared_with_what_gained_and_failures_are_counted(
    contents: Contents,
) -> None:
    use = contents.report.memory
    assert use is not None
    over_all = use.calibration[0]
    assert (over_all.compared, over_all.failed, over_all.coverage) == (1, 1, 1.0)
    assert over_all.reward == pytest.approx(log(1.2 / 1.1))
    assert "| all | sm\\_90a | 1 | 0 | 1 | 1.091x | 1.091x | 1 of 1 |" in render_markdown(contents)


def test_changes_of_the_learner_are_told_with_reason_and_evidence(contents: Contents) -> None:
    page = render_page(contents)
    assert (
        "<li>after round 1: note on vector_loads in narrow_accesses: Only with aligned rows.:"
        " #2 was wrong at the tail (by this/2)</li>" in page
    )
    assert "<li>not taken: deprecate: no sample</li>" in page
