"""A round as planner and reflector read it: families, lessons, what limits the best."""

from collections.abc import Iterator, Sequence

from kopt.search.advice.suggestions import Suggestion, SuggestionInputs, make_suggestions
from kopt.search.knowledge.records import switch_of
from kopt.search.records.members import Member
from kopt.tools.facts.fitting import Facts, cleaned
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted, plain

from .briefing import Briefing
from .candidate_words import candidate_table, evidence_of, labels, source_of
from .fencing import fenced
from .plans import Hypothesis, Reflection
from .view import RoundView

MOST_LESSONS = 30
"""Of single candidates, the latest."""
MOST_DIGESTS = 6
"""Of rounds, the latest."""
_NONE = "None yet."


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
        dtypes=briefing.subject.dtypes,
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
    """Return a hypothesis for whoever carries it out."""
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
