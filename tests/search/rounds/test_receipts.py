"""A gain that a promotion has proven is remembered with the names of its receipts."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.search_settings import load_search_settings
from kopt.kernels.promotion_result import PromotionResult, WinnerFile
from kopt.kernels.status import Status
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.records import Note
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Member
from kopt.search.rounds.advance import run_search
from support.bench_results import H100, check
from support.populations import timed
from support.scripted_agents import evaluate_line
from support.scripted_runs import new_store
from support.technique_world import World, world_search

BEAM = load_search_settings().with_beam(2, 1).model_copy(update={"fix_attempts": 0})
WORLD = World({"vector_loads": 2.0}, planned=("vector_loads",))
RECEIPT = WinnerFile(
    workload="b8",
    source_path="/home/me/winners/made_up/b8.sm_90a.cu",
    receipt_path="/home/me/winners/made_up/b8.sm_90a.receipt.json",
    action="written",
)


def _measured(job: EvaluationJob) -> Evaluation:
    found = evaluate_line(job)
    time_us = None if found.latency is None else found.latency.value
    return found if time_us is None else timed(1.0, 16.0 / time_us)


def _after_a_run(home: Path, outcome: str, *files: WinnerFile) -> KnowledgeBase:
    def promote(member: Member) -> PromotionResult:
        return PromotionResult(
            status=Status.PASSED,
            outcome=outcome,  # type: ignore[arg-type]  # of a test's table
            kernel="made_up_b8",
            domain=("b8",),
            candidate=member.source_sha,
            device="cuda:0",
            gpu=H100,
            check=check(),
            files=files,
            elapsed_s=1.0,
        )

    with new_store(home, search=BEAM, device="cuda:0", gpu=H100, arch="sm_90a") as store:
        parts = world_search(store, WORLD, evaluate=_measured)
        run_search(replace(parts, promote=promote))
    with KnowledgeStore(home / "knowledge") as shared:
        return shared.base()


def _proven(base: KnowledgeBase) -> dict[tuple[str, ...], Note]:
    """Return the remark that names receipts, by techniques."""
    return {
        entry.techniques: note
        for entry in base.entries.values()
        for note in entry.notes
        if "receipts" in note.text
    }


def test_entry_of_a_promoted_gain_names_its_receipt_and_its_sample(tmp_path: Path) -> None:
    base = _after_a_run(tmp_path, "promoted", RECEIPT)
    proven = _proven(base)
    assert list(proven) == [("vector_loads",)]
    note = proven["vector_loads",]
    assert note.text == f"promoted on {H100.name}; receipts: made_up/b8.sm_90a.receipt.json"
    (sample,) = note.evidence
    assert sample.startswith("run-")
    assert "/home/me" not in note.text


@pytest.mark.parametrize("outcome", ["not_promoted", "kept_existing"])
def test_gain_that_was_not_promoted_has_no_receipt(tmp_path: Path, outcome: str) -> None:
    base = _after_a_run(tmp_path, outcome)
    assert not _proven(base)
