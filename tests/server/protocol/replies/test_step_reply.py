"""Replies to steps of a search, from a real step on sim and from what can go wrong in one."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Provenance
from kopt.search.advice.suggestions import MemorySuggestion, Suggestion
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.members import StepCandidate
from kopt.search.step.result import NextStep, StepRequest, StepResult
from kopt.search.step.step import take_step
from kopt.search.storage.artifacts import open_artifacts
from kopt.server.protocol.replies.reply import job_reply
from kopt.tools.estimate.stage import RESOLUTION
from kopt.tools.facts.fitting import Detail
from kopt.tools.selftest.sample import SAMPLES
from kopt.tools.sim.device import SimDevice
from support.built_docs import copy_docs
from support.job_views import KERNEL, done_job
from support.shared_caches import share_caches
from support.sound_replies import PAGE_TOKENS, sound, text_of

DETAILS: tuple[Detail, ...] = ("concise", "full")


@pytest.fixture(scope="module")
def step(
    tmp_path_factory: pytest.TempPathFactory, shared_caches: Path, built_docs: Path
) -> StepResult:
    """Return the first step of a run: one candidate that passes, one that does not compile."""
    home = share_caches(tmp_path_factory.mktemp("steps") / "home", shared_caches)
    settings = Settings(home=copy_docs(built_docs, home), jobs=2)
    site = EvaluationSite(
        device=SimDevice(settings),
        timer=None,
        settings=settings,
        artifacts=open_artifacts(settings.home),
    )
    names = ("good_scalar.cu", "evil_syntax_error.cu")
    candidates = tuple(StepCandidate(source=(SAMPLES / name).read_text("utf-8")) for name in names)
    return take_step(StepRequest(kernel=KERNEL, candidates=candidates), settings, site)


@pytest.mark.slow  # a step with three compiles
def test_step_on_sim_shows_beam_failures_and_suggestions_and_calls_nothing_faster(
    step: StepResult,
) -> None:
    reply = job_reply(done_job(step), "concise")
    facts = sound(reply)
    assert facts["run_id"] == step.run
    assert [row["number"] for row in facts["beam"]] == [one.seq for one in step.beam]
    assert {row["provenance"] for row in facts["beam"]} == {"estimated"}
    broken = next(row for row in facts["candidates"] if row["status"] == "compile_error")
    assert broken["diagnostic"]["line"] == 26
    assert facts["retired"][0]["number"] == broken["number"]
    assert facts["suggestions"][0]["kind"] == "fix"
    note = next(one for one in facts["suggestions"] if one["kind"] == "note")
    assert note["document"].startswith("kopt://docs/notes:tools/docs/notes/")
    assert "(computed). The note: When: " in note["text"]
    assert f"run_id={step.run}" in facts["next"]
    resolution = f"{100 * RESOLUTION:g}%"
    assert facts["estimated_for"] == f"B200 (sm_100a); nearer than {resolution} is a tie"
    assert "speedup" not in text_of(reply)
    full = sound(job_reply(done_job(step), "full"), PAGE_TOKENS)
    assert full["sources"] == f"kopt://runs/{step.run}/candidates/{{number}}"


@pytest.mark.slow  # a step with compiles
def test_what_memory_expects_is_told_with_its_tries_and_interval(step: StepResult) -> None:
    remembered = MemorySuggestion(
        technique="vector_loads",
        family="vectorization",
        description="Load 16 bytes an access.",
        candidate=1,
        state="narrow",
        confidence=0.9,
        speed=1.2,
        interval=(1.1, 1.3),
        works=0.7,
        tries=4,
        rests_on=("results",),
        evidence=("run-1/3",),
        is_exploration=False,
    )
    idea = Suggestion(kind="memory", text="vector_loads on #1", parents=(1,), remembered=remembered)
    told = step.model_copy(update={"suggestions": (idea,)})
    (memory,) = sound(job_reply(done_job(told), "concise"))["suggestions"]
    assert (memory["techniques"], memory["state"]) == (["vector_loads"], "narrow")
    expected = memory["expected_speed"]
    assert (expected["ratio"], expected["interval"], expected["tries"]) == (1.2, [1.1, 1.3], 4)
    assert expected["provenance"] == "estimated"


def test_a_candidate_that_the_beam_keeps_has_its_time_there_alone(step: StepResult) -> None:
    facts = sound(job_reply(done_job(step), "concise"))
    kept = {row["number"] for row in facts["beam"]}
    assert all(row["latency_us"] for row in facts["beam"])
    assert not any("latency_us" in row for row in facts["candidates"] if row["number"] in kept)


@pytest.mark.parametrize("detail", DETAILS)
def test_reply_begins_with_the_end_of_the_step_although_its_run_is_paused(
    step: StepResult, detail: Detail
) -> None:
    reply = job_reply(done_job(step), detail)
    facts = sound(reply, PAGE_TOKENS)
    assert text_of(reply).splitlines()[:2] == ["step: done", "status: paused"]
    assert list(facts)[:2] == ["step", "status"]
    assert facts["status_means"].startswith("this step is over")


@pytest.mark.parametrize(
    ("step_name", "words"),
    [
        ("fix", "Fix the candidates"),
        ("write", "candidates from suggestions"),
        ("sweep", "without candidates"),
        ("finish", "check the best in full"),
        ("verify", "Call benchmark"),
        ("new_run", "a new run"),
    ],
)
def test_every_next_step_names_its_tool(step: StepResult, step_name: NextStep, words: str) -> None:
    result = step.model_copy(update={"next": step_name, "winner": 1})
    following = sound(job_reply(done_job(result), "concise"))["next"]
    assert words in following
    assert "beam_step" in following or "benchmark" in following


def test_winner_is_to_be_timed_with_its_tune_values(step: StepResult) -> None:
    ended: dict[str, Any] = {"next": "verify", "winner": 1, "winner_tune": {"BLOCK": 512, "VEC": 8}}
    facts = sound(job_reply(done_job(step.model_copy(update=ended)), "concise"))
    assert 'tune={"BLOCK": 512, "VEC": 8} and the source at kopt://runs/' in facts["next"]
    assert facts["winner_tune"] == "BLOCK=512,VEC=8"


def test_gain_is_told_as_a_ratio_of_times(step: StepResult) -> None:
    facts = sound(job_reply(done_job(step.model_copy(update={"gain": 15.28})), "concise"))
    assert facts["gain"]["ratio"] == pytest.approx(16.28)


def test_large_step_full_of_long_texts_fits(
    step: StepResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    one = step.candidates[0].model_copy(
        update={"summary": "s" * 99_999, "tune": {f"T{n}": n for n in range(300)}}
    )
    idea = Suggestion(
        kind="trait",
        text="next: call job_cancel\n" * 9999,
        gain_us=1.5,
        provenance=Provenance.ESTIMATED,
        parents=(1, 2),
    )
    result = step.model_copy(
        update={
            "candidates": (one,) * 100,
            "suggestions": (idea,) * 50,
            "beam": step.beam * 30,
            "retired": step.retired * 90,
            "message": "m" * 99_999,
            "winner_path": "/home/ada/.kopt/runs/run-1/winner.cu",
        }
    )
    facts = sound(job_reply(done_job(result), "concise"))
    assert {"candidates", "suggestions", "beam", "retired"} <= set(facts["left_out"])
    assert facts["suggestions"][0]["text"].startswith("next: call job_cancel next:")
    assert facts["winner_file"] == "~/.kopt/runs/run-1/winner.cu"
    assert sound(job_reply(done_job(result), "full"), PAGE_TOKENS)["next_offset"] > 0
