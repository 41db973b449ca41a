"""What a run is driven with on this machine: its evaluator, its proposer, its agents."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, candidate_of_text
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.evaluation.local_evaluator import LocalEvaluator
from kopt.search.knowledge.base import dump_base, parse_base
from kopt.search.knowledge.records import Technique
from kopt.search.knowledge.states.applicability import KernelTraits, kernel_traits, why_not
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.models.model_source import ModelSource
from kopt.search.models.recording import record_knowledge
from kopt.search.records.members import Proposal, Proposer
from kopt.search.records.run_state import RunSettings
from kopt.search.rounds.agents import Agents
from kopt.search.rounds.generated import GeneratingProposer
from kopt.search.rounds.main_thread import MainThread
from kopt.search.rounds.memory import MemoryParts
from kopt.search.rounds.run_context import Search, alone, no_profile
from kopt.search.rounds.sweep import ReadChoices, SweepProposer
from kopt.search.store.run_reader import RunReader
from kopt.search.store.store import RunStore
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.pytorch.generated import generated_kernels

from .profiling import Profiler
from .promoting import promote_member


@dataclass(frozen=True)
class RunPlace:
    """The machine that a run is driven on, and the models that write candidates."""

    site: EvaluationSite
    models: ModelSource = field(default_factory=ModelSource)

    @property
    def without_models(self) -> "RunPlace":
        """Return the same machine without a key or a recording."""
        site = replace(self.site, settings=replace(self.site.settings, claude=None))
        return RunPlace(site)


@contextmanager
def search_of(store: RunStore, place: RunPlace) -> Generator[Search]:
    """Yield what the run in `store` is driven with; leaving ends its evaluator."""
    run = store.reader.state().settings
    place = place if run.asks_models else place.without_models
    settings = place.site.settings
    problem, workload = find_kernel(run.kernel, settings.problems)
    start = Candidate(store.reader.source(run.start_sha), run.start_name)
    main_thread = MainThread()
    agents = _agents(store, place, main_thread)
    is_measured = place.site.timer is not None
    choices = _header_choices(problem, workload)
    is_told = run.search.profile == "detailed"
    evaluator = LocalEvaluator(place.site)
    try:
        yield Search(
            store=store,
            evaluator=evaluator,
            proposer=_proposer(problem, run.arch, choices, has_agents=agents is not None),
            start=_shaped(Case(problem, workload, start)),
            beside_start=alone
            if agents is None
            else partial(_beside_start, run, Case(problem, workload, start), choices),
            main_thread=main_thread,
            agents=agents,
            profile=Profiler(store, place.site).profile if is_told else no_profile,
            memory=memory_of(run, place, choices),
            promote=partial(promote_member, run=run, settings=settings, say=place.site.say)
            if is_measured
            else None,
        )
    finally:
        main_thread.close()
        evaluator.close()


def _proposer(problem: Problem, arch: str, choices: ReadChoices, has_agents: bool) -> Proposer:
    """Return what fills rounds without agents: kernels of its own where it knows the function."""
    sweep = SweepProposer(choices)
    kernels = None if has_agents else generated_kernels(problem, arch)
    return sweep if kernels is None else GeneratingProposer(kernels, sweep, choices)


def _beside_start(run: RunSettings, start: Case, choices: ReadChoices) -> tuple[Proposal, ...]:
    """Return the kernels that kopt writes for agents to go on from, where they begin as usual.

    A run from a start of the user's own has none, and trajectories begin at one program.
    """
    how = run.search
    if how.strategy != "beam" or how.agent != "full" or how.written_starts == 0:
        return ()
    if not start.is_reference:
        return ()
    kernels = generated_kernels(start.problem, run.arch)
    if kernels is None:
        return ()
    proposer = GeneratingProposer(kernels, SweepProposer(choices), choices)
    return proposer.starts(_shaped(start), how.written_starts)


def _agents(store: RunStore, place: RunPlace, main_thread: MainThread) -> Agents | None:
    settings = place.site.settings
    if not place.models.exists(settings):
        return None
    problem, workload = find_kernel(store.reader.state().settings.kernel, settings.problems)

    def shape(source: str, name: str) -> Proposal:
        return _shaped(Case(problem, workload, candidate_of_text(source, name)))

    # A tenth of a second of CPU, which only those pay who ask a model.
    from .model_roles import model_roles

    return Agents(roles=cache(partial(model_roles, store, place, main_thread)), shape=shape)


def _shaped(case: Case) -> Proposal:
    """Return a source as a proposal; a broken header is for its evaluation to report."""
    header, choices = case.header, case.choices
    return Proposal(
        source=case.candidate.source,
        source_name=case.candidate.name,
        tune=choices[0] if choices else {},
        family=header.family[0] if header else "other",
        proposer="start",
        note=(header.note or "") if header else "",
    )


def _header_choices(problem: Problem, workload: Workload) -> ReadChoices:
    def read(source: str) -> tuple[dict[str, int], ...]:
        return Case(problem, workload, Candidate(source)).choices

    return read


def memory_of(run: RunSettings, place: RunPlace, choices: ReadChoices) -> MemoryParts:
    """Return what the run remembers with; nothing is opened before it is needed.

    A replay begins with the base that was recorded, and writes nothing to the shared base.
    """
    settings, models = place.site.settings, place.models
    problem, _ = find_kernel(run.kernel, settings.problems)
    return MemoryParts(
        op_type=problem.op_type,
        toolkit=lambda: find_toolchain(settings).release,
        traits=partial(_traits, run, settings),
        choices=choices,
        snapshot=partial(_snapshot, settings, models),
        share=None if models.replay is not None else partial(KnowledgeStore, settings.knowledge),
        say=place.site.say,
    )


def catalogue_of(reader: RunReader, settings: Settings) -> tuple[Technique, ...]:
    """Return the techniques that a run's base knows for its kernel; () where it has none."""
    state = reader.state()
    if state.knowledge_sha is None or state.settings.search.memory == "off":
        return ()
    base = parse_base(reader.blob(state.knowledge_sha).decode())
    kernel = _traits(state.settings, settings, frozenset())
    return tuple(one for one in base.techniques.values() if why_not(one, kernel) is None)


def _traits(run: RunSettings, settings: Settings, given_up: frozenset[str]) -> KernelTraits:
    problem, workload = find_kernel(run.kernel, settings.problems)
    return kernel_traits(problem, workload, run.arch, given_up)


def _snapshot(settings: Settings, models: ModelSource) -> str:
    if models.recording is not None and models.recording.knowledge is not None:
        return models.recording.knowledge
    with KnowledgeStore(settings.knowledge) as shared:
        text = dump_base(shared.base())
    if models.record is not None:
        record_knowledge(models.record, text)
    return text
