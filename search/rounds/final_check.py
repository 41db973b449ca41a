"""The end of a run: its best are checked in full and read, and on a GPU put to the promotion.

The verdict of a reading is kept with the candidate, so that an interrupted run asks no second time.
Where nobody can be asked, or no answer comes, that is told and measurement alone decides.
"""

from collections.abc import Iterable

from kopt.config.errors import ToolError
from kopt.config.files import write_atomically
from kopt.kernels.check_result import CheckResult
from kopt.kernels.status import Status
from kopt.search.agents.views import Objection, SoftVerdict, SoftView
from kopt.search.models.errors import BudgetSpent, CallFailed
from kopt.search.records.members import Member
from kopt.search.records.run_state import Event, EventKind, RunStatus
from kopt.search.selection.ranking import rank
from kopt.search.store.winner import claim, pin_tune, winner_path

from .agents import Agents
from .memory import PROMOTION, promotion_of
from .run_context import RunContext


def run_final_checks(context: RunContext) -> None:
    """End the run: the winner is the first that passes the full check and is promoted.

    As many as the beam is wide are checked, and the start as the last; those that the search has
    checked already take no place of theirs. Where none is promoted, or nothing can be (on sim), it
    is the first that passes. One whose reading shows what no check can see is passed over.
    """
    store, state = context.search.store, context.state()
    best: Member | None = None
    promoted: Member | None = None
    places, known = state.settings.search.beam.width, _checked_in_search(store.reader.events())
    for seq in _finalists(context.members()):
        if places <= 0 and seq != 0 and seq not in known:
            continue
        store.queue.add([seq], "full")
        context.evaluations.drain("full")
        member = context.members()[seq]
        is_run = member.full is None or member.full.status is not Status.PLAN_ERROR
        if is_run and seq not in known:
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
        text = _as_promoted(context, winner)
        write_atomically(winner_path(store.folder), text.encode())
    ended: RunStatus = "failed" if winner is None else "done"
    is_spent = state.stop_reason == "budget"
    store.finish("budget" if is_spent else ended, None if winner is None else winner.seq)


def _as_promoted(context: RunContext, winner: Member) -> str:
    """Return the winner's text: its tune values as defaults, claiming what it was promoted for."""
    text = pin_tune(winner.source, winner.tune)
    kept = promotion_of(context.search.store.reader, context.members()[winner.seq])
    if kept is None or kept.claimed is None or kept.outcome == "not_promoted":
        return text
    return claim(text, kept.claimed)


def _finalists(members: tuple[Member, ...]) -> list[int]:
    """Return who may be put to the full check, best first.

    Not by the full checks, so that an interrupted run goes through the same list again.
    """
    timed = [member for member in members if member.tie is None or member.tie.cost is not None]
    return [member.seq for member in rank(timed)]


def _checked_in_search(events: Iterable[Event]) -> set[int]:
    """Return who was put to the full check before the last round closed.

    What was checked since, at this end of the run, is not among them: an interrupted run counts it
    again.
    """
    found, known = set[int](), set[int]()
    for event in events:
        if event.kind is EventKind.FINAL_CHECK:
            found.add(event.data["candidate"])
        elif event.kind is EventKind.ROUND_DONE:
            known |= found
    return known


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
    why = unlike_its_check(member, _full_check(context, member))
    if why is not None:
        store.log.tell(EventKind.PROMOTED, candidate=member.seq, outcome="refused", why=why)
        return False
    try:
        result = context.search.promote(member)
    except ToolError as error:
        store.log.tell(EventKind.PROMOTED, candidate=member.seq, outcome="refused", why=str(error))
        return True
    document = result.model_dump_json(by_alias=True).encode()
    store.add_document(member.seq, PROMOTION, document)
    store.log.tell(EventKind.PROMOTED, candidate=member.seq, outcome=result.outcome, why=result.why)
    return result.outcome != "not_promoted"


def unlike_its_check(member: Member, check: CheckResult | None) -> str | None:
    """Return why a run's row is not what its full check was of: its file was edited since.

    None where it is, or where the check cannot be read. A promotion takes nothing but source and
    tune values from the row, and checks and measures them anew.
    """
    if check is None:
        return None
    if check.candidate != member.source_sha:
        return (
            f"the run's file was edited: its source is {member.source_sha[:12]}, and its full check"
            f" was of {check.candidate[:12]}"
        )
    for name, value in member.tune.items():
        if check.tune.get(name) != value:
            return (
                f"the run's file was edited: {name} is {value}, and {check.tune.get(name)} in its"
                " full check"
            )
    return None


def _full_check(context: RunContext, member: Member) -> CheckResult | None:
    sha = None if member.full is None else member.full.artifacts.get("check")
    return context.search.store.reader.readable(sha, CheckResult)


VERDICT = "soft_verdict"
"""Kind of the document that says what the reading of a candidate came to."""


def stands_up(context: RunContext, member: Member) -> bool:
    """Return whether a candidate that passed the full check may win.

    One that is rejected may not. One that is to be checked again is, with other hidden seeds. The
    source that the run began with is not read.
    """
    agents = context.search.agents
    if agents is None or member.source == context.search.start.source:
        return True
    verdict = _kept(context, member)
    if verdict is None:
        verdict = _of_same_source(context, member) or _asked(context, agents, member)
        if verdict is not None:
            _keep(context, member, verdict)
    if verdict is None:
        return True
    if verdict.verdict == "check_again":
        context.search.store.queue.add([member.seq], "again")
        context.evaluations.drain("again")
        return context.members()[member.seq].is_confirmed
    return verdict.verdict != "reject"


def objection(verdict: SoftVerdict) -> str:
    """Return what a verdict says in a sentence, the gravest finding first."""
    return "; ".join(_words(one) for one in verdict.findings) or verdict.why


def _words(finding: Objection) -> str:
    quoted = " / ".join(f"`{line.strip()}`" for line in finding.lines)
    return f"{finding.kind.replace('_', ' ')}: {finding.text} ({quoted})"


def _kept(context: RunContext, member: Member) -> SoftVerdict | None:
    return context.search.store.reader.document(member, VERDICT, SoftVerdict)


def _of_same_source(context: RunContext, member: Member) -> SoftVerdict | None:
    """Return what the reading of this source came to for another choice of its `tune` values."""
    same = (one for one in context.members() if one.source_sha == member.source_sha)
    return next((known for one in same if (known := _kept(context, one)) is not None), None)


def _asked(context: RunContext, agents: Agents, member: Member) -> SoftVerdict | None:
    """Return a new verdict; None, and the reason told, where there is none."""
    name = f"r{context.state().round}/verify/{member.label}"
    view = SoftView(id=name, member=member, check=_full_check(context, member))
    try:
        roles = agents.roles()
        return context.in_worker(name, lambda: roles.soft_verify(view))
    except (BudgetSpent, CallFailed) as error:
        _tell_of_reading(context, member, "not_made", str(error))
        return None


def _keep(context: RunContext, member: Member, verdict: SoftVerdict) -> None:
    """Tell a verdict, then keep it: what is told twice after an interruption is said once more."""
    outcome = "not_made" if verdict.origin == "fallback" else verdict.verdict
    _tell_of_reading(context, member, outcome, objection(verdict))
    context.search.store.add_document(member.seq, VERDICT, verdict.model_dump_json().encode())


def _tell_of_reading(context: RunContext, member: Member, outcome: str, why: str) -> None:
    log = context.search.store.log
    log.tell(EventKind.SOFT_VERIFIED, candidate=member.seq, outcome=outcome, why=why)
