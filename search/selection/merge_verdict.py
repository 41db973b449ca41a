"""Whether a merged kernel is kept: what the combiner made against the best that it was made of."""

from collections.abc import Sequence
from typing import NamedTuple

from kopt.config.search_settings import SearchSettings
from kopt.search.records.members import Member

from .ranking import rank
from .speeds import speed_of, speed_words


class MergeVerdict(NamedTuple):
    """What becomes of a merged candidate."""

    is_kept: bool
    why: str
    """With the numbers behind it."""


def judge_merge(
    merged: Member, parents: Sequence[Member], settings: SearchSettings
) -> MergeVerdict:
    """Return whether `merged` is kept; else the search goes on from its best parent.

    One that is kept may still be a little slower than that parent: it is the winner only if it
    ranks first.
    """
    best = rank(parents)[0]
    if merged.quick is None or not merged.passed or merged.is_refuted:
        found = "it was not evaluated" if merged.quick is None else merged.quick.summary
        return MergeVerdict(False, f"reverted to #{best.seq}: {found}")
    speed, of_best = speed_of(merged), speed_of(best)
    if speed is None or of_best is None:
        return MergeVerdict(False, f"reverted to #{best.seq}: no time that counts")
    words = f"{speed_words(merged)} against {speed_words(best)} of #{best.seq}"
    if speed.value < settings.merge_accept * of_best.value:
        return MergeVerdict(False, f"reverted to #{best.seq}: {words}")
    return MergeVerdict(True, words)
