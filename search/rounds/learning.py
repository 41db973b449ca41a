"""What follows a closed round besides the next one: it is learned from, and memory is gone through.

The statistics of the samples always count; what the learner says beside them is more.
"""

from kopt.search.agents.views import LearningView
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.run_state import RoundRow
from kopt.search.store.taught import MemoryUpdate

from .programs import find_states
from .rollouts import trajectories
from .run_context import RunContext

_CLOSING = ("combine", "tune")


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
    if state.round_open or state.is_finished or last.update_sha or last.kind in _CLOSING:
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
        learned = context.in_worker(name, lambda: roles.learn(view))
        update = MemoryUpdate(edits=learned.edits, dropped=learned.dropped, why=learned.why)
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
