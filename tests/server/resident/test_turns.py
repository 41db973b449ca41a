"""Whose turn it is among the callers of one GPU."""

import threading
from collections.abc import Callable

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.server.resident.turns import Turns, Visitor

BOUND_S = 30.0


def _waits(turns: Turns, visitor: Visitor, then: Callable[[], None]) -> threading.Thread:
    """Return a thread of `visitor` that stands in the queue and calls `then` in its turn."""

    def take() -> None:
        with turns.turn(visitor):
            then()

    waits, tell = threading.Event(), visitor.tell

    def told(line: str) -> None:
        tell(line)
        waits.set()

    visitor.tell = told  # who waits is told so
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    assert waits.wait(BOUND_S)
    visitor.tell = tell
    return thread


def test_a_caller_of_many_threads_gets_no_more_turns_than_one_of_a_single_thread() -> None:
    turns, order = Turns("cuda:0"), list[str]()
    many, single = Visitor("many", ignore), Visitor("single", ignore)
    with turns.turn(Visitor("first", ignore)):
        threads = [_waits(turns, many, lambda: order.append("many")) for _ in range(3)]
        threads.append(_waits(turns, single, lambda: order.append("single")))
    for thread in threads:
        thread.join(BOUND_S)
    assert order == ["many", "single", "many", "many"]
    assert (turns.turns, len(turns.waits_s())) == (5, 5)


def test_no_stream_of_new_callers_keeps_one_waiting_that_had_a_turn_before() -> None:
    turns, order = Turns("cuda:0"), list[str]()
    old = Visitor("old", ignore)
    with turns.turn(old):
        pass
    with turns.turn(Visitor("first", ignore)):
        threads = [_waits(turns, Visitor("new", ignore), lambda: order.append("new"))]
        threads.append(_waits(turns, old, lambda: order.append("old")))
        threads.append(_waits(turns, Visitor("new", ignore), lambda: order.append("new")))
    for thread in threads:
        thread.join(BOUND_S)
    assert order == ["old", "new", "new"]


def test_a_waiting_caller_is_told_its_place_and_who_holds_the_gpu() -> None:
    turns, told = Turns("cuda:0"), list[str]()
    with turns.turn(Visitor("process 1 (kopt bench)", ignore)):
        thread = _waits(turns, Visitor("process 2", told.append), lambda: None)
    thread.join(BOUND_S)
    assert told[0] == "waiting for cuda:0, 1 before you; held by process 1 (kopt bench)"


def test_a_caller_that_is_gone_waits_no_longer_and_holds_nobody_up() -> None:
    turns, gone, ended = Turns("cuda:0"), Visitor("gone", ignore), list[str]()

    def take() -> None:
        with pytest.raises(InfraError), turns.turn(gone):
            ended.append("had a turn")
        ended.append("left")

    with turns.turn(Visitor("first", ignore)):
        waits = threading.Event()
        gone.tell = lambda _: waits.set()
        thread = threading.Thread(target=take)
        thread.start()
        assert waits.wait(BOUND_S)
        turns.drop(gone)
        thread.join(BOUND_S)
        assert ended == ["left"]
    with turns.turn(Visitor("next", ignore)):
        assert turns.holder is not None


def test_what_fails_in_a_turn_passes_it_on() -> None:
    turns = Turns("cuda:0")
    with pytest.raises(ValueError, match="in the turn"), turns.turn(Visitor("one", ignore)):
        raise ValueError("in the turn")
    with turns.turn(Visitor("two", ignore)):
        assert turns.turns == 2
