"""Pieces of work that keep to one GPU."""

from kopt.config.thread_pool import thread_pool
from kopt.tools.devices.errand import current_errand, one_errand


def test_threads_of_a_piece_of_work_belong_to_it() -> None:
    assert current_errand() is None
    with one_errand():
        own = current_errand()
        assert own is not None
        with thread_pool(2, "x") as pool:
            assert [pool.submit(current_errand).result() for _ in range(2)] == [own, own]
    assert current_errand() is None


def test_its_end_is_told_once_and_the_next_is_another() -> None:
    ended: list[str] = []
    for _ in range(2):
        with one_errand():
            own = current_errand()
            assert own is not None
            own.endings.append(lambda own=own: ended.append(own.id))  # type: ignore[misc]
    assert len(set(ended)) == 2
