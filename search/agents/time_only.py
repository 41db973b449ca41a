"""`profile: cycles_only`: what agents are shown, but for what a profile tells beside times."""

from dataclasses import replace

from kopt.search.records.evaluation import REGISTERS, Evaluation
from kopt.search.records.members import Member

from .view import BranchTask, Documents, Failure, RoundView


def time_only_round(view: RoundView) -> RoundView:
    """Return a round without profiles, and candidates without their resources."""
    return replace(
        view,
        members=tuple(map(_time_only, view.members)),
        documents=_without_profiles(view.documents),
    )


def time_only_task(task: BranchTask) -> BranchTask:
    """Return a branch whose parents have no profile."""
    return replace(task, documents=_without_profiles(task.documents))


def time_only_failure(failure: Failure) -> Failure:
    """Return a failure beside parents that have no profile."""
    return replace(failure, documents=_without_profiles(failure.documents))


def _without_profiles(documents: Documents) -> Documents:
    return replace(documents, profiles={})


def _time_only(member: Member) -> Member:
    quick = member.quick
    return member if quick is None else replace(member, quick=_without_registers(quick))


def _without_registers(evaluation: Evaluation) -> Evaluation:
    values = tuple(one for one in evaluation.values if one.metric != REGISTERS)
    return evaluation.model_copy(update={"values": values})
