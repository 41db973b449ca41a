"""The order of replays."""

from collections import Counter
from math import log

import numpy as np
import pytest

from kopt.tools.bench.pair_order import PAIRS_PER_BLOCK, Block, Pairing, make_block

MAIN, NOISE, SECOND = Pairing(0, 1), Pairing(2, 1), Pairing(0, 3)
EMPTY = 4


def _blocks(count: int, *pairings: Pairing, last: int | None = None) -> list[Block]:
    rng = np.random.default_rng(7)
    return [make_block(pairings, rng, EMPTY, last) for _ in range(count)]


def test_a_block_has_four_pairs_of_every_comparison_and_one_empty_replay() -> None:
    (block,) = _blocks(1, MAIN, NOISE, SECOND)
    assert Counter(pair.pairing for pair in block.pairs) == dict.fromkeys(
        (MAIN, NOISE, SECOND), PAIRS_PER_BLOCK
    )
    assert block.sequence.count(EMPTY) == 1
    assert len(block.sequence) == 2 * len(block.pairs) + 1


def test_the_two_replays_of_a_pair_are_neighbors() -> None:
    for block in _blocks(20, MAIN, NOISE):
        for pair in block.pairs:
            assert abs(pair.candidate_at - pair.baseline_at) == 1
            assert block.sequence[pair.candidate_at] == pair.pairing.candidate
            assert block.sequence[pair.baseline_at] == pair.pairing.baseline


def test_each_side_comes_first_in_half_of_the_pairs_of_a_block() -> None:
    for block in _blocks(20, MAIN):
        firsts = sum(pair.candidate_at < pair.baseline_at for pair in block.pairs)
        assert firsts == PAIRS_PER_BLOCK // 2


def test_a_steady_drift_cancels_in_every_double_pair() -> None:
    for block in _blocks(20, MAIN, SECOND):
        times = np.exp(0.01 * np.arange(len(block.sequence))).tolist()
        ratios = block.log_ratios(times)[MAIN]
        assert ratios[0] + ratios[1] == pytest.approx(0.0, abs=1e-12)
        assert ratios[2] + ratios[3] == pytest.approx(0.0, abs=1e-12)


def test_a_log_ratio_is_positive_where_the_candidate_is_faster() -> None:
    (block,) = _blocks(1, MAIN)
    times = [2.0 if side == MAIN.candidate else 3.0 for side in block.sequence]
    assert block.log_ratios(times) == {MAIN: pytest.approx([log(1.5)] * 4)}


def test_blocks_differ_in_order_and_in_who_stands_outside() -> None:
    blocks = _blocks(40, MAIN)
    assert len({block.sequence for block in blocks}) >= 8
    assert {block.sequence[-1] for block in blocks} == {0, 1, EMPTY}


@pytest.mark.parametrize("last", [MAIN.candidate, MAIN.baseline])
def test_a_block_can_end_with_a_chosen_side(last: int) -> None:
    for block in _blocks(20, MAIN, NOISE, SECOND, last=last):
        assert block.sequence[-1] == last
        assert Counter(pair.pairing for pair in block.pairs)[MAIN] == PAIRS_PER_BLOCK
