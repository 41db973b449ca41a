"""Notes are quoted with their reason and their address, logged with the run, hidden with theirs."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.compile_result import DependencyOrder
from kopt.kernels.problem_loader import find_kernel
from kopt.search.advice.notes import MOST_NOTES, NoteFinder
from kopt.search.advice.retrieval import Asker, read_for_run
from kopt.search.advice.retrieval_log import read_retrievals
from kopt.search.store.store import FILE_NAME
from support.built_docs import copy_docs
from support.estimate_cases import EstimateCase
from support.made_profiles import profile_of
from support.populations import member, passed
from support.scripted_runs import new_store

LEADER = member(0, passed(2.0))
IDLE = profile_of(EstimateCase(blocks=8, threads=1024, mix=(("ldg_128", 2), ("stg_128", 1))))


@pytest.fixture
def desk(tmp_path: Path, built_docs: Path) -> NoteFinder:
    """Return the desk of a home with one run."""
    with new_store(copy_docs(built_docs, tmp_path), "run-1"):
        problem, _ = find_kernel("silu_and_mul_b8xh14336", None)
        return NoteFinder(Settings(tmp_path), Asker("run-1", "a test"), problem)


def test_note_comes_with_its_reason_its_words_and_an_address_that_leads_to_it(
    desk: NoteFinder,
) -> None:
    first = desk.notes_on(LEADER, IDLE)[0]
    assert (first.candidate, first.family) == (0, "grid_shape")
    assert "124 of 132 SMs idle" in first.why
    assert first.text.startswith("When: ") and "Change: " in first.text
    assert "Source: " not in first.text and "\n" not in first.text
    whole = read_for_run(first.document, desk.asker, desk.settings).document
    assert whole.title == first.title and "## Many small blocks for few rows" in whole.body


def test_what_is_quoted_is_logged_with_the_run(desk: NoteFinder) -> None:
    told = desk.notes_on(LEADER, IDLE)
    logged = read_retrievals(desk.settings.runs / "run-1")
    assert [one.document for one in told] == [entry.hits[0].uid for entry in logged]
    assert {entry.asked_by for entry in logged} == {"a test"}


def test_no_more_notes_than_a_reply_can_quote(desk: NoteFinder) -> None:
    alone = DependencyOrder(loads=2, loads_before_wait=None, loads_after_trigger=None)
    mix = (("ldg_128", 2), ("bar", 1), ("shfl", 5), ("lds", 16))
    short = EstimateCase(blocks=8, load_bytes=1 << 16, store_bytes=1 << 15)
    every = replace(short, mix=mix, order=alone, streaming_stores=0)
    leader = replace(LEADER, source="float f = __bfloat162float(v);")
    told = desk.notes_on(leader, profile_of(every))
    titles = [one.title.partition(": ")[2] for one in told]
    assert len(told) == MOST_NOTES and titles == [
        "Hide the launch between two kernels",
        "Partial sums as vectors",
    ]


def test_hidden_notes_are_not_quoted(desk: NoteFinder) -> None:
    hiding = replace(desk, settings=replace(desk.settings, without_sources=("notes",)))
    assert hiding.notes_on(LEADER, IDLE) == ()
    assert read_retrievals(desk.settings.runs / "run-1") == ()


def test_without_a_profile_or_a_log_nothing_is_quoted(desk: NoteFinder) -> None:
    assert desk.notes_on(LEADER, None) == ()
    (desk.settings.runs / "run-1" / FILE_NAME).unlink()
    assert desk.notes_on(LEADER, IDLE) == ()
