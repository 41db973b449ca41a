"""The end of a run: its best are checked in full and read, and on a GPU put to the promotion."""

from kopt.config.errors import ToolError
from kopt.config.files import write_atomically
from kopt.kernels.status import Status
from kopt.search.records.members import Member
from kopt.search.records.run_state import EventKind, RunStatus
from kopt.search.selection.ranking import rank
from kopt.search.store.winner import pin_tune, winner_path

from .receipts import PROMOTION, promotion_of
from .run_context import RunContext
from .verification import stands_up


def run_final_checks(context: RunContext) -> None:
    """End the run: the winner is the first that passes the full check and is promoted.

    As many as the beam is wide are checked, and the start as the last. Where none is promoted, or
    nothing can be (on sim), it is the first that passes. One whose reading shows what no check can
    see is passed over.
    """
    store, state = context.search.store, context.state()
    best: Member | None = None
    promoted: Member | None = None
    places = state.settings.search.beam.width
    for seq in _finalists(context.members()):
        if places <= 0 and seq != 0:
            continue
        store.queue.add([seq], "full")
        context.evaluations.drain("full")
        member = context.members()[seq]
        if member.full is None or member.full.status is not Status.PLAN_ERROR:
            places -= 1  # without a plan for its whole domain it is not run: the next has its place
        if not member.is_confirmed or not stands_up(context, member):
            continue
        best = best or member
        if not _may_be_promoted(context, member):
            break
        if _is_promoted(context, member):
            promoted = member
            break
    context.memory.learn(is_final=True)
    winner = promoted or best
    if winner is not None:
        # The file first: a finished run is never touched again.
        text = pin_tune(winner.source, winner.tune)
        write_atomically(winner_path(store.folder), text.encode())
    ended: RunStatus = "failed" if winner is None else "done"
    is_spent = state.stop_reason == "budget"
    store.finish("budget" if is_spent else ended, None if winner is None else winner.seq)


def _finalists(members: tuple[Member, ...]) -> list[int]:
    """Return who may be put to the full check, best first.

    Not by the full checks, so that an interrupted run goes through the same list again.
    """
    timed = [member for member in members if member.tie is None or member.tie.cost is not None]
    return [member.seq for member in rank(timed)]


def _may_be_promoted(context: RunContext, member: Member) -> bool:
    """Return whether it is worth minutes of measuring: it is new, and faster than the baseline."""
    speedup = None if member.timing is None else member.timing.speedup
    is_faster = speedup is not None and speedup.value is not None and speedup.value > 1.0
    return context.search.promote is not None and member.seq != 0 and is_faster


def _is_promoted(context: RunContext, member: Member) -> bool:
    """Promote a candidate, unless that was done before, and return whether it is a winner.

    One that beat everything but an older winner is one too. A winner in the way that cannot be
    compared stops the promotion of all, so the run ends with this candidate.
    """
    store = context.search.store
    known = promotion_of(store.reader, member)
    if known is not None:
        return known.outcome != "not_promoted"
    if context.search.promote is None:
        return False
    try:
        result = context.search.promote(member)
    except ToolError as error:
        _tell(context, member, "refused", str(error))
        return True
    document = result.model_dump_json(by_alias=True).encode()
    store.add_document(member.seq, PROMOTION, document)
    _tell(context, member, result.outcome, result.why)
    return result.outcome != "not_promoted"


def _tell(context: RunContext, member: Member, outcome: str, why: str) -> None:
    log = context.search.store.log
    with log.transaction():
        log.emit(EventKind.PROMOTED, candidate=member.seq, outcome=outcome, why=why)
