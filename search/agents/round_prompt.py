"""Candidates and rounds as prompts tell them: tables, results, evidence, lessons, hypotheses.

Candidates are named by label everywhere: the numbers of a run depend on which branch came first.
What a candidate says of itself, and what compilers say of it, is quoted.
"""

from collections.abc import Iterable, Iterator, Sequence

from kopt.kernels.check_result import CheckResult
from kopt.search.advice.suggestions import Suggestion, SuggestionInputs, make_suggestions
from kopt.search.knowledge.records import switch_of
from kopt.search.records.members import Member
from kopt.search.selection.ranking import speed_words
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.document_words import document_words
from kopt.tools.facts.findings import with_excerpts
from kopt.tools.facts.fitting import Facts, cleaned
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted, plain, plain_beginning

from .agent_context import Briefing
from .plans import Hypothesis, Reflection
from .prompt import fenced
from .views import Documents, RoundView

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


MOST_LESSONS = 30
"""Lessons of single candidates that are shown, the latest."""
MOST_DIGESTS = 6
"""Digests of rounds that are shown, the latest."""


def families_of(view: RoundView) -> str:
    """Return how far each family has come, and which were not tried."""
    tried = [
        {
            "family": one.family,
            "state": one.state,
            "candidates": one.candidates,
            "passed": one.passed,
            "best": "none" if one.best is None else labels((one.best,), view.members),
            "relative_speed": one.relative_speed,
        }
        for one in view.standings
    ]
    return render(cleaned({"tried": tried, "not_tried": ", ".join(view.untried)}))


def lessons_of(reflections: Sequence[Reflection], members: Sequence[Member]) -> str:
    """Return what earlier rounds taught, the newest last."""
    digests = [Quoted(plain(one.digest)) for one in reflections[-MOST_DIGESTS:]]
    single = [
        Quoted(plain(f"{labels((lesson.candidate,), members)}: {lesson.text}"))
        for reflection in reflections
        for lesson in reflection.lessons
    ][-MOST_LESSONS:]
    latest = reflections[-1] if reflections else None
    facts: Facts = {
        "rounds": digests,
        "candidates": single,
        "directions": [Quoted(plain(one)) for one in latest.directions] if latest else [],
        "avoid": [Quoted(plain(text)) for one in reflections for text in one.avoid][-MOST_LESSONS:],
    }
    facts = {name: value for name, value in facts.items() if value}
    return fenced("lessons", render(cleaned(facts))) if facts else _NONE


def branch_lessons(lessons: Sequence[str]) -> str:
    """Return what the run has learned, for one branch."""
    shown = [Quoted(plain(one)) for one in lessons[-MOST_LESSONS:]]
    return fenced("lessons", render(cleaned({"lessons": shown}))) if shown else _NONE


def evidence_for(view: RoundView, briefing: Briefing) -> str:
    """Return what limits the best, what a model of the time says, what documents say."""
    beam = [view.members[seq] for seq in view.beam]
    parts = [evidence_of(beam, view.documents)]
    ideas = [Quoted(one.text) for one in suggestions_for(view, briefing)]
    if ideas:
        parts.append(fenced("ideas by rule", render(cleaned({"ideas": ideas}))))
    if view.reading:
        parts.append(fenced("documents", view.reading))
    return "\n\n".join(parts)


def suggestions_for(view: RoundView, briefing: Briefing) -> tuple[Suggestion, ...]:
    """Return what kopt's rules would try next."""
    leader = view.beam[0] if view.beam else None
    mended = {seq for member in view.members if member.lineage == "fix" for seq in member.parents}
    failed = [
        (member, next(iter(check.diagnostics), None))
        for member in sorted(view.members, key=lambda one: one.order)
        if (check := view.documents.checks.get(member.seq)) is not None
        and not member.passed
        and member.seq not in mended
    ]
    known = SuggestionInputs(
        members=view.members,
        beam=view.beam,
        failed=tuple(failed),
        profile=None if leader is None else view.documents.profiles.get(leader),
        dtypes=briefing.facts.dtypes,
        standings=view.standings,
        untried=view.untried,
        ideas=0,
        noted=view.noted,
        name=lambda member: member.label,
    )
    return make_suggestions(known)


def attempts_of(view: RoundView) -> str:
    """Return the candidates so far, and the hypotheses that came to none."""
    parts = [candidate_table(view)]
    lost = [
        {
            "family": one.hypothesis.family,
            "name": Quoted(plain(one.hypothesis.name)),
            "why": Quoted(plain(one.why)),
        }
        for one in view.failed_branches
    ]
    if lost:
        parts.append(fenced("hypotheses without a candidate", render(cleaned({"lost": lost}))))
    waiting = [Quoted(plain(f"{one.family}: {one.name}")) for one in view.reserve]
    if waiting:
        parts.append(fenced("hypotheses in reserve", render(cleaned({"reserve": waiting}))))
    return "\n\n".join(parts)


def parents_of_slots(view: RoundView) -> str:
    """Return the source of every candidate that a slot starts from, each once."""
    wanted = dict.fromkeys(seq for slot in view.slots for seq in slot.parents)
    return "\n\n".join(source_of(view.members[seq]) for seq in wanted) or _NONE


def hypothesis_words(hypothesis: Hypothesis) -> str:
    """Return a hypothesis as the prompt of its coder tells it."""
    return fenced("hypothesis", "\n".join(_lines_of(hypothesis)))


def _lines_of(hypothesis: Hypothesis) -> Iterator[str]:
    yield f"name: {plain(hypothesis.name)}"
    yield f"family: {hypothesis.family}"
    if hypothesis.techniques:
        yield f"techniques: {', '.join(hypothesis.techniques)}"
    if len(hypothesis.techniques) > 1:
        yield f"switches: {', '.join(map(switch_of, hypothesis.techniques))}"
    for name in ("hypothesis", "mechanism", "evidence", "risk"):
        text = plain(getattr(hypothesis, name))
        if text:
            yield f"{name}: {text}"
    yield f"expected gain: {hypothesis.expected_gain:.0%} (a guess)"
