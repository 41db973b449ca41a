"""The reading of a finalist: whether anything speaks against a candidate that passed every check.

A verdict is kept with the candidate, so that an interrupted run asks no second time. Where nobody
can be asked, or no answer comes, that is told and measurement alone decides.
"""

from kopt.kernels.check_result import CheckResult
from kopt.search.agents.views import Objection, SoftVerdict, SoftView
from kopt.search.models.errors import BudgetSpent, CallFailed
from kopt.search.records.members import Member
from kopt.search.records.run_state import EventKind

from .agents import Agents
from .run_context import RunContext

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
    sha = None if member.full is None else member.full.artifacts.get("check")
    check = context.search.store.reader.readable(sha, CheckResult)
    view = SoftView(id=name, member=member, check=check)
    try:
        roles = agents.roles()
        return context.in_worker(name, lambda: roles.soft_verify(view))
    except (BudgetSpent, CallFailed) as error:
        _tell(context, member, "not_made", str(error))
        return None


def _keep(context: RunContext, member: Member, verdict: SoftVerdict) -> None:
    """Tell a verdict, then keep it: what is told twice after an interruption is said once more."""
    outcome = "not_made" if verdict.origin == "fallback" else verdict.verdict
    _tell(context, member, outcome, objection(verdict))
    context.search.store.add_document(member.seq, VERDICT, verdict.model_dump_json().encode())


def _tell(context: RunContext, member: Member, outcome: str, why: str) -> None:
    log = context.search.store.log
    with log.transaction():
        log.emit(EventKind.SOFT_VERIFIED, candidate=member.seq, outcome=outcome, why=why)
