"""The performance signature of a program: its profile in the words that states are made of."""

from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.status import Provenance
from kopt.search.knowledge.records import Signature

from .traits import find_traits


def extract_signature(profile: ProfileResult) -> Signature:
    """Return bottleneck, suspects (the main one first) and traits of a profiled program.

    Fixed rules only. Without a bottleneck, because the program did not compile, nothing is known.
    """
    if profile.bottleneck is None:
        return signature_of_time()
    return Signature(
        bottleneck=profile.bottleneck.name,
        suspects=tuple(suspect.name for suspect in profile.suspects),
        traits=find_traits(profile),
        provenance=profile.bottleneck.provenance,
    )


def signature_of_time() -> Signature:
    """Return what is known of a program of which there is a time and no profile: nothing."""
    return Signature(bottleneck="unknown", provenance=Provenance.UNAVAILABLE)
