"""How far the priors of a base are believed, by what came of those that were tried."""

from kopt.search.knowledge.base import KnowledgeBase

from .others import counted

TRUSTED_TRIES = 4.0
"""Kept promises that priors are trusted with in advance."""


def trust_in_priors(base: KnowledgeBase) -> float:
    """Return what a prior's weight is multiplied by, 0 to 1.

    A prior promises a gain or a loss. The share of tries that passed the checks and kept the
    promise, over all entries and architectures: priors have common sources, so that those that
    were tried speak for those that were not. One that broke its promise is also outweighed by its
    own evidence; this is for the others.
    """
    kept = passed = 0
    for entry in base.entries.values():
        if entry.prior is None or not entry.evidence:
            continue
        gains = entry.prior.gain > 0
        for origins in entry.evidence.values():
            found = counted(origins, base.origin)
            kept += found.gained if gains else found.lost
            passed += found.tries - found.failed
    return (TRUSTED_TRIES + kept) / (TRUSTED_TRIES + passed)
