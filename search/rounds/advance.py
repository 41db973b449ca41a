"""What comes next in a run, asked of its store alone.

So a new run, one that was killed, one that was given more budget and one that a caller's steps have
driven so far are all driven by the same code. With the same answers of models and evaluators a run
ends the same, however often it was interrupted and in whatever order its branches came (what a
budget cuts off excepted): the number of a candidate depends on that order, but nothing that is
decided looks at it (`Member.order`).
"""

from collections.abc import Callable

from kopt.search.agents.views import LearningView
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.run_state import Event, RoundRow, RunState
from kopt.search.store.taught import MemoryUpdate

from .closing_rounds import CLOSING, conclude, finish_closing
from .programs import find_states
from .rollouts import trajectories
from .run_context import RunContext, Search
from .search_round import (
    Judge,
    finish_open,
    judge_search,
    open_next,
    pending_reflection,
    reflect_on,
)


def advance(context: RunContext, judge: Judge) -> None:
    """Do the next thing: finish the open round, think about it, go on, or end the run."""
    state = context.state()
    if state.round_open:
        finish_round(context, judge)
    elif follow_up(context):
        return
    elif is_concluding(context):
        conclude(context)
    else:
        open_next(context)


def follow_up(context: RunContext) -> bool:
    """Do the next thing that the last closed round still calls for; False where nothing is left.

    It is learned from, thought about, and memory is gone through.
    """
    if learn_from_round(context):
        return True
    if (finished := pending_reflection(context)) is not None:
        reflect_on(context, finished)
        return True
    if (finished := pending_update(context)) is not None:
        update_memory(context, finished)
        return True
    return False


def finish_round(context: RunContext, judge: Judge) -> None:
    """Finish the open round, whatever its kind."""
    last = context.last_round()
    if last is not None and last.kind in CLOSING:
        finish_closing(context)
    else:
        finish_open(context, judge)


def is_concluding(context: RunContext) -> bool:
    """Return whether the search has ended, so that only what follows it is left."""
    last = context.last_round()
    return context.state().stop_reason is not None or (last is not None and last.kind in CLOSING)


def run_search(search: Search, on_event: Callable[[Event], None] | None = None) -> RunState:
    """Drive the run in `search.store` to its end and return its final state.

    Every finished evaluation and every answered call is committed at once. A finished run is
    returned as it is.

    Raises:
        KeyboardInterrupt: The user stopped it; the run is paused and can be resumed.
        KoptError: This machine cannot evaluate, or no model can be asked; the run is paused
            likewise.
    """
    search.store.subscribe(on_event)
    context = RunContext(search)
    with context.pausing():
        context.memory.begin()
        if search.agents is not None and not context.state().is_finished:
            search.agents.roles()  # what they lack is told before anything is evaluated
        while not context.state().is_finished:
            advance(context, judge_search)
    return context.state()


def learn_from_round(context: RunContext) -> bool:
    """Learn from the last closed round; False where that was done, or nothing is remembered."""
    last = context.last_round()
    if last is None or not context.memory.is_behind:
        return False
    if not context.state().is_finished:
        find_states(context, last.number)
    context.memory.learn()
    return True


def pending_update(context: RunContext) -> RoundRow | None:
    """Return the round after which the learner is to go through memory, if it has not.

    After every `update_every` further trajectories that have ended, and once when the search has,
    as far as there are new samples.
    """
    state, last = context.state(), context.last_round()
    agents, search = context.search.agents, state.settings.search
    if last is None or agents is None or search.agent == "minimal" or not context.memory.is_on:
        return None
    if state.round_open or state.is_finished or last.update_sha or last.kind in CLOSING:
        return None
    has_ended = state.stop_reason is not None and state.stop_reason != "budget"
    is_due = has_ended or _has_come_round(context, last.number)
    return last if is_due and _news(context) else None


def update_memory(context: RunContext, last: RoundRow) -> None:
    """Have the learner go through what was predicted and measured, and keep what it changes.

    Raises:
        CallFailed: No model can be asked now, or with this key.
    """
    agents = context.search.agents
    if agents is None:
        return
    members = context.members()
    samples = context.search.store.reader.samples()
    by_id = {sample.id: sample for sample in samples}
    endings = {
        name: quick.summary
        for name in by_id
        if (quick := members[int(name.split("/")[1])].quick) is not None
    }
    name = f"r{last.number}/learn"
    view = LearningView(name, context.memory.base(), samples, endings)
    try:
        roles = agents.roles()
        update = context.in_worker(name, lambda: roles.learn(view))
    except BudgetSpent as spent:
        update = MemoryUpdate(why=str(spent))
    context.search.store.memory.keep_update(last.number, update)


def _has_come_round(context: RunContext, number: int) -> bool:
    """Return whether the round has ended the next `update_every` trajectories."""
    if not context.follows_trajectories:
        return False
    every = context.state().settings.search.maic_rl.update_every
    then, now = (
        sum(one.is_finished for one in found)
        for found in (trajectories(context, number), trajectories(context))
    )
    return now // every > then // every


def _news(context: RunContext) -> bool:
    """Return whether anything was learned since memory was gone through."""
    reader = context.search.store.reader
    last = max(reader.updates(), default=-1)
    return any(one.samples for number, one in reader.taught().items() if number > last)
