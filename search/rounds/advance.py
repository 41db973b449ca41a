"""What comes next in a run, asked of its store alone.

So a new run, one that was killed, one that was given more budget and one that a caller's steps have
driven so far are all driven by the same code. With the same answers of models and evaluators a run
ends the same, however often it was interrupted and in whatever order its branches came (what a
budget cuts off excepted): the number of a candidate depends on that order, but nothing that is
decided looks at it (`Member.order`).
"""

from .drive import RunDrive
from .endgame import CLOSING, conclude, finish_closing
from .learning import learn_from_round, pending_update, update_memory
from .search_round import (
    Judge,
    finish_open,
    open_next,
    pending_reflection,
    reflect_on,
)


def advance(drive: RunDrive, judge: Judge) -> None:
    """Do the next thing: finish the open round, think about it, go on, or end the run."""
    state = drive.state()
    if state.round_open:
        finish_round(drive, judge)
    elif follow_up(drive):
        return
    elif is_concluding(drive):
        conclude(drive)
    else:
        open_next(drive)


def follow_up(drive: RunDrive) -> bool:
    """Do the next thing that the last closed round still calls for; False where nothing is left.

    It is learned from, thought about, and memory is gone through.
    """
    if learn_from_round(drive):
        return True
    if (finished := pending_reflection(drive)) is not None:
        reflect_on(drive, finished)
        return True
    if (finished := pending_update(drive)) is not None:
        update_memory(drive, finished)
        return True
    return False


def finish_round(drive: RunDrive, judge: Judge) -> None:
    """Finish the open round, whatever its kind."""
    last = drive.last_round()
    if last is not None and last.kind in CLOSING:
        finish_closing(drive)
    else:
        finish_open(drive, judge)


def is_concluding(drive: RunDrive) -> bool:
    """Return whether the search has ended, so that only what follows it is left."""
    last = drive.last_round()
    return drive.state().stop_reason is not None or (last is not None and last.kind in CLOSING)
