"""How the result of a step is made from its run: who is kept, who is not and why, what comes next.

Reads only; the run's lock is still held, so that nothing changes meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp
from typing import Any

from kopt.config.counted import counted
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.search.advice.suggestions import (
    MemorySuggestion,
    Suggestion,
    SuggestionInputs,
    make_suggestions,
)
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.selector import Drawn, draw, listed_of
from kopt.search.knowledge.states.matching import UNKNOWN_STATE, match_state
from kopt.search.knowledge.states.signature import extract_signature
from kopt.search.records.members import Member
from kopt.search.records.run_state import RunState
from kopt.search.reports.candidate_report import report_candidate
from kopt.search.reports.run_report import run_head
from kopt.search.rounds.evaluations import baseline_of
from kopt.search.rounds.memory_advice import allowed_techniques, used_techniques
from kopt.search.rounds.run_context import RunContext
from kopt.search.rounds.search_round import sweep
from kopt.search.runs.profiling import LeaderProfile
from kopt.search.selection.family_standing import family_standings, untried_families
from kopt.search.selection.ranking import speed_words
from kopt.search.selection.retirement import Beams, find_retirements
from kopt.search.store.taught import THIS_RUN

from .result import BeamMember, NextStep, SteppedCandidate, StepResult


@dataclass(frozen=True)
class Stepped:
    """One candidate of a step."""

    seq: int
    repeats: bool = False
    """Whether the run knew it before: it was not evaluated again."""


@dataclass(frozen=True)
class StepOutcome:
    """What a step did."""

    beam_before: tuple[int, ...]
    round: int | None = None
    """The round that it evaluated or finished; None if it evaluated none."""
    stepped: tuple[Stepped, ...] = ()
    """The caller's candidates in their order, or those of the round."""
    has_ended: bool = False
    """Whether it put the best to the full check."""


def report_step(
    context: RunContext, outcome: StepOutcome, profile: LeaderProfile | None
) -> StepResult:
    """Return the result of a step; the run's lock is still held."""
    state, members = context.state(), context.members()
    stepped = tuple(_stepped(one, context, state, members) for one in outcome.stepped)
    known = _known(context, stepped, profile)
    suggestions = make_suggestions(known)
    judged = {one.seq for one in outcome.stepped} | set(outcome.beam_before)
    beams = Beams(outcome.beam_before, state.beam)
    return StepResult(
        **_facts(context, state, members),
        round=outcome.round,
        message=_message(outcome, state, members),
        candidates=stepped,
        beam=tuple(
            BeamMember(**dict(report_candidate(members[seq], members, state)), rank=rank)
            for rank, seq in enumerate(state.beam, start=1)
        ),
        retired=find_retirements(members, judged, beams, state.settings.search),
        gain=_gain(outcome, state, members),
        families=known.standings,
        untried_families=known.untried,
        bottleneck=None if known.profile is None else known.profile.bottleneck,
        bottleneck_problem=None if profile is None else profile.problem,
        suggestions=suggestions,
        proposer_ideas=known.ideas,
        next=_next(state, stepped, known, suggestions),
    )


def _facts(context: RunContext, state: RunState, members: tuple[Member, ...]) -> dict[str, Any]:
    """Return what the result says of the run, whatever the step was."""
    return {
        **run_head(state, context.search.store.folder),
        "status": state.status,
        "baseline": baseline_of(members),
        "round_size": state.settings.search.sweep_size,
        "winner_tune": {} if state.winner is None else members[state.winner].tune,
        "budget": str(state.settings.budget),
    }


def _known(
    context: RunContext, stepped: tuple[SteppedCandidate, ...], profile: LeaderProfile | None
) -> SuggestionInputs:
    state, members = context.state(), context.members()
    may_propose = state.stop_reason is None and context.limit_reached() is None
    return SuggestionInputs(
        members=members,
        beam=state.beam,
        failed=tuple(
            (members[one.seq], one.diagnostic)
            for one in stepped
            if one.status not in (None, Status.PASSED)
        ),
        profile=None if profile is None else profile.profile,
        dtypes=frozenset() if profile is None else profile.dtypes,
        standings=family_standings(members, state.settings.search),
        untried=untried_families(members),
        ideas=len(sweep(context)) if may_propose else 0,
        remembered=suggest_from_memory(context, None if profile is None else profile.profile),
        noted=() if profile is None else profile.noted,
    )


def _stepped(
    one: Stepped, context: RunContext, state: RunState, members: tuple[Member, ...]
) -> SteppedCandidate:
    member = members[one.seq]
    return SteppedCandidate(
        **dict(report_candidate(member, members, state)),
        repeats=one.repeats,
        diagnostic=_first_diagnostic(context, member),
    )


def _first_diagnostic(context: RunContext, member: Member) -> Diagnostic | None:
    """Return the first error of the candidate's check; None where no stage pointed at one."""
    check = context.search.store.reader.failed_check(member)
    found = () if check is None else check.diagnostics
    return next((one for one in found if one.severity == "error"), None)


def _gain(outcome: StepOutcome, state: RunState, members: tuple[Member, ...]) -> float | None:
    """Compare the leader with the one before; in a new run, with the starting point."""
    if not state.beam:
        return None
    before = members[_leader_before(outcome)].cost
    now = members[state.beam[0]].cost
    return before / now - 1.0 if before and now else None


def _leader_before(outcome: StepOutcome) -> int:
    """Return the leader before the step: the starting point where there was none."""
    return outcome.beam_before[0] if outcome.beam_before else 0


def _message(outcome: StepOutcome, state: RunState, members: tuple[Member, ...]) -> str:
    if outcome.has_ended or (state.is_finished and not outcome.stepped):
        return _ending(state)
    if outcome.stepped and all(one.repeats for one in outcome.stepped):
        numbers = ", ".join(f"#{one.seq}" for one in outcome.stepped)
        return f"nothing new: the run has these candidates already, as {numbers}"
    fresh = [members[one.seq] for one in outcome.stepped if not one.repeats]
    passed = sum(member.passed for member in fresh)
    done = f"round {outcome.round}: {counted(len(fresh), 'candidate')}, {passed} passed"
    repeated = len(outcome.stepped) - len(fresh)
    if repeated:
        done += f", {repeated} known before"
    if not state.beam:
        return f"{done}; nothing has passed so far"
    leader = members[state.beam[0]]
    leads = "still leads" if leader.seq == _leader_before(outcome) else "leads now"
    return f"{done}; #{leader.seq} {leads}, {speed_words(leader)}"


def _ending(state: RunState) -> str:
    why = f"the run has ended: {state.stop_detail}" if state.stop_detail else "the run has ended"
    if state.winner is None:
        return f"{why}; no candidate passed the full check"
    return f"{why}; #{state.winner} passed the full check and is the winner"


def _next(
    state: RunState,
    stepped: tuple[SteppedCandidate, ...],
    known: SuggestionInputs,
    suggestions: tuple[Suggestion, ...],
) -> NextStep:
    if state.is_finished:
        return "new_run" if state.winner is None else "verify"
    if stepped and len(known.failed) == len(stepped):
        return "fix"
    if any(one.kind != "sweep" for one in suggestions):
        return "write"
    return "sweep" if known.ideas else "finish"


MOST_REMEMBERED = 2
MOST_EVIDENCE = 3


@dataclass(frozen=True)
class _Placed:
    """The leader and its state."""

    member: Member
    state: str
    confidence: float


def suggest_from_memory(
    context: RunContext, profile: ProfileResult | None
) -> tuple[MemorySuggestion, ...]:
    """Return what memory suggests for the leader; () without memory, a leader or its state."""
    state = context.state()
    if not context.memory.is_on or not state.beam:
        return ()
    base = context.memory.base()
    placed = _placed(context, base, context.members()[state.beam[0]], profile)
    if placed is None or placed.state == UNKNOWN_STATE:
        return ()
    used = used_techniques(placed.member, context)
    situation = context.memory.situation(placed.member, placed.state, used)
    # Techniques without any evidence are not suggested to a caller.
    known = listed_of(base, situation, allowed_techniques(context, base))
    name = f"{state.settings.seed}/r{state.round}/step"
    drawn = draw(base, situation, known, MOST_REMEMBERED, name)
    return tuple(_remembered(one, placed, base, state.id) for one in drawn)


def _placed(
    context: RunContext, base: KnowledgeBase, member: Member, profile: ProfileResult | None
) -> _Placed | None:
    known = context.memory.programs().get(member.seq)
    if known is not None:
        return _Placed(member, known.state.id, known.confidence)
    if profile is None:
        return None
    match = match_state(extract_signature(profile), base.states)
    # A state that is new to the base is known by the one that it inherits from.
    state = match.state.inherits if match.is_new else match.state.id
    return None if state is None else _Placed(member, state, match.confidence)


def _remembered(drawn: Drawn, placed: _Placed, base: KnowledgeBase, run: str) -> MemorySuggestion:
    technique, found = drawn.technique, drawn.prediction
    return MemorySuggestion(
        technique=technique.id,
        family=technique.family,
        description=technique.description,
        candidate=placed.member.seq,
        state=placed.state,
        confidence=placed.confidence,
        speed=exp(found.gain),
        interval=(exp(found.interval[0]), exp(found.interval[1])),
        works=found.works,
        tries=found.tries,
        rests_on=found.sources,
        evidence=tuple(_evidence(technique.id, placed.state, base, run))[:MOST_EVIDENCE],
        is_exploration=drawn.is_exploration,
    )


def _evidence(technique: str, state: str, base: KnowledgeBase, run: str) -> Iterator[str]:
    """Yield the last samples of a technique, of the state itself first, the latest first."""
    for one in base.ancestry(state):
        entry = base.entries.get((one.id, (technique,)))
        for origins in () if entry is None else entry.evidence.values():
            for evidence in origins.values():
                for sample in reversed(evidence.seen):
                    own = sample.removeprefix(f"{THIS_RUN}/")
                    yield sample if own == sample else f"{run}/{own}"
