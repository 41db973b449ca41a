"""Small runs whose candidates apply techniques, for tests of what they teach."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kopt.kernels.status import Provenance
from kopt.search.knowledge.records import ProfileSignature, Sample
from kopt.search.knowledge.states.attribution import Placed, Teaching, make_samples
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow

from .populations import member, passed

CATALOGUE = frozenset({"aa", "bb", "cc", "dd"})
"""Names without a meaning: attribution does not know what a technique does."""
ON_SIM = Teaching(
    run="run-1",
    kernel="k_b8",
    op_type="norm",
    arch="sm_90a",
    device="sim",
    toolkit="13.2",
    day="2026-01-31",
    min_effect=0.02,
    catalogue=CATALOGUE,
    placed={
        0: Placed(
            "unknown", ProfileSignature(bottleneck="unknown", provenance=Provenance.ESTIMATED)
        )
    },
)
ON_GPU = replace(ON_SIM, device="NVIDIA H100")


def start(evaluation: Evaluation | None = None) -> Member:
    """Return the starting point: 10 us unless another evaluation is given."""
    return member(0, evaluation or passed(10.0), proposer="start", source_sha="s0", tune={})


def made(seq: int, evaluation: Evaluation | None, *techniques: str, **fields: Any) -> Member:
    """Return a candidate of a branch of its own, in round 1 from the starting point."""
    known: dict[str, Any] = {
        "branch": f"r1/b{seq}",
        "round": 1,
        "parents": (0,),
        "lineage": "refine",
        "proposer": "coder",
        "source_sha": f"s{seq}",
        "tune": {},
        "techniques": techniques,
    }
    return member(seq, evaluation, **(known | fields))


def variant(seq: int, of: Member, evaluation: Evaluation | None, **tune: int) -> Member:
    """Return other tune values of a source, a round later."""
    return member(
        seq,
        evaluation,
        round=of.round + 1,
        parents=(of.seq,),
        source_sha=of.source_sha,
        tune={**of.tune, **tune},
        proposer="sweep",
    )


def row(
    name: str, hypothesis: Mapping[str, Any] | None = None, state: str = "delivered"
) -> BranchRow:
    """Return the branch called `name`."""
    return BranchRow.model_validate(
        {
            "id": name,
            "slot": name,
            "lineage": "refine",
            "hypothesis": hypothesis or {},
            "round": int(name[1]),
            "ordinal": 0,
            "state": state,
            "candidate": None,
            "why": None,
        }
    )


def taught(*members: Member, context: Teaching = ON_SIM) -> tuple[Sample, ...]:
    """Return what the members teach; every branch has ended."""
    return make_samples(members, rows_of(members), context)


def rows_of(members: Sequence[Member]) -> list[BranchRow]:
    """Return the ended branches of the members."""
    return [row(name) for name in dict.fromkeys(one.branch for one in members if one.branch)]


def told(samples: Sequence[Sample]) -> list[tuple[str, tuple[str, ...], str]]:
    """Return id, techniques and outcome of each sample."""
    return [(one.id, one.techniques, one.outcome) for one in samples]
