"""What comes next in a run, asked of its store alone.

So a new run, one that was killed, one that was given more budget and one that a caller's steps have
driven so far are all driven by the same code. With the same answers of models and evaluators a run
ends the same, however often it was interrupted and in whatever order its branches came (what a
budget cuts off excepted): the number of a candidate depends on that order, but nothing that is
decided looks at it (`Member.order`).
"""

from collections.abc import Callable

from kopt.search.records.run_state import Event, RunState

from .closing_rounds import CLOSING, conclude, finish_closing
from .learning import learn_from_round, pending_update, update_memory
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
