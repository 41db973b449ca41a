"""Posting lists: packed, unpacked, summed to scores."""

from array import array

import pytest

from kopt.tools.docs.indexing.postings import (
    COMPRESSED_FROM,
    NO_POSTINGS,
    SHARE_STEP,
    PostingLists,
    Postings,
    best_scored,
    unpacked_postings,
)


def test_equal_scores_come_in_the_order_of_their_ids() -> None:
    equal = Postings(array("i", range(1, 90)), bytes([7] * 89))
    assert [at for at, _score in best_scored([(1.0, equal)], None, 5)] == [1, 2, 3, 4, 5]


def test_only_allowed_ids_are_scored() -> None:
    one = Postings(array("i", range(1, 90)), bytes(range(1, 90)))
    allowed = array("i", [3, 7, 400])
    found = best_scored([(1.0, one)], allowed, 5)
    assert [at for at, _score in found] == [7, 3]
    assert [score for _at, score in found] == pytest.approx([7 * SHARE_STEP, 3 * SHARE_STEP])
    assert best_scored([(1.0, one)], array("i"), 5) == []


def test_nothing_sought_is_nothing_found() -> None:
    assert best_scored([], None, 5) == []
    assert best_scored([(1.0, NO_POSTINGS)], None, 5) == []


@pytest.mark.parametrize("count", [1, 2, COMPRESSED_FROM - 1, COMPRESSED_FROM, 1000])
def test_postings_are_what_they_were_once_unpacked(count: int) -> None:
    lists = PostingLists()
    for chunk_id in range(3, 3 + 2 * count, 2):
        lists.add(chunk_id, [("row", 0.5 if chunk_id == 3 else 2.0)])
    ((phrase, length, packed),) = lists.rows()
    found = unpacked_postings(length, packed)
    assert (phrase, list(found.ids)) == ("row", list(range(3, 3 + 2 * count, 2)))
    shares = [level * SHARE_STEP for level in found.levels]
    assert shares == pytest.approx([0.5, *[2.0] * (count - 1)], abs=SHARE_STEP / 2)


@pytest.mark.parametrize("count", [3, COMPRESSED_FROM])
def test_damaged_postings_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="damaged"):
        unpacked_postings(count, b"no postings at all")
