"""Kernels that kopt writes itself: what is proposed from which population, and in which runs."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from kopt.config.search_settings import load_search_settings
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.knowledge.seed_base import load_seed
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
from kopt.tools.pytorch.generated import DEFINITION_FILE, generated_kernels
from kopt.tools.pytorch.graph import FILE_NAME
from kopt.tools.pytorch.lowering.row_schedule import TECHNIQUES
from kopt.tools.sim.device import SimDevice
from support.populations import member, passed
from support.recorded_evaluator import RecordedEvaluator
from support.reduced_problems import SHIPPED, write_reduced
from support.scripted_runs import new_store
from support.scripted_runs import search as sweeping
from support.scripted_steps import no_profile
from support.technique_world import PROFILE, World, remembering, world_search

KERNEL = "fused_add_rmsnorm_b8xh4096"
PROBLEM, WORKLOAD = find_kernel(KERNEL, None)


@cache
def _choices(source: str) -> Sequence[dict[str, int]]:
    return Case(PROBLEM, WORKLOAD, Candidate(source)).choices


@cache
def _proposer() -> GeneratingProposer:
    kernels = generated_kernels(PROBLEM, "sm_90a")
    assert kernels is not None
    return GeneratingProposer(kernels, SweepProposer(_choices), _choices)


def _population(members: Sequence[Member], width: int = 4) -> Population:
    ranked = sorted((one for one in members if one.passed), key=lambda one: one.latency_us or 0.0)
    last = max(one.round for one in members)
    return Population(last + 1, 0, tuple(members), tuple(ranked[:width]))


def _joined(
    members: Sequence[Member], proposals: Sequence[Proposal], cost: Callable[[Proposal], float]
) -> list[Member]:
    """Return the population after the proposals were evaluated."""
    number = max(one.round for one in members) + 1
    return [
        *members,
        *(
            member(
                len(members) + place,
                passed(cost(one)),
                round=number,
                source=one.source,
                source_sha=sha256(one.source.encode()).hexdigest(),
                source_name=one.source_name,
                tune=one.tune,
                parents=one.parents,
                proposer=one.proposer,
                techniques=one.techniques,
            )
            for place, one in enumerate(proposals)
        ),
    ]


def _cost(proposal: Proposal) -> float:
    """Return a time that half of the techniques shorten, and the largest ROW, too."""
    name = proposal.source_name
    gained = sum(one in name for one in ("cluster_sums", "dependent_launch", "fast_reciprocal"))
    lost = sum(one in name for one in ("streaming_access", "occupancy_bound"))
    return 10.0 - gained + lost + 64 / proposal.tune.get("ROW", 64)


def _start() -> Member:
    return member(0, passed(20.0), proposer="start")


def _first(count: int = 24) -> tuple[Proposal, ...]:
    return _proposer().propose(_population([_start()]), count)


def _applied(proposal: Proposal) -> frozenset[str]:
    return frozenset(proposal.source_name.removesuffix(".cu").split("-")[1:])


def test_first_round_has_all_techniques_none_and_each_alone() -> None:
    every = _proposer().kernels.techniques
    sets = [_applied(one) for one in _first()]
    assert sets[0] == set(every)
    assert sets[1] == set(every) - {"cluster_sums"}
    assert sets[2] == set()
    assert sets[3:] == [{one} for one in every]
    assert {one.parents for one in _first()} == {(0,)}


def test_a_small_first_round_begins_with_the_most_promising() -> None:
    assert _first(3) == _first()[:3]


def test_every_name_tells_of_what_its_kernel_is_made() -> None:
    proposals = list(_first())
    members = _joined([_start()], proposals, _cost)
    proposals += [
        one for one in _proposer().propose(_population(members), 12) if one.proposer == "generated"
    ]
    for one in proposals:
        assert _proposer().kernels.source(_applied(one)) == one.source
        assert one.tune in _choices(one.source)


def test_no_technique_is_credited_beside_a_kernel_of_another_author() -> None:
    assert {one.techniques for one in _first() if _applied(one)} == {()}


def test_each_technique_is_credited_beside_the_plain_kernel_that_it_is_added_to() -> None:
    plain = replace(_start(), source=_proposer().kernels.source(()))
    alone = [
        one for one in _proposer().propose(_population([plain]), 24) if len(_applied(one)) == 1
    ]
    assert alone and all(frozenset(one.techniques) == _applied(one) for one in alone)


def test_later_rounds_change_one_technique_and_sweep_by_halves() -> None:
    members = _joined([_start()], _first(), _cost)
    proposals = _proposer().propose(_population(members), 8)
    assert [one.proposer for one in proposals] == ["generated"] * 4 + ["sweep"] * 4
    for one in proposals[:4]:
        parent = members[one.parents[0]]
        before = frozenset(parent.source_name.removesuffix(".cu").split("-")[1:])
        assert len(_applied(one) ^ before) == 1
        assert frozenset(one.techniques) == _applied(one) - before


def test_a_kernel_takes_over_the_tune_values_of_the_fastest_of_its_parent_s_source() -> None:
    (first, *_) = _first()
    slow, fast = _choices(first.source)[0], _choices(first.source)[-1]
    assert slow["ROW"] != fast["ROW"]
    proposals = [first.model_copy(update={"tune": one}) for one in (slow, fast)]
    times = iter((5.0, 4.0))
    members = _joined([_start()], proposals, lambda _: next(times))
    steps = _proposer().propose(_population(members), 8)[:4]
    for one in steps:
        assert one.parents == (2,)
        best = max(
            sum(fast.get(name) == value for name, value in choice.items())
            for choice in _choices(one.source)
        )
        assert sum(fast.get(name) == value for name, value in one.tune.items()) == best


def test_the_same_population_gives_the_same_proposals() -> None:
    members = _joined([_start()], _first(), _cost)
    one, two = (_proposer().propose(_population(members), 9) for _ in "ab")
    assert one == two and len(one) == 9


def test_nothing_is_proposed_twice_in_ten_rounds() -> None:
    members = [_start()]
    for _ in range(10):
        members = _joined(members, _proposer().propose(_population(members), 12), _cost)
    programs = [(one.source, tuple(sorted(one.tune.items()))) for one in members]
    assert len(set(programs)) == len(programs) > 60
    written = [one.source_name for one in members if one.proposer == "generated"]
    assert len(set(written)) == len(written)


def test_what_each_technique_gains_is_found_from_a_few_rounds() -> None:
    members = [_start()]
    for _ in range(5):
        members = _joined(members, _proposer().propose(_population(members), 12), _cost)
    best = min(members, key=lambda one: one.latency_us or 0.0)
    made_of = set(best.source_name.removesuffix(".cu").split("-"))
    assert made_of >= {"generated", "cluster_sums", "dependent_launch", "fast_reciprocal"}
    assert made_of.isdisjoint({"streaming_access", "occupancy_bound"})


def test_techniques_are_those_of_the_knowledge_base_and_of_its_families() -> None:
    known = load_seed().techniques
    assert {name: known[name].family for name in TECHNIQUES} == {
        name: one.family for name, one in TECHNIQUES.items()
    }


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


def _run(kernel: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> tuple[Member, ...]:
    """Return the members of a run without a model whose every candidate passes."""

    def evaluator(*_: object) -> RecordedEvaluator:
        return RecordedEvaluator(_longer_is_faster)

    monkeypatch.setattr(parts, "LocalEvaluator", evaluator)
    monkeypatch.setattr(Profiler, "profile", no_profile)
    with begin_run(RunRequest(kernel=kernel), settings) as store:
        site = EvaluationSite(SimDevice(settings), None, settings, store.artifacts)
        assert drive_run(store, RunPlace(site)).status == "done"
        return store.reader.members()


@pytest.mark.parametrize("graph", [DEFINITION_FILE, FILE_NAME])
def test_a_run_of_a_known_function_has_generated_kernels(
    graph: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = _run(_problem(settings, graph), settings, monkeypatch)
    assert {one.proposer for one in members} == {"start", "generated", "sweep"}
    assert {one.proposer for one in members if one.round == 1} == {"generated"}


def test_a_run_of_an_unknown_function_is_a_sweep(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = _run(_problem(settings, None), settings, monkeypatch)
    assert {one.proposer for one in members} == {"start", "sweep"}


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
