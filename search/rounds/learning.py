"""What follows a closed round besides the next one: it is learned from, and memory is gone through.

The statistics of the samples always count; what the learner says beside them is more.
"""

from kopt.search.agents.learning_view import LearningView
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.run_state import RoundRow
from kopt.search.store.taught import MemoryUpdate

from .asking import in_crew
from .drive import RunDrive
from .programs import find_states
from .rollouts import trajectories

_CLOSING = ("combine", "tune")


def learn_from_round(drive: RunDrive) -> bool:
    """Learn from the last closed round; False where that was done, or nothing is remembered."""
    last = drive.last_round()
    if last is None or not drive.memory.is_behind:
        return False
    if not drive.state().is_finished:
        find_states(drive, last.number)
    drive.memory.learn()
    return True


def pending_update(drive: RunDrive) -> RoundRow | None:
    """Return the round after which the learner is to go through memory, if it has not.

    After every `update_every` further trajectories that have ended, and once when the search has,
    as far as there are new samples.
    """
    state, last = drive.state(), drive.last_round()
    agents, search = drive.search.agents, state.settings.search
    if last is None or agents is None or search.agent == "minimal" or not drive.memory.is_on:
        return None
    if state.round_open or state.is_finished or last.update_sha or last.kind in _CLOSING:
        return None
    has_ended = state.stop_reason is not None and state.stop_reason != "budget"
    is_due = has_ended or _has_come_round(drive, last.number)
    return last if is_due and _news(drive) else None


def update_memory(drive: RunDrive, last: RoundRow) -> None:
    """Have the learner go through what was predicted and measured, and keep what it changes.

    Raises:
        CallFailed: No model can be asked now, or with this key.
    """
    agents = drive.search.agents
    if agents is None:
        return
    members = drive.members()
    samples = drive.search.store.reader.samples()
    by_id = {sample.id: sample for sample in samples}
    endings = {
        name: quick.summary
        for name in by_id
        if (quick := members[int(name.split("/")[1])].quick) is not None
    }
    name = f"r{last.number}/learn"
    view = LearningView(name, drive.memory.base(), samples, endings)
    try:
        roles = agents.roles()
        learned = in_crew(drive, name, lambda: roles.learn(view))
        update = MemoryUpdate(edits=learned.edits, dropped=learned.dropped, why=learned.why)
    except BudgetSpent as spent:
        update = MemoryUpdate(why=str(spent))
    drive.search.store.memory.keep_update(last.number, update)


def _has_come_round(drive: RunDrive, number: int) -> bool:
    """Return whether the round has ended the next `update_every` trajectories."""
    if not drive.follows_trajectories:
        return False
    every = drive.state().settings.search.maic_rl.update_every
    then, now = (
        sum(one.is_finished for one in found)
        for found in (trajectories(drive, number), trajectories(drive))
    )
    return now // every > then // every


def _news(drive: RunDrive) -> bool:
    """Return whether anything was learned since memory was gone through."""
    reader = drive.search.store.reader
    last = max(reader.updates(), default=-1)
    return any(one.samples for number, one in reader.taught().items() if number > last)
