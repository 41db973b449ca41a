"""A query as words: how much of it is prose."""

import pytest

from kopt.tools.docs.query.query_words import query_words


@pytest.mark.parametrize(
    ("query", "prose"),
    [
        ("rotate keys before they are cached", 1.0),
        ("cp_async_bulk mbarrier.try_wait", 0.0),
        ("cp_async_bulk pipeline", 0.5),
        ("the and of", 1.0),
    ],
)
def test_names_of_code_are_no_prose(query: str, prose: float) -> None:
    assert query_words(query, []).prose == prose
