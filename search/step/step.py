"""One step of a search: a single round on a run, by the caller's candidates or kopt's proposer.

The lock of the run is held for the step and no longer, so that several callers and `kopt run` can
drive one run in turns. Everything that was evaluated is in the store at once: a step that was
killed is finished by the next one.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from kopt.config.counted import counted
from kopt.config.device_names import simulated_gpu
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import target_named
from kopt.config.search_settings import load_search_settings
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.budget import Budget
from kopt.search.records.members import Member, Proposal
from kopt.search.records.run_state import RunSettings, RunState
from kopt.search.rounds.advance import advance, finish_round, follow_up, is_concluding
from kopt.search.rounds.run_context import RunContext, counted_s, preparing_s
from kopt.search.rounds.search_round import judge_step, open_next
from kopt.search.runs.parts import RunPlace, search_of
from kopt.search.runs.profiling import Profiler, profile_leader
from kopt.search.runs.run import RunRequest, begin_run, goes_on, open_run, refuse_another_device
from kopt.search.store.round_table import NewRound
from kopt.search.store.run_lock import LockClaim
from kopt.search.store.store import RunStore

from .proposals import make_proposals, number_proposals
from .report import StepOutcome, Stepped, report_step
from .result import StepHooks, StepRequest, StepResult, run_of_key, step_device

PURPOSE = "kopt step"


def take_step(
    request: StepRequest, settings: Settings, site: EvaluationSite, hooks: StepHooks | None = None
) -> StepResult:
    """Take one step and return how the run stands, with what to try next.

    Candidates form one round exactly as given; those that the run knows already are not evaluated
    again. Without candidates the proposer fills the round; where it is out of ideas, or the run's
    rounds or budget are spent, the best are put to the full check instead and the run ends. A round
    that an interrupted step or search has left open is finished first. Candidates for a run that
    has ended open it again.

    Raises:
        ToolError: The request cannot be carried out as written, another process holds the run for
            too long, or its device is another one; the run is as it was.
        SetupError: This machine cannot evaluate; the run is paused.
        InfraError: The machine failed under the step; the run is paused.
        KeyboardInterrupt: The user stopped it; the run is paused and nothing finished is lost.
    """
    hooks = hooks or StepHooks()
    site = replace(site, say=hooks.say)
    step_device(request, settings)  # refuses what is unclear before anything is locked
    with closing(_open(request, settings, site, hooks)) as store:
        plan = _plan(request, store, site)
        hooks.on_past(store.reader.events())
        store.subscribe(hooks.on_event)
        hooks.on_run(plan.before.id)
        _take_up(store, plan, request)
        place = RunPlace(site)
        if plan.settings.search.models.provider != "anthropic":
            place = place.without_models  # the caller writes; it begins no other coding agent
        with search_of(store, place) as search:
            context = RunContext(search)
            with context.pausing():
                outcome = _take(context, plan)
                profile = profile_leader(Profiler(store, site, request.counters))
                context.pause("the step is done")
            return report_step(context, outcome, profile)


def _take_up(store: RunStore, plan: "_Plan", request: StepRequest) -> None:
    if plan.before.status == "running" and plan.before.round < 0:
        return  # just begun
    if plan.wakes:
        store.reopen(plan.settings)
    elif goes_on(plan.before, request.budget):
        store.resume(plan.settings)


@dataclass(frozen=True)
class _Plan:
    """What a step will do, decided before anything of the run is changed."""

    before: RunState
    settings: RunSettings
    """The settings of the run from now on."""
    proposals: tuple[Proposal, ...]
    """The caller's; empty if the proposer acts."""
    wakes: bool
    """Whether there are candidates that the run does not know: it goes on even if it had ended."""
    key: str | None
    begun: int | None
    """The round that was begun under the key before."""


def _open(
    request: StepRequest, settings: Settings, site: EvaluationSite, hooks: StepHooks
) -> RunStore:
    claim = LockClaim(PURPOSE, request.lock_wait_s, hooks.say)
    if request.run_id is not None:
        return open_run(request.run_id, settings, claim)
    asked = RunRequest(
        kernel=request.kernel or "",
        device=site.device.name,
        gpu=None if site.timer is None else site.timer.facts,
        arch=_arch_for(request, site),
        search=load_search_settings().with_beam(None, request.rounds),
        name=None if request.key is None else run_of_key(request.key),
        claim=claim,
        owner=request.owner,
    )
    if request.budget is not None:
        asked = asked.model_copy(update={"budget": request.budget})
    if settings.claude is not None:
        limited = asked.budget.for_models(asked.search)
        asked = asked.model_copy(update={"budget": limited})
    # Before the run exists, so that a request that is refused leaves none behind.
    kernel = find_kernel(asked.kernel, settings.problems)
    proposals = make_proposals(request.candidates, (), kernel, asked.search.sweep_size)
    _refuse_beyond_budget(len(proposals), (), asked.budget, 0.0)
    return begin_run(asked, settings)


def _arch_for(request: StepRequest, site: EvaluationSite) -> str:
    """Return what candidates of a new run are compiled for.

    Raises:
        ToolError: The GPU runs another architecture than the one asked for.
    """
    if site.timer is None:
        return request.arch or DEFAULT_ARCH
    facts = site.timer.facts
    if request.arch not in (None, facts.arch):
        raise ToolError(
            f"arch {request.arch}: {site.device.name} is {facts.name}, which runs {facts.arch}:"
            ' leave arch out, or use device "sim"'
        )
    return facts.arch


def _is_target_of(run: RunSettings, asked: str) -> bool:
    """Return whether `asked`, an architecture or a GPU's name, is what the run is for."""
    target = target_named(asked)
    if target.arch != run.arch:
        return False
    named_gpu = target.gpu if target.name != target.arch else None
    return named_gpu is None or simulated_gpu(run.device) == named_gpu


def _plan(request: StepRequest, store: RunStore, site: EvaluationSite) -> _Plan:
    """Return what to do with the open run.

    Raises:
        ToolError: It cannot be done with this run, this device or what its budget leaves.
    """
    state, members = store.reader.state(), store.reader.members()
    settings = state.settings
    if request.kernel not in (None, settings.kernel):
        raise ToolError(f"{state.id} is a run of {settings.kernel}, not of {request.kernel}")
    if request.arch is not None and not _is_target_of(settings, request.arch):
        raise ToolError(
            f"{state.id} is a run for {settings.arch}, not for {request.arch}: leave arch out, or"
            " begin a new run"
        )
    refuse_another_device(state, None if site.timer is None else site.timer.facts)
    if request.budget is not None:
        settings = settings.model_copy(update={"budget": request.budget})
    if site.settings.claude is not None:
        limited = settings.budget.for_models(settings.search)
        settings = settings.model_copy(update={"budget": limited})
    kernel = find_kernel(settings.kernel, site.settings.problems)
    proposals = make_proposals(request.candidates, members, kernel, settings.search.sweep_size)
    begun = None if request.key is None else store.reader.round_of_step(request.key)
    news = sum(not one.is_known for one in number_proposals(proposals, members))
    if begun is None:
        _refuse_beyond_budget(news, members, settings.budget, state.spent_s)
    elif news:
        raise ToolError(f"step key {request.key!r} has other candidates in {state.id} already")
    return _Plan(
        before=state,
        settings=settings,
        proposals=proposals,
        wakes=bool(news) and begun is None,
        key=request.key,
        begun=begun,
    )


def _refuse_beyond_budget(
    news: int, members: Sequence[Member], budget: Budget, spent_s: float
) -> None:
    known = max(1, len(members))  # a new run begins with one
    ways = "hand in fewer, give the run a larger budget, or begin a new run"
    if budget.evaluations is not None and news and known + news > budget.evaluations:
        room = max(0, budget.evaluations - known)
        new = counted(news, "new candidate")
        raise ToolError(f"{new}, but the run's budget, {budget}, leaves room for {room}: {ways}")
    spends_s = counted_s(spent_s, preparing_s(members))
    if budget.seconds is not None and news and spends_s >= budget.seconds:
        raise ToolError(f"the run's budget, {budget}, is spent: {ways}")


def _take(context: RunContext, plan: _Plan) -> StepOutcome:
    """Do the step's part of the run and return what it was."""
    before = plan.before
    context.memory.begin()
    if plan.proposals:
        return _take_proposals(context, plan)
    if plan.begun is not None:
        _close_open_round(context)
        return _outcome(context, plan, plan.begun)
    if context.state().is_finished:
        return StepOutcome(before.beam)
    # A round that is open again because it was given a larger budget is no interrupted step.
    was_interrupted = before.round_open and before.round > 0 and before.stop_reason is None
    _close_open_round(context)
    if was_interrupted:
        return _outcome(context, plan, before.round)
    return _take_own(context, plan)


def _take_proposals(context: RunContext, plan: _Plan) -> StepOutcome:
    _close_open_round(context)
    members = context.members()
    numbered = number_proposals(plan.proposals, members)
    fresh = () if plan.begun else tuple(one.proposal for one in numbered if not one.is_known)
    own_round = plan.begun
    if own_round is None and plan.before.round_open:
        own_round = plan.before.round  # of this very request, if its candidates are in it
    if fresh:
        opening = NewRound(context.state().round + 1, "step", fresh, step=plan.key)
        context.search.store.rounds.open(opening)
        _close_open_round(context)
    stepped: list[Stepped] = []
    for one in numbered:
        is_new = one.seq < len(members) and members[one.seq].round == own_round
        is_twice = any(one.seq == other.seq for other in stepped)
        stepped.append(Stepped(one.seq, repeats=is_twice or (one.is_known and not is_new)))
    return StepOutcome(plan.before.beam, context.state().round, tuple(stepped))


def _take_own(context: RunContext, plan: _Plan) -> StepOutcome:
    """Take one round of the search; end the run where there is nothing left to fill it with."""
    if not is_concluding(context) and open_next(context, plan.key):
        _close_open_round(context)
        return _outcome(context, plan, context.state().round)
    while not context.state().is_finished:
        advance(context, judge_step)
    return StepOutcome(plan.before.beam, has_ended=True)


def _close_open_round(context: RunContext) -> None:
    """Finish what is open; a run that has nothing yet gets its starting point evaluated."""
    if context.state().round < 0:
        open_next(context)
    if context.state().round_open:
        finish_round(context, judge_step)
    while follow_up(context):
        pass


def _outcome(context: RunContext, plan: _Plan, index: int) -> StepOutcome:
    """Return what a whole round was."""
    of_round = [member for member in context.members() if member.round == index]
    stepped = tuple(Stepped(one.seq) for one in sorted(of_round, key=lambda one: one.order))
    return StepOutcome(plan.before.beam, index, stepped)
