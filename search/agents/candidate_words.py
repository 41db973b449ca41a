"""Candidates as an agent reads them: what became of each, in tables and beside their sources.

They are named by label everywhere: the numbers of a run depend on which branch came first. What a
candidate says of itself, and what compilers say of it, is quoted.
"""

from collections.abc import Iterable, Sequence

from kopt.kernels.check_result import CheckResult
from kopt.search.records.members import Member
from kopt.search.selection.ranking import speed_words
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.findings import with_excerpts
from kopt.tools.facts.fitting import Facts, cleaned, fitted
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted, plain_beginning

from .fencing import fenced
from .plans import Hypothesis
from .view import Documents, RoundView

MOST_ROWS = 60
"""Candidates of a table: the beam, then the latest."""
_NOTE_CHARACTERS = 240
_NONE = "None yet."


def candidate_table(view: RoundView, marked_round: int | None = None) -> str:
    """Return a row for each candidate, in the order in which they were planned."""
    ordered = sorted(view.members, key=lambda one: one.order)
    shown = {one.seq for one in ordered[-MOST_ROWS:]} | set(view.beam)
    rows = [_row(one, view, marked_round) for one in ordered if one.seq in shown]
    facts: Facts = {"candidates": rows}
    if len(rows) < len(ordered):
        facts["left_out"] = f"{len(ordered) - len(rows)} older ones that are not in the beam"
    return fenced("candidates", render(cleaned(facts))) if rows else _NONE


def labels(seqs: Iterable[int], members: Sequence[Member]) -> str:
    """Return the names of candidates by their numbers."""
    by_seq = {member.seq: member.label for member in members}
    return ", ".join(by_seq[seq] for seq in seqs if seq in by_seq)


def source_of(member: Member) -> str:
    """Return the source of a candidate; that of the starting kernel is in the system prompt."""
    if member.seq == 0:
        return "Candidate 0: the starting kernel, whose source you were given above."
    tuned = "".join(f" -D{name}={value}" for name, value in sorted(member.tune.items()))
    choice = f"; evaluated with{tuned}" if tuned else ""
    return fenced(f"source of candidate {member.label}{choice}", member.source)


def result_words(member: Member) -> str:
    """Return in a line how a candidate ended: its speed, or what is wrong with it."""
    quick = member.quick
    if quick is None:
        return "not evaluated"
    if not member.passed:
        return f"{quick.status.value}: {plain_beginning(quick.summary, _NOTE_CHARACTERS)}"
    timing = member.timing
    interval = None if timing is None else timing.speedup_interval
    between = "" if interval is None else f", 95 % interval {interval[0]:.3f} to {interval[1]:.3f}"
    refuted = ", refuted by a later check" if member.is_refuted else ""
    return f"passed, {speed_words(member)}{between}{refuted}"


def evidence_of(members: Sequence[Member], documents: Documents) -> str:
    """Return the profile of each of `members` that has one, and the check of each that failed."""
    parts: list[str] = []
    for member in members:
        profile = documents.profiles.get(member.seq)
        if profile is not None:
            shown = document_words(profile_facts(profile, "concise"))
            parts.append(fenced(f"profile of {member.label}", shown))
        check = documents.checks.get(member.seq)
        if check is not None and not member.passed:
            parts.append(fenced(f"check of {member.label}", findings_of(check, member.source)))
    return "\n\n".join(parts) or "No profile was made."


def findings_of(check: CheckResult, source: str) -> str:
    """Return what a check found wrong, with the lines of `source` that it speaks of."""
    document = with_excerpts(check.model_dump(mode="json", by_alias=True), source)
    return document_words(check_facts(CheckResult.model_validate(document), "concise"))


def document_words(facts: Facts) -> str:
    """Return what a profile or a check says, without the names of its candidate, as far as fits."""
    kept = {name: value for name, value in facts.items() if name not in ("kernel", "candidate")}
    return render(fitted(kept, "the rest is left out"))


def _row(member: Member, view: RoundView, marked_round: int | None) -> Facts:
    parents = [one.label for one in view.members if one.seq in member.parents]
    registers = None if member.quick is None else member.quick.registers
    hypothesis = view.hypotheses.get(member.branch or "")
    facts: Facts = {
        "name": member.label,
        "round": member.round,
        "beam_place": view.beam.index(member.seq) + 1 if member.seq in view.beam else None,
        "this_round": True if member.round == marked_round else None,
        "family": member.family,
        "from": f"{member.lineage} of {' and '.join(parents)}" if parents else "start",
        "hypothesis": "" if hypothesis is None else Quoted(_expectation(hypothesis)),
        "tune": ", ".join(f"{name}={value}" for name, value in sorted(member.tune.items())),
        "result": Quoted(result_words(member)),
        "registers": None if registers is None else int(registers),
        "note": Quoted(plain_beginning(member.note, _NOTE_CHARACTERS)),
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _expectation(hypothesis: Hypothesis) -> str:
    name = plain_beginning(hypothesis.name, _NOTE_CHARACTERS)
    return f"{name}, expected {hypothesis.expected_gain:+.0%}"
