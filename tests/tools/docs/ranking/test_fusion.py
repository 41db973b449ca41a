"""Lists fused by rank: what several lists have, what their order cannot say."""

import pytest

from kopt.tools.docs.query.ranking import fused, in_order, with_ties

A, B, C, D = (0, 1), (0, 2), (1, 1), (1, 2)


def test_what_two_lists_have_comes_before_the_first_of_either() -> None:
    scores = fused([in_order(1.0, [A, B]), in_order(1.0, [C, B])])
    assert max(scores, key=scores.__getitem__) == B
    assert scores[A] == scores[C]


def test_a_list_counts_by_its_weight() -> None:
    scores = fused([in_order(1.0, [A]), in_order(0.5, [B])])
    assert scores[A] == pytest.approx(2 * scores[B])


def test_equal_scores_share_the_mean_of_their_ranks() -> None:
    listed = with_ties(1.0, [(A, 3.0), (B, 2.0), (C, 2.0), (D, 1.0)])
    assert list(listed.places) == [A, B, C, D]
    assert list(listed.ranks) == [1, 2.5, 2.5, 4]
