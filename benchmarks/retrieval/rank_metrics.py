"""How good one ranking is against many answers, and whether two systems differ.

Source: Järvelin, Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20(4), 2002;
Smucker, Allan, Carterette, "A comparison of statistical significance tests for information
retrieval evaluation", CIKM 2007, for the paired bootstrap.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean

DEPTH = 10
FEW = 5
RESAMPLES = 10_000


@dataclass(frozen=True)
class Scores:
    """Of one question, or the means over several; all from 0 to 1."""

    ndcg_at_10: float
    """A hit gains 1 if it brings an answer not seen above it; ideal: one with each of the hits."""
    recall_at_5: float
    """Distinct answers in the first five, of as many as five hits could have."""
    reciprocal_rank: float
    """1 / rank of the first answer within ten, else 0."""
    success_at_1: float
    success_at_5: float


def scores(found: Sequence[frozenset[int]], answers: int) -> Scores:
    """Return the scores of one question.

    Args:
        found: For each hit, best first, the answers that it is a place of.
        answers: How many there are; at least 1.
    """
    seen = set[int]()
    gained = 0.0
    for rank, groups in enumerate(found[:DEPTH], start=1):
        if groups - seen:
            gained += 1 / math.log2(rank + 1)
        seen |= groups
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(DEPTH, answers) + 1))
    few = frozenset[int]().union(*found[:FEW])
    ranks = [rank for rank, groups in enumerate(found[:DEPTH], start=1) if groups]
    return Scores(
        ndcg_at_10=gained / ideal,
        recall_at_5=min(1.0, len(few) / min(FEW, answers)),
        reciprocal_rank=1 / ranks[0] if ranks else 0.0,
        success_at_1=float(bool(ranks) and ranks[0] == 1),
        success_at_5=float(bool(few)),
    )


def mean_scores(several: Sequence[Scores]) -> Scores:
    """Return the means; of at least one question."""
    return Scores(*(fmean(getattr(one, field.name) for one in several) for field in fields(Scores)))


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values or differences, the same at each call."""
    draw = random.Random(0)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
