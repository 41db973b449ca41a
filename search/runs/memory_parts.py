"""What a run remembers with on this machine: the shared base, the compiler, the kernel's traits."""

from functools import partial

from kopt.config.settings import Settings
from kopt.kernels.problem_loader import find_kernel
from kopt.search.knowledge.base import dump_base, parse_base
from kopt.search.knowledge.records import Technique
from kopt.search.knowledge.states.applicability import KernelTraits, kernel_traits, why_not
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.models.model_source import ModelSource
from kopt.search.models.recording import record_knowledge
from kopt.search.records.run_state import RunSettings
from kopt.search.rounds.memory import MemoryParts
from kopt.search.rounds.sweep import ReadChoices
from kopt.search.store.run_reader import RunReader
from kopt.tools.cuda.toolchain import find_toolchain


def memory_of(
    run: RunSettings, settings: Settings, models: ModelSource, choices: ReadChoices
) -> MemoryParts:
    """Return what the run remembers with; nothing is opened before it is needed.

    A replay begins with the base that was recorded, and teaches nobody: what it does was learned.
    """
    problem, _ = find_kernel(run.kernel, settings.problems)
    return MemoryParts(
        op_type=problem.op_type,
        toolkit=lambda: find_toolchain(settings).release,
        traits=partial(_traits, run, settings),
        choices=choices,
        snapshot=partial(_snapshot, settings, models),
        share=None if models.replay is not None else partial(KnowledgeStore, settings.knowledge),
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
