"""The figures of docs/retrieval.md are only as good as this arithmetic and this matching."""

import math
from collections import Counter

import pytest
from judged_set import (
    DRAWN,
    HELD_OUT,
    Place,
    found_groups,
    is_place,
    judged_queries,
    stale_places,
)
from rank_metrics import Scores, bootstrap_interval, mean_scores, scores

from kopt.tools.docs.records import Chunk

NOTHING = frozenset[int]()


def chunk(symbol: str, also_at: tuple[str, ...] = ()) -> Chunk:
    return Chunk(
        source="vllm",
        path="csrc/a.cu",
        title=symbol,
        symbol=symbol,
        kind="device",
        start_line=3,
        end_line=9,
        body="",
        also_at=also_at,
    )


def test_ten_hits_with_an_answer_each_are_ideal() -> None:
    assert scores([frozenset({number}) for number in range(10)], 25) == Scores(1, 1, 1, 1, 1)


def test_the_same_answer_again_gains_nothing() -> None:
    first, again = frozenset({0}), scores([frozenset({0}), frozenset({0})], 2)
    assert again.ndcg_at_10 == scores([first, NOTHING], 2).ndcg_at_10
    assert again.recall_at_5 == 0.5


def test_a_lower_rank_is_discounted() -> None:
    third = scores([NOTHING, NOTHING, frozenset({0})], 1)
    assert third.ndcg_at_10 == pytest.approx(1 / math.log2(4))
    assert third.reciprocal_rank == pytest.approx(1 / 3)
    assert (third.success_at_1, third.success_at_5) == (0, 1)


def test_five_answers_in_five_hits_are_full_recall_of_many() -> None:
    assert scores([frozenset({number}) for number in range(5)], 30).recall_at_5 == 1


def test_one_hit_with_several_answers_never_exceeds_the_ideal() -> None:
    assert scores([frozenset(range(20))], 20).ndcg_at_10 <= 1
    assert scores([frozenset(range(20))], 20).recall_at_5 == 1


def test_the_eleventh_hit_does_not_count() -> None:
    assert scores([NOTHING] * 10 + [frozenset({0})], 1) == Scores(0, 0, 0, 0, 0)


def test_means_are_taken_by_field() -> None:
    assert mean_scores([Scores(1, 1, 1, 1, 1), Scores(0, 0.5, 0, 0, 1)]) == Scores(
        0.5, 0.75, 0.5, 0.5, 1
    )


def test_an_interval_of_a_clear_difference_excludes_zero() -> None:
    low, high = bootstrap_interval([0.1, 0.2, 0.15, 0.12, 0.18])
    assert 0.1 <= low <= 0.15 <= high <= 0.2


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("load", "load"),
        ("store,load", "load"),
        ("store, load", "load"),
        ("Owner::load", "load"),
        ("Owner.load", "Owner::load"),
        ("space::Owner::load", "Owner.load"),
        ("Owner::load", "Owner"),
        ("load<Row, 4>", "load"),
        ("Owner<Map<A, B>>::load", "Owner::load"),
    ],
)
def test_a_symbol_names_a_place(symbol: str, name: str) -> None:
    assert is_place(chunk(symbol), Place("vllm", "csrc/a.cu", name))


@pytest.mark.parametrize(
    "place",
    [
        Place("vllm", "csrc/a.cu", "loader"),
        Place("vllm", "csrc/a.cu", "Other::load"),
        Place("vllm", "csrc/b.cu", "load"),
        Place("sglang", "csrc/a.cu", "load"),
    ],
)
def test_another_function_file_or_source_is_no_match(place: Place) -> None:
    assert not is_place(chunk("Owner::load"), place)


def test_a_copy_elsewhere_counts_as_the_place() -> None:
    copied = chunk("load", also_at=("csrc/moe/a.cu:7", "sglang:jit/a.cuh:40"))
    assert is_place(copied, Place("vllm", "csrc/moe/a.cu", "load"))
    assert is_place(copied, Place("sglang", "jit/a.cuh", "load"))
    assert not is_place(copied, Place("vllm", "jit/a.cuh", "load"))


def test_a_place_without_a_chunk_is_stale() -> None:
    query = next(one for one in judged_queries() if one.id == "item-softmax-warp")
    (group,) = query.groups
    (place,) = group
    kept = chunk("softmax_warp_forward").model_copy(
        update={"source": place.source, "path": place.path}
    )
    assert stale_places([query], [kept]) == []
    assert found_groups(query, kept) == {0}
    assert stale_places([query], [chunk("softmax_warp_forward")]) == [place]


def test_the_set_is_balanced_over_styles_and_halves() -> None:
    queries = judged_queries()
    assert len(queries) >= 48
    assert len({query.id for query in queries}) == len(queries)
    assert all(query.groups and all(query.groups) for query in queries)
    for style in ("identifier", "natural", "goal", "item"):
        halves = [query.half for query in queries if query.style == style]
        assert halves.count("tune") == halves.count("check") > 0


def test_drawn_questions_are_mostly_known_items_and_goals_in_halves_of_a_size() -> None:
    queries = judged_queries(DRAWN)
    assert all(query.groups and all(query.groups) for query in queries)
    assert {query.file for query in queries} == {"drawn"}
    for style in ("goal", "item"):
        halves = [query.half for query in queries if query.style == style]
        assert halves.count("tune") == halves.count("check") > 0
    others = {query.id for query in judged_queries()}
    assert len({query.id for query in queries} | others) == len(queries) + len(others)


def test_the_held_out_set_is_balanced_and_shares_no_question_with_the_other() -> None:
    held_out = judged_queries(HELD_OUT)
    for part in ("first", "second"):
        styles = [one.style for one in held_out if one.half == part]
        assert Counter(styles) == dict.fromkeys(("identifier", "natural", "goal", "item"), 6)
    others = [*judged_queries(), *judged_queries(DRAWN)]
    assert not {one.query for one in held_out} & {one.query for one in others}
