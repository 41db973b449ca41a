"""Composites taken apart: candidates with techniques switched off; no model is asked for them."""

from collections.abc import Iterator

from kopt.search.knowledge.states.attribution import ablations_wanted
from kopt.search.records.members import Proposal

from .drive import RunDrive


def take_apart(drive: RunDrive, number: int) -> None:
    """Evaluate the variants that tell how much each technique of a mixed change has gained.

    They join the open round `number` as candidates; the budget may leave room for none.
    """
    if not drive.memory.is_on:
        return
    drive.evaluations.drain("quick")
    proposals = drive.fresh(_variants(drive))
    proposals = proposals[: drive.room(len(proposals))]
    if proposals and drive.spent_time() is None:
        drive.search.store.rounds.add(number, proposals)
        drive.evaluations.drain("quick")


def _variants(drive: RunDrive) -> Iterator[Proposal]:
    members, branches = drive.members(), drive.search.store.reader.branches()
    parts = drive.memory.parts
    for variant in ablations_wanted(members, branches, drive.memory.teaching()):
        member = members[variant.seq]
        if parts is not None and variant.tune in parts.choices(member.source):
            yield Proposal(
                source=member.source,
                source_name=member.source_name,
                tune=variant.tune,
                family=member.family,
                proposer="ablation",
                parents=(member.seq,),
            )
