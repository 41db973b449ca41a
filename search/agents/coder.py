"""Coder, combiner and fixer: one conversation each that ends with a complete candidate, or without.

The fixer mends a candidate of a branch that failed its check, or is slower than its parent.
"""

from kopt.config.search_settings import Role
from kopt.tools.facts.wording import plain

from .agent_context import AgentContext
from .candidate_writer import Author, obtain_candidate
from .knowledge_prompt import advice_words
from .prompt import fenced, render_prompt
from .round_prompt import (
    branch_lessons,
    evidence_of,
    findings_of,
    hypothesis_words,
    result_words,
    source_of,
)
from .views import BranchTask, FailedCandidate, GaveUp, WrittenCandidate

_MERGES = ("cross", "combine")


def write_candidate(context: AgentContext, task: BranchTask) -> WrittenCandidate | GaveUp:
    """Return the candidate of a branch, or why there is none.

    A merge of several parents is the combiner's, everything else the coder's.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    role: Role = "combiner" if task.lineage in _MERGES else "coder"
    is_minimal = context.briefing.settings.agent == "minimal"
    text = _minimal_text(task) if is_minimal else _text(task)
    opening = context.author_start(role, f"{task.id}/{role}", text)
    known = frozenset(parent.source.strip() for parent in task.parents)
    return obtain_candidate(context.client, Author(opening, context.tools.use, known))


def _text(task: BranchTask) -> str:
    advice = [] if task.advice is None else [task.advice]
    return render_prompt(
        "merge_candidates" if task.lineage in _MERGES else "write_candidate",
        {
            "hypothesis": hypothesis_words(task.hypothesis),
            "parents": _sources(task),
            "evidence": evidence_of(task.parents, task.documents),
            "memory": advice_words(advice, task.parents),
            "lessons": branch_lessons(task.lessons),
        },
    )


def _minimal_text(task: BranchTask) -> str:
    rows = "\n".join(f"{one.label}: {result_words(one)}" for one in task.parents)
    evidence = f"{fenced('results', rows)}\n\n{evidence_of(task.parents, task.documents)}"
    return render_prompt("write_minimal", {"parents": _sources(task), "evidence": evidence})


def _sources(task: BranchTask) -> str:
    return "\n\n".join(source_of(parent) for parent in task.parents)


def mend_candidate(
    context: AgentContext, task: BranchTask, failure: FailedCandidate, attempt: int
) -> WrittenCandidate | GaveUp:
    """Return the mended candidate, or why there is none.

    Args:
        context: Client, prompts and tools of the run.
        task: Of the branch.
        failure: What is to be mended.
        attempt: Which repair of the branch this is, from 1.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    regressed = failure.kind == "regressed"
    values = {
        "source": source_of(failure.member),
        "findings": _beside_parents(failure, task) if regressed else _findings(failure),
    }
    if context.briefing.settings.agent == "minimal":
        text = render_prompt("mend_minimal", values)
    else:
        values |= {
            "hypothesis": hypothesis_words(task.hypothesis),
            "lessons": branch_lessons(task.lessons),
        }
        text = render_prompt("mend_regressed" if regressed else "mend_failed", values)
    opening = context.author_start("fixer", f"{task.id}/fix{attempt}", text)
    known = frozenset(one.source.strip() for one in (failure.member, *task.parents))
    return obtain_candidate(context.client, Author(opening, context.tools.use, known))


def _findings(failure: FailedCandidate) -> str:
    """Return what the check found; without its document, its summary."""
    member = failure.member
    check = failure.documents.checks.get(member.seq)
    words = result_words(member) if check is None else findings_of(check, member.source)
    return fenced(f"what was found in {member.label}", words)


def _beside_parents(failure: FailedCandidate, task: BranchTask) -> str:
    members = (failure.member, *task.parents)
    rows = "\n".join(f"{one.label}: {plain(result_words(one))}" for one in members)
    return f"{fenced('results', rows)}\n\n{evidence_of(members, failure.documents)}"
