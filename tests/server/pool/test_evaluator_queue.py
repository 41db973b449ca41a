"""Who gets which evaluator."""

from collections import Counter
from random import Random

import pytest

from kopt.server.pool.evaluator_queue import EvaluatorQueue, EvaluatorSlot, EvaluatorWish

H100, A100 = "NVIDIA H100", "NVIDIA A100"


class _Asked:
    """What became of a wish."""

    def __init__(self) -> None:
        self.slot: EvaluatorSlot | None = None
        self.lease = 0
        self.is_answered = False

    def __call__(self, slot: EvaluatorSlot | None) -> None:
        assert not self.is_answered
        self.slot, self.is_answered = slot, True
        self.lease = 0 if slot is None else slot.lease


class _Pool:
    def __init__(self, *models: str) -> None:
        self.queue = EvaluatorQueue()
        for number, model in enumerate(models):
            self.add(f"s{number}", model)
        for caller in ("ada", "bob"):
            self.queue.join(caller)

    def add(self, name: str, model: str) -> None:
        self.queue.add(EvaluatorSlot(name, "cuda", node="n", host="h"))
        self.queue.ready(name, model, f"GPU-{name}", "first")

    def ask(self, caller: str, **fields: str) -> _Asked:
        asked = _Asked()
        self.queue.ask(EvaluatorWish(caller, "cuda", **fields), asked)
        return asked


def test_a_free_evaluator_is_given_at_once_and_a_busy_one_when_it_is_back() -> None:
    pool = _Pool(H100)
    first, second = pool.ask("ada"), pool.ask("bob")
    assert first.slot is not None
    assert not second.is_answered
    assert pool.queue.waiting("bob") == 1
    assert pool.queue.release(first.lease)
    assert second.slot is first.slot
    assert second.lease > first.lease
    assert not pool.queue.release(first.lease)  # it is over


def test_callers_take_turns_however_much_one_of_them_asks_for() -> None:
    pool = _Pool(H100)
    many = [pool.ask("ada") for _ in range(5)]
    one = pool.ask("bob")
    pool.queue.release(many[0].lease)
    assert one.slot is not None
    pool.queue.release(one.lease)
    assert [asked.is_answered for asked in many] == [True, True, False, False, False]


def test_work_keeps_to_the_gpu_that_it_began_with() -> None:
    pool = _Pool(H100, H100)
    first = pool.ask("ada", errand="e")
    assert first.slot is not None
    pool.queue.release(first.lease)
    other = pool.ask("bob", gpu=first.slot.gpu)
    again = pool.ask("ada", errand="e")
    assert not again.is_answered  # the other one is free, and not its own
    pool.queue.release(other.lease)
    assert again.slot is first.slot
    assert pool.queue.end_errand("ada", "e")
    assert not pool.queue.end_errand("ada", "e")
    assert pool.queue.callers["ada"].evaluations == 1


def test_new_work_goes_where_the_least_is() -> None:
    pool = _Pool(H100, H100)
    seen: Counter[str] = Counter()
    for number in range(6):
        asked = pool.ask("ada", errand=f"e{number}")
        assert asked.slot is not None
        seen[asked.slot.id] += 1
        pool.queue.release(asked.lease)
    assert set(seen.values()) == {3}


def test_no_other_model_is_given() -> None:
    pool = _Pool(A100)
    asked = pool.ask("ada", model=H100)
    assert not asked.is_answered
    pool.add("late", H100)
    assert asked.slot is not None
    assert asked.slot.model == H100
    assert len(pool.queue.of_kind("cuda", H100)) == 1


def test_what_waits_for_a_gpu_that_is_gone_is_told_and_the_rest_goes_elsewhere() -> None:
    pool = _Pool(H100)
    held = pool.ask("ada", errand="told")
    assert held.slot is not None
    bound = pool.ask("ada", errand="told", gpu=held.slot.gpu)
    free = pool.ask("bob")
    pool.queue.release(held.lease)
    assert free.slot is not None
    begun = pool.ask("ada", errand="told")  # not told where it is
    assert not bound.is_answered
    pool.queue.remove("s0")
    assert bound.is_answered
    assert bound.slot is None
    assert not pool.queue.knows("GPU-s0")
    assert not begun.is_answered
    pool.add("s1", H100)
    assert begun.slot is not None


@pytest.mark.parametrize("end", ["unfit", "another GPU"])
def test_what_waits_for_a_gpu_whose_evaluator_ends_without_it_is_told(end: str) -> None:
    pool = _Pool(H100, H100)
    held = pool.ask("ada", gpu="GPU-s0", errand="told")
    bound, begun = pool.ask("ada", gpu="GPU-s0"), pool.ask("ada", errand="told")
    other = pool.ask("bob", gpu="GPU-s1")
    assert (bound.is_answered, begun.is_answered) == (False, False)
    if end == "unfit":
        pool.queue.set_aside("s0", "unfit", "its disk is full")
    else:
        pool.queue.set_aside("s0", "restarting")
        assert not bound.is_answered  # it may come back with the same one
        pool.queue.ready("s0", H100, "GPU-new", "second")
    assert bound.is_answered
    assert bound.slot is None
    assert not pool.queue.knows("GPU-s0")
    pool.queue.release(other.lease)
    assert begun.slot is not None
    assert begun.slot.gpu != "GPU-s0"
    assert begun.slot.errands == 1
    assert pool.queue.holder(held.lease) is None


def test_a_caller_that_is_gone_holds_nothing_and_waits_for_nothing() -> None:
    pool = _Pool(H100)
    held, waits = pool.ask("ada", errand="e"), pool.ask("ada")
    other = pool.ask("bob")
    assert held.slot is not None
    assert pool.queue.leave("ada") == (held.slot,)
    assert waits.is_answered
    assert waits.slot is None
    assert held.slot.errands == 0
    assert not other.is_answered  # what it left running has to end first
    pool.queue.ready("s0", H100, "GPU-s0", "second")
    assert other.slot is held.slot
    assert not pool.queue.release(held.lease)


def test_an_evaluator_that_is_set_aside_serves_when_it_is_ready_again() -> None:
    pool = _Pool(H100)
    held, waits = pool.ask("ada"), pool.ask("bob")
    pool.queue.set_aside("s0", "restarting")
    assert pool.queue.holder(held.lease) is None
    assert not waits.is_answered
    pool.queue.ready("s0", H100, "GPU-other", "second")
    assert waits.slot is not None
    assert waits.slot.gpu == "GPU-other"
    assert not pool.queue.knows("GPU-s0")


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_given_twice_or_lost_whatever_happens(seed: int) -> None:
    random = Random(seed)
    pool = _Pool(*[H100] * 4)
    wishes: list[_Asked] = []
    for step in range(2000):
        held = [one for one in wishes if one.slot and pool.queue.holder(one.lease)]
        places = [one.slot.id for one in held if one.slot]
        assert len(set(places)) == len(places) <= 4
        match random.randrange(6):
            case 0 | 1 | 2:
                work = random.choice(["", f"e{random.randrange(9)}"])
                wishes.append(pool.ask(random.choice(["ada", "bob"]), errand=work))
            case 3 | 4 if held:
                pool.queue.release(random.choice(held).lease)
            case 5 if held and step % 7 == 0:
                slot = random.choice(held).slot
                assert slot is not None
                pool.queue.set_aside(slot.id, "restarting")
                pool.queue.ready(slot.id, H100, slot.gpu, str(step))
            case _:
                pool.queue.end_errand("ada", f"e{random.randrange(9)}")
    while held := [one for one in wishes if pool.queue.holder(one.lease)]:
        pool.queue.release(held[0].lease)
    assert all(one.slot is not None for one in wishes)
    assert {slot.state for slot in pool.queue.slots.values()} == {"free"}
    assert all(standing.holds == 0 for standing in pool.queue.callers.values())
