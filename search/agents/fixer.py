"""The fixer: mends a candidate of a branch that failed its check, or is slower than its parent."""

from kopt.tools.facts.wording import plain

from .candidate_words import evidence_of, findings_of, result_words, source_of
from .fencing import fenced
from .means import Means, author_opening
from .prompt_files import render_prompt
from .round_words import branch_lessons, hypothesis_words
from .view import BranchTask, Failure, GaveUp, Written
from .writing import Author, obtain_candidate


def mend_candidate(
    means: Means, task: BranchTask, failure: Failure, attempt: int
) -> Written | GaveUp:
    """Return the mended candidate, or why there is none.

    Args:
        means: What to work with.
        task: Of the branch.
        failure: What is to be mended.
        attempt: Which repair of the branch this is, from 1.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the next call.
        Stopped: The run is being stopped.
    """
    regressed = failure.kind == "regressed"
    values = {
        "source": source_of(failure.member),
        "findings": _beside_parents(failure, task) if regressed else _findings(failure),
    }
    if means.briefing.settings.agent == "minimal":
        text = render_prompt("mend_minimal", values)
    else:
        values |= {
            "hypothesis": hypothesis_words(task.hypothesis),
            "lessons": branch_lessons(task.lessons),
        }
        text = render_prompt("mend_regressed" if regressed else "mend_failed", values)
    opening = author_opening(means, "fixer", f"{task.id}/fix{attempt}", text)
    return obtain_candidate(means.desk, Author(opening, means.tools.use, _known(failure, task)))


def _known(failure: Failure, task: BranchTask) -> frozenset[str]:
    return frozenset(member.source.strip() for member in (failure.member, *task.parents))


def _findings(failure: Failure) -> str:
    """Return what the check found; without its document, its summary."""
    member = failure.member
    check = failure.documents.checks.get(member.seq)
    words = result_words(member) if check is None else findings_of(check, member.source)
    return fenced(f"what was found in {member.label}", words)


def _beside_parents(failure: Failure, task: BranchTask) -> str:
    members = (failure.member, *task.parents)
    rows = "\n".join(f"{one.label}: {plain(result_words(one))}" for one in members)
    return f"{fenced('results', rows)}\n\n{evidence_of(members, failure.documents)}"
