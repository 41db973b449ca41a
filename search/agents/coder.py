"""Coder and combiner: one conversation each that ends with a complete candidate, or without one."""

from kopt.config.search_settings import Role

from .candidate_words import evidence_of, result_words, source_of
from .fencing import fenced
from .knowledge_words import advice_words
from .means import Means, author_opening
from .prompt_files import render_prompt
from .round_words import branch_lessons, hypothesis_words
from .view import BranchTask, GaveUp, Written
from .writing import Author, obtain_candidate

_MERGES = ("cross", "combine")


def write_candidate(means: Means, task: BranchTask) -> Written | GaveUp:
    """Return the candidate of a branch, or why there is none.

    A merge of several parents is the combiner's, everything else the coder's.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the next call.
        Stopped: The run is being stopped.
    """
    role: Role = "combiner" if task.lineage in _MERGES else "coder"
    is_minimal = means.briefing.settings.agent == "minimal"
    text = _minimal_text(task) if is_minimal else _text(task)
    opening = author_opening(means, role, f"{task.id}/{role}", text)
    known = frozenset(parent.source.strip() for parent in task.parents)
    return obtain_candidate(means.desk, Author(opening, means.tools.use, known))


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
