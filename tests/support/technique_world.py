"""A world in which every technique gains what a table says: agents without prompts that apply one.

A source is one line, as in `scripted_agents`: its second word is its time. Applying techniques to a
program divides the time by what they gain, so that a test knows what there is to be learned.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

from kopt.kernels.profile_result import ProfileResult
from kopt.search.agents.plans import Plan
from kopt.search.agents.views import BranchTask, GaveUp, RoundView, WrittenCandidate
from kopt.search.knowledge.base import dump_base
from kopt.search.knowledge.states.applicability import KernelTraits
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.models.model import Model
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Member
from kopt.search.rounds.agents import Agents
from kopt.search.rounds.memory import MemoryParts
from kopt.search.rounds.run_context import Search
from kopt.search.store.store import RunStore
from support.estimate_cases import EstimateCase
from support.made_profiles import profile_of
from support.scripted_agents import (
    ScriptedRoles,
    agents_search,
    evaluate_line,
    scripted_model,
    shape,
)

KERNEL = KernelTraits(
    text="",
    dtypes=frozenset({"bfloat16"}),
    layouts=frozenset({"row_major"}),
    row_elements=4096,
    rows=128,
    has_shared_operand=False,
    flop_per_byte=1.0,
    compute_capability=(9, 0),
    sm_count=132,
)
WRONG = 0.0
"""Gain of a technique whose candidates compute something else."""
PROFILE = profile_of(EstimateCase())


@dataclass(frozen=True)
class World:
    """What techniques gain: speed after / speed before; 1.0 for those that are not named."""

    gains: Mapping[str, float] = field(default_factory=dict[str, float])
    planned: tuple[str, ...] = ()
    """Techniques that the planner of a beam names, one a slot by turns."""


@dataclass(frozen=True)
class WorldRoles(ScriptedRoles):
    """Applies the techniques of a hypothesis as the world has it."""

    world: World = field(default_factory=World)
    views: list[RoundView] = field(default_factory=list[RoundView])
    tasks: list[BranchTask] = field(default_factory=list[BranchTask])

    def plan(self, view: RoundView) -> Plan:
        """Return a plan whose hypotheses name the techniques of the world by turns."""
        self.views.append(view)
        plan, named = super().plan(view), self.world.planned
        hypotheses = tuple(
            one.model_copy(update={"techniques": named[place % len(named) :][:1] if named else ()})
            for place, one in enumerate(plan.hypotheses)
        )
        return plan.model_copy(update={"hypotheses": hypotheses, "reserve": ()})

    def write(self, task: BranchTask) -> WrittenCandidate | GaveUp:
        """Return the parent's line with another time."""
        self.tasks.append(task)
        self._ask(f"{task.id}/coder/0")
        techniques = task.hypothesis.techniques
        factor = prod(self.world.gains.get(name, 1.0) for name in techniques)
        before = float(task.parents[0].source.split()[1])
        ending = "wrong" if factor == WRONG else f"{before / factor:.6f}"
        return WrittenCandidate(
            f"{task.hypothesis.family} {ending} // {task.id}", " ".join(techniques)
        )


def remembering(home: Path) -> MemoryParts:
    """Return what a run below `home` remembers with: the shared base of `home`."""
    folder = home / "knowledge"

    def snapshot() -> str:
        with KnowledgeStore(folder) as shared:
            return dump_base(shared.base())

    return MemoryParts(
        op_type="made_up",
        toolkit=lambda: "13.2",
        traits=lambda given_up: replace(KERNEL, retired=given_up),
        choices=lambda _: (),
        snapshot=snapshot,
        share=lambda: KnowledgeStore(folder),
    )


def world_search(
    store: RunStore,
    world: World,
    model: Model | None = None,
    evaluate: Callable[[EvaluationJob], Evaluation] = evaluate_line,
) -> Search:
    """Return a search of the run in `store` in `world`, with the shared base of its home."""
    asked = model or scripted_model(lambda call: f"algebra 9.0 // {call}")
    parts = agents_search(store, asked, evaluate)
    assert parts.agents is not None
    scripted = parts.agents.roles()
    assert isinstance(scripted, ScriptedRoles)
    roles = WorldRoles(scripted.desk, world)

    def profiled(_: Member) -> ProfileResult:
        return PROFILE

    return replace(
        parts,
        agents=Agents(roles=lambda: roles, shape=shape),
        profile=profiled,
        memory=remembering(store.folder.parents[1]),
    )


def roles_of(search: Search) -> WorldRoles:
    """Return the agents of a search, who remember what they were shown."""
    assert search.agents is not None
    roles = search.agents.roles()
    assert isinstance(roles, WorldRoles)
    return roles
