"""The context of a run's agents: client, tools, and the system prompts, the same in every call.

It is the beginning of each prompt, which a service reads once and then from its cache. Nothing in
it changes while the run lasts; what does, stands in the messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopt.config.gpu_specs import GpuSpec
from kopt.config.search_settings import ROLES, Role, SearchSettings
from kopt.kernels.candidate import Candidate
from kopt.kernels.candidate_guide import GUIDE
from kopt.kernels.families import FAMILY_CHANGES
from kopt.kernels.problem import Problem, Workload
from kopt.search.knowledge.records import Technique
from kopt.search.models.model import SystemBlock
from kopt.tools.facts.fitting import cleaned
from kopt.tools.facts.kernel_facts import author_facts, gpu_facts
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import plain

from .agent_tools import AgentTools
from .candidate_writer import offered
from .conversation import CallClient, ConversationStart
from .prompt import fenced, render_prompt

_WITH_TOOLS = ("coder", "fixer", "combiner")


@dataclass(frozen=True)
class BriefingFacts:
    """The kernel, GPU, start, documents and techniques that the prompts of a run describe."""

    problem: Problem
    workload: Workload
    gpu: GpuSpec
    """The target: its limits and peaks are the only ones that agents are told."""
    is_measured: bool
    """Whether candidates are timed on it; else they are estimated for it."""
    start: Candidate
    documents: str = ""
    """The result of `DocumentSearch.documents` when the run began."""
    techniques: tuple[Technique, ...] = ()
    """Techniques that memory knew when the run began; () without memory."""

    @property
    def kernel(self) -> str:
        """Kernel id."""
        return self.problem.kernel_id(self.workload)

    @property
    def dtypes(self) -> frozenset[str]:
        """Data types of the kernel's tensors."""
        return frozenset(tensor.dtype for tensor in self.problem.tensors)


@dataclass(frozen=True)
class Briefing:
    """The fixed part of every prompt of a run."""

    facts: BriefingFacts
    settings: SearchSettings
    common: str
    """The system prompt's first part, equal for all roles so that they share a model's cache."""
    tasks: Mapping[Role, str]

    def system_blocks(self, role: Role) -> tuple[SystemBlock, ...]:
        """Return the system prompt of `role`; both parts are marked for the cache."""
        return (
            SystemBlock(text=self.common, cache="1h"),
            SystemBlock(text=self.tasks[role], cache="1h"),
        )


def make_briefing(facts: BriefingFacts, settings: SearchSettings) -> Briefing:
    """Return what the agents of a run are told.

    Raises:
        SetupError: The prompts of this installation are damaged.
    """
    is_minimal = settings.agent == "minimal"
    documents = "" if is_minimal else facts.documents
    definition = author_facts(facts.problem, facts.workload, facts.gpu)
    common = render_prompt(
        "kernel",
        {
            "kernel": facts.kernel,
            "definition": render(cleaned(definition)),
            "gpu": render(gpu_facts(facts.gpu)),
            "speed": render_prompt("speed_gpu" if facts.is_measured else "speed_sim"),
            "guide": GUIDE.strip(),
            "families": "\n".join(f"- {name}: {text}" for name, text in FAMILY_CHANGES.items()),
            "techniques": _techniques(() if is_minimal else facts.techniques),
            "start": fenced("candidate 0, the starting kernel", facts.start.source),
            "documents": fenced("documents", documents) if documents else "None.",
        },
    )
    return Briefing(facts, settings, common, {role: _task(role, settings) for role in ROLES})


def _techniques(known: Sequence[Technique]) -> str:
    """Return a line for each; those that a model has named are its words and no one else's."""
    if not known:
        return "None are named in this run."
    lines = (f"{one.id} ({one.family}): {plain(one.description)}" for one in known)
    return fenced("techniques", "\n".join(lines))


def _task(role: Role, settings: SearchSettings) -> str:
    if settings.agent == "minimal" and role in _WITH_TOOLS:
        return render_prompt("minimal")
    calls = {"tool_calls": str(settings.roles.of(role).tool_calls)}
    return render_prompt(role, calls if role in _WITH_TOOLS else None)


@dataclass(frozen=True)
class AgentContext:
    """The client, the system prompts and the tools that every agent of a run works with."""

    client: CallClient
    briefing: Briefing
    tools: AgentTools

    def start(
        self, role: Role, prefix: str, text: str, schema: dict[str, Any]
    ) -> ConversationStart:
        """Return how a conversation begins that ends with an answer of the form `schema`.

        Args:
            role: Chooses model and system prompt.
            prefix: Beginning of the ids of its calls.
            text: The first message.
            schema: JSON schema of the answer.
        """
        return ConversationStart(
            prefix=prefix,
            role=role,
            settings=self.briefing.settings.asked(role),
            system=self.briefing.system_blocks(role),
            text=text,
            answer_schema=schema,
        )

    def author_start(self, role: Role, prefix: str, text: str) -> ConversationStart:
        """Return how the conversation of coder, combiner or fixer begins.

        A minimal agent has no tool but the one to hand its candidate in.
        """
        settings = self.briefing.settings
        is_minimal = settings.agent == "minimal"
        own = settings.asked(role)
        return ConversationStart(
            prefix=prefix,
            role=role,
            settings=own.model_copy(update={"tool_calls": 0}) if is_minimal else own,
            system=self.briefing.system_blocks(role),
            text=text,
            tools=offered(() if is_minimal else self.tools.definitions),
        )
