"""Coder and combiner: one conversation each that ends with a complete candidate, or without one."""

from kopt.config.search_settings import Role

from .candidate_words import evidence_of, source_of
from .conversation import Opening
from .means import Means
from .prompt_files import render_prompt
from .round_words import branch_lessons, hypothesis_words
from .view import BranchTask, GaveUp, Written
from .writing import Author, obtain_candidate, offered

_MERGES = ("cross", "combine")


def write_candidate(means: Means, task: BranchTask) -> Written | GaveUp:
    """Return the candidate of a branch, or why there is none.

    A merge of several parents is the combiner's, everything else the coder's.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the next call.
        Stopped: The run is being stopped.
    """
    merges = task.lineage in _MERGES
    role: Role = "combiner" if merges else "coder"
    text = render_prompt(
        "merge_candidates" if merges else "write_candidate",
        {
            "hypothesis": hypothesis_words(task.hypothesis),
            "parents": "\n\n".join(source_of(parent) for parent in task.parents),
            "evidence": evidence_of(task.parents, task.documents),
            "lessons": branch_lessons(task.lessons),
        },
    )
    opening = Opening(
        prefix=f"{task.id}/{role}",
        role=role,
        settings=means.briefing.settings.roles.of(role),
        system=means.briefing.system_blocks(role),
        text=text,
        tools=offered(means.tools.definitions),
    )
    known = frozenset(parent.source.strip() for parent in task.parents)
    return obtain_candidate(means.desk, Author(opening, means.tools.use, known))
