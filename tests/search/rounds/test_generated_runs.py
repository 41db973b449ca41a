"""Runs on a sweep or on kernels that kopt writes, and which candidates of them are profiled."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kopt.config.search_settings import load_search_settings
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.models.model_source import ModelSource
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Member, Population, Proposal
from kopt.search.rounds.advance import run_search
from kopt.search.rounds.generated import GeneratingProposer
from kopt.search.rounds.memory import STATE
from kopt.search.rounds.sweep import SweepProposer
from kopt.search.runs import parts
from kopt.search.runs.parts import RunPlace, search_of
from kopt.search.runs.profiling import Profiler
from kopt.search.runs.run import RunRequest, begin_run, drive_run
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.taught import StatedProgram
from kopt.tools.pytorch.generated import DEFINITION_FILE
from kopt.tools.pytorch.graph import FILE_NAME
from kopt.tools.sim.device import SimDevice
from support.populations import passed
from support.recorded_evaluator import RecordedEvaluator
from support.reduced_problems import SHIPPED, write_reduced
from support.scripted_runs import new_store
from support.scripted_runs import search as sweeping
from support.scripted_steps import no_profile
from support.technique_world import PROFILE, World, remembering, world_search

pytestmark = pytest.mark.slow  # whole runs

KERNEL = "fused_add_rmsnorm_b8xh4096"
PROBLEM, _ = find_kernel(KERNEL, None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a home and problems of this test."""
    (tmp_path / "problems").mkdir()
    return Settings(tmp_path / "home", problems=tmp_path / "problems")


def _problem(settings: Settings, graph: str | None) -> str:
    """Return the kernel of a user's problem whose graph is in the file `graph`, if any is."""
    assert settings.problems is not None
    kernel = write_reduced(KERNEL, settings.problems)
    if graph is not None:
        (folder,) = settings.problems.iterdir()
        shutil.copy(SHIPPED / PROBLEM.name / DEFINITION_FILE, folder / graph)
    return kernel


def _longer_is_faster(job: EvaluationJob) -> Evaluation:
    return passed(1e5 / len(job.source) + sum(job.tune.values()) / 1e4)


class _Run(NamedTuple):
    members: tuple[Member, ...]
    kinds: tuple[str, ...]


def _run(kernel: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> _Run:
    """Return what is in a run without a model whose every candidate passes."""

    def evaluator(*_: object) -> RecordedEvaluator:
        return RecordedEvaluator(_longer_is_faster)

    monkeypatch.setattr(parts, "LocalEvaluator", evaluator)
    monkeypatch.setattr(Profiler, "profile", no_profile)
    with begin_run(RunRequest(kernel=kernel), settings) as store:
        site = EvaluationSite(SimDevice(settings), None, settings, store.artifacts)
        assert drive_run(store, RunPlace(site)).status == "done"
        kinds = tuple(row.kind for row in store.reader.rounds())
        return _Run(store.reader.members(), kinds)


@pytest.mark.parametrize("graph", [DEFINITION_FILE, FILE_NAME])
def test_a_run_of_a_known_function_has_generated_kernels(
    graph: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(_problem(settings, graph), settings, monkeypatch)
    assert {one.proposer for one in run.members} == {"start", "generated", "sweep"}
    assert {one.proposer for one in run.members if one.round == 1} == {"generated"}
    assert run.kinds[:2] == ("start", "generated")


def test_a_run_of_an_unknown_function_is_a_sweep(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(_problem(settings, None), settings, monkeypatch)
    assert {one.proposer for one in run.members} == {"start", "sweep"}
    assert set(run.kinds) == {"start", "sweep"}


def test_agents_rounds_are_filled_up_by_the_sweep(settings: Settings, tmp_path: Path) -> None:
    kernel = _problem(settings, DEFINITION_FILE)
    recording = ModelSource(replay=tmp_path / "recording.jsonl")
    with begin_run(RunRequest(kernel=kernel), settings) as store:
        site = EvaluationSite(SimDevice(settings), None, settings, open_artifacts(settings.home))
        with search_of(store, RunPlace(site, recording)) as with_agents:
            assert isinstance(with_agents.proposer, SweepProposer)
        with search_of(store, RunPlace(site)) as without:
            assert isinstance(without.proposer, GeneratingProposer)


class _Improving:
    """Adds one technique to the last candidate in each round, twice."""

    def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
        """Return the next candidate."""
        last = population.members[-1]
        if population.round > 2 or count < 1:
            return ()
        source = f"{last.source}// {population.round}\n"
        return (
            Proposal(
                source=source,
                source_name="generated.cu",
                family="vectorization",
                proposer="generated",
                parents=(last.seq,),
                techniques=("vector_loads",),
            ),
        )


def test_only_what_something_is_made_of_is_profiled(tmp_path: Path) -> None:
    profiled: list[int] = []

    def profile(one: Member) -> ProfileResult:
        profiled.append(one.seq)
        return PROFILE

    def answer(job: EvaluationJob) -> Evaluation:
        return passed(10.0 / (1 + job.source.count("// ")), job.source)

    with new_store(tmp_path) as store:
        found = replace(
            sweeping(store, answer),
            proposer=_Improving(),
            profile=profile,
            memory=remembering(tmp_path),
        )
        run_search(found)
        assert [one.seq for one in store.reader.members()] == [0, 1, 2]
    assert profiled == [0, 1]  # each was faster than its parent; nothing is made of the last


def test_what_agents_made_faster_is_profiled_even_if_nothing_is_made_of_it(tmp_path: Path) -> None:
    world = World(
        {"vector_loads": 3.0, "warp_shuffles": 1.5}, planned=("vector_loads", "warp_shuffles")
    )
    with new_store(tmp_path, search=load_search_settings().with_beam(2, 2)) as store:
        run_search(world_search(store, world))
        members = store.reader.members()
        parents = {seq for one in members for seq in one.parents}
        ends = [one for one in members if one.round == 2 and one.seq not in parents]
        found = [store.reader.document(one, STATE, StatedProgram) for one in ends]
    assert ends and None not in found
