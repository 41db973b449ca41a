"""Row chunks cover every row once and stay small."""

import pytest

from kopt.kernels.row_chunks import BLOCK_ELEMENTS, CHUNK_ELEMENTS, for_row_chunks, row_chunks


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1000, 14336), (7, 1), (3, CHUNK_ELEMENTS)])
def test_chunks_cover_every_row_once_in_order(rows: int, columns: int) -> None:
    covered = [row for chunk in row_chunks(rows, columns) for row in range(rows)[chunk]]
    assert covered == list(range(rows))


def test_chunks_hold_no_more_than_the_limit() -> None:
    chunks = list(row_chunks(1000, 14336))
    assert max(chunk.stop - chunk.start for chunk in chunks) == CHUNK_ELEMENTS // 14336


def test_a_row_longer_than_the_limit_is_a_chunk_of_its_own() -> None:
    assert list(row_chunks(2, 2 * CHUNK_ELEMENTS)) == [slice(0, 1), slice(1, 2)]


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (0, 0)])
def test_no_rows_give_no_chunks(rows: int, columns: int) -> None:
    assert list(row_chunks(rows, columns)) == []


def test_rows_without_columns_are_covered() -> None:
    assert list(row_chunks(3, 0)) == [slice(0, 3)]


def test_every_chunk_is_worked_on_once() -> None:
    seen: list[int] = []
    for_row_chunks(1000, 14336, lambda chunk: seen.extend(range(1000)[chunk]))
    assert sorted(seen) == list(range(1000))


def test_work_gets_a_few_rows_and_its_answers_come_in_their_order() -> None:
    given = for_row_chunks(1000, 14336, lambda part: (part.start, part.stop))

    assert [start for start, _ in given[1:]] == [stop for _, stop in given[:-1]]
    assert (given[0][0], given[-1][1]) == (0, 1000)
    assert max(stop - start for start, stop in given) == BLOCK_ELEMENTS // 14336
