"""What memory suggests for the leader of a run that a caller drives, and what it learns of it."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.profile_result import ProfileResult
from kopt.search.advice.suggestions import MemorySuggestion
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.runs.profiling import LeaderProfile, Profiler
from kopt.search.step import step
from kopt.search.step.result import StepResult
from support.estimate_cases import EstimateCase
from support.made_profiles import profile_of
from support.scripted_steps import KERNEL, Steps, candidate


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return steps whose programs all have the same profile."""
    made = Steps(tmp_path / "home")
    made.install(monkeypatch.setattr)
    found = profile_of(EstimateCase())

    def profile(*_: object) -> ProfileResult:
        return found

    def profile_leader(*_: object) -> LeaderProfile:
        return LeaderProfile(found, frozenset({"bfloat16"}))

    monkeypatch.setattr(Profiler, "profile", profile)
    monkeypatch.setattr(step, "profile_leader", profile_leader)
    return made


def _remembered(result: StepResult) -> list[MemorySuggestion]:
    return [one.remembered for one in result.suggestions if one.remembered is not None]


def _samples(settings: Settings) -> tuple[Sample, ...]:
    with KnowledgeStore(settings.knowledge) as store:
        return store.samples()


def test_what_nobody_has_tried_and_may_as_well_cost_time_is_not_suggested(steps: Steps) -> None:
    assert _remembered(steps.take(kernel=KERNEL)) == []


def test_technique_of_a_caller_is_learned_with_what_it_came_to(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    faster = candidate(4.0, parents=(0,), techniques=("vector_loads",))
    run = steps.take(faster).run
    (own,) = [one for one in _samples(steps.settings) if one.techniques == ("vector_loads",)]
    assert (own.run, own.outcome, own.provenance) == (run, "gained", "estimated")
    assert own.id.startswith(f"{run}/") and own.measured is not None and own.measured > 0.5


def test_what_helped_one_run_is_suggested_to_the_next_with_the_sample_behind_it(
    steps: Steps,
) -> None:
    steps.take(kernel=KERNEL)
    tried = "batched_loads"
    run = steps.take(candidate(2.0, parents=(0,), techniques=(tried,))).run
    again = [one for one in _remembered(steps.take(kernel=KERNEL)) if one.technique == tried]
    assert len(again) == 1
    assert again[0].tries == 1 and again[0].speed > 1.0
    assert again[0].evidence[0].startswith(f"{run}/")


def test_caller_that_names_no_technique_teaches_nothing_of_any(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    steps.take(candidate(4.0, parents=(0,)))
    assert {one.techniques for one in _samples(steps.settings)} <= {("tune_constants",)}
