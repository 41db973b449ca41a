"""Work on parts, by several threads."""

import threading

import pytest

from kopt.kernels import wide_work
from kopt.kernels.wide_work import run_wide

PARTS = [slice(start, start + 1) for start in range(40)]


@pytest.fixture(autouse=True, params=[1, 3], ids=["one thread", "three threads"])
def _threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_work, "threads", lambda: request.param)


def test_results_come_in_the_order_of_the_parts() -> None:
    assert run_wide(lambda part: part.start, PARTS) == list(range(40))


def test_no_parts_give_no_results() -> None:
    assert run_wide(lambda part: part.start, []) == []


def test_work_within_work_ends() -> None:
    found = run_wide(lambda part: sum(run_wide(lambda one: one.start, PARTS)), PARTS)
    assert found == [sum(range(40))] * 40


def test_a_failure_is_raised_when_nothing_is_under_way_any_more() -> None:
    under_way: set[int] = set()
    last_may_end = threading.Event()

    def fail_first(part: slice) -> None:
        if part.start == 0:
            last_may_end.set()
            raise ArithmeticError("first")
        under_way.add(part.start)
        assert last_may_end.wait(10)
        under_way.remove(part.start)

    with pytest.raises(ArithmeticError, match="first"):
        run_wide(fail_first, PARTS)
    assert under_way == set()
