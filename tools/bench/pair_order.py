"""The order of replays: blocks of randomised ABBA pairs, all comparisons of a session mixed.

Two pairs in the order A B B A form a double pair: what comes first gains nothing by it, and a
steady drift cancels. A block holds two double pairs (4 pairs) of every comparison, their order and
which side stands outside drawn anew for each block. Nothing here measures or decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

PAIRS_PER_BLOCK = 4


@dataclass(frozen=True)
class Pairing:
    """Two sides of a session that are compared, by their places."""

    candidate: int
    baseline: int


@dataclass(frozen=True)
class PlacedPair:
    """Where the two replays of a pair stand in the block's sequence."""

    pairing: Pairing
    candidate_at: int
    baseline_at: int


@dataclass(frozen=True)
class Block:
    """Replays without host synchronisation in between."""

    sequence: tuple[int, ...]
    """Sides, in order of replay."""
    pairs: tuple[PlacedPair, ...]
    """Two of a double pair follow each other."""

    def log_ratios(self, us_per_call: Sequence[float]) -> dict[Pairing, list[float]]:
        """Return ln(baseline / candidate) of every pair, by pairing, given each replay's time."""
        found: dict[Pairing, list[float]] = {}
        for pair in self.pairs:
            ratio = us_per_call[pair.baseline_at] / us_per_call[pair.candidate_at]
            found.setdefault(pair.pairing, []).append(log(ratio))
        return found


def make_block(
    pairings: Sequence[Pairing],
    rng: np.random.Generator,
    single: int,
    last: int | None = None,
) -> Block:
    """Return the next block.

    `single` is replayed once on its own, somewhere between double pairs; `last`, one of the first
    pairing's sides, ends the block.
    """
    doubles = [(pairing, bool(rng.integers(2))) for pairing in pairings for _ in range(2)]
    final: list[tuple[Pairing, bool]] = []
    if last is not None:
        doubles, final = doubles[1:], [(pairings[0], last == pairings[0].candidate)]
    order: list[int] = rng.permutation(len(doubles) + 1).tolist()
    sequence: list[int] = []
    pairs: list[PlacedPair] = []
    for part in (*([*doubles, None][place] for place in order), *final):
        if part is None:
            sequence.append(single)
            continue
        (pairing, candidate_outside), start = part, len(sequence)
        outer, inner = pairing.candidate, pairing.baseline
        if not candidate_outside:
            outer, inner = inner, outer
        for outside, inside in ((start, start + 1), (start + 3, start + 2)):
            at = (outside, inside) if candidate_outside else (inside, outside)
            pairs.append(PlacedPair(pairing, *at))
        sequence += (outer, inner, inner, outer)
    return Block(tuple(sequence), tuple(pairs))
