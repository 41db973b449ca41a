"""How much the evidence of other bases counts beside this one's own.

A document may claim any number of tries, and what it claims cannot be checked here. So it can
advise, and the tries that are made here decide: about as many as a document may count outweigh it.
"""

from collections.abc import Mapping

from kopt.search.knowledge.records import Evidence
from kopt.search.knowledge.update import pooled

MOST_OF_OTHERS = 20
"""Tries of all other bases together that count for one entry on one architecture.

An assumption: enough to be sure of a gain of the size of its spread from kernel to kernel
(`update.GAIN_SPREAD` / sqrt(20) is 0.02), few enough to be outweighed in some runs."""


def counted(origins: Mapping[str, Evidence], own: str) -> Evidence:
    """Return what counts of the evidence of all `origins`: `own` in full, the others up to a limit.

    Args:
        origins: By the id of their base, on one architecture.
        own: Id of the base that is read.
    """
    theirs = pooled(origins[name] for name in sorted(origins) if name != own)
    return pooled([_limited(theirs), *(origins[name] for name in origins if name == own)])


def _limited(evidence: Evidence) -> Evidence:
    """Return `evidence` as if it were of fewer tries that ended alike."""
    if evidence.tries <= MOST_OF_OTHERS:
        return evidence
    share = MOST_OF_OTHERS / evidence.tries
    names = ("gained", "lost", "within_noise", "failed")
    counts = {name: round(share * getattr(evidence, name)) for name in names}
    moments = {"weight": share * evidence.weight, "m2": share * evidence.m2}
    return evidence.model_copy(update={**counts, **moments, "tries": sum(counts.values())})
