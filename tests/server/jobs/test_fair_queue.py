"""The order in which jobs get a device."""

from kopt.server.jobs.job_queue import FairQueue


def queue_of(*pairs: tuple[str, int]) -> FairQueue[int]:
    queue: FairQueue[int] = FairQueue()
    for caller, item in pairs:
        queue.put(caller, item)
    return queue


def drain(queue: FairQueue[int]) -> list[int]:
    taken: list[int] = []
    while (item := queue.take()) is not None:
        taken.append(item)
    return taken


def test_what_one_caller_asks_for_stays_in_order() -> None:
    assert drain(queue_of(("a", 1), ("a", 2), ("a", 3))) == [1, 2, 3]


def test_a_caller_with_one_job_does_not_wait_for_all_of_another() -> None:
    assert drain(queue_of(("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5))) == [1, 4, 5, 2, 3]


def test_a_caller_that_comes_back_waits_for_its_turn() -> None:
    queue = queue_of(("a", 1), ("a", 2), ("b", 3))
    assert queue.take() == 1
    queue.put("a", 4)
    queue.put("c", 5)
    assert drain(queue) == [3, 2, 5, 4]


def test_the_number_before_an_item_is_the_number_taken_before_it() -> None:
    pairs = [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 5), ("c", 6)]
    queue = queue_of(*pairs)
    before = {item: queue.before(caller, item) for caller, item in pairs}
    assert queue.before("a", 6) is None
    assert before == {item: place for place, item in enumerate(drain(queue))}


def test_what_is_removed_is_not_taken() -> None:
    queue = queue_of(("a", 1), ("a", 2), ("b", 3))
    assert queue.remove("a", 1)
    assert queue.remove("b", 3)
    assert not queue.remove("b", 3)
    assert (len(queue), drain(queue)) == (1, [2])
