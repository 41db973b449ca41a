"""Which measurements of a run are known, and that nothing is measured twice at the same time."""

import threading

from kopt.search.evaluation.evaluation_site import MeasuredOnce, known_measurements
from kopt.search.records.evaluation import KnownMeasurement
from support.checked_jobs import job
from support.populations import failed, member, passed, timed

BOUND_S = 30.0
BENCH = {"bench": "d" * 64, "check": "e" * 64}


def test_measurements_are_known_by_program_with_who_was_measured() -> None:
    one = timed(2.0, 1.5).model_copy(update={"equivalence": "p", "artifacts": BENCH})
    reused = one.model_copy(update={"measured_as": 4})
    (known,) = known_measurements([member(3, reused), member(4, one), member(5, reused)])
    assert (known.equivalence, known.candidate) == ("p", 4)
    assert known.artifacts == {"bench": "d" * 64}
    assert {value.metric for value in known.values} >= {"latency", "speedup"}


def test_estimates_failures_and_what_is_not_evaluated_yet_are_no_measurements() -> None:
    stopped = failed().model_copy(update={"equivalence": "q", "artifacts": BENCH})
    unknown = timed(2.0, 1.5).model_copy(update={"artifacts": BENCH})
    members = [member(0, passed(1.0, "p")), member(1, stopped), member(2, unknown), member(3, None)]
    assert known_measurements(members) == ()


def test_second_of_the_same_program_waits_for_the_first() -> None:
    once = MeasuredOnce()
    begun, may_end = threading.Event(), threading.Event()
    found: dict[int, int | None] = {}

    def measure(candidate: int) -> None:
        def now() -> KnownMeasurement:
            begun.set()
            assert may_end.wait(BOUND_S)
            return KnownMeasurement(equivalence="p", candidate=candidate, values=())

        known = once.measure(job(candidate), "p", now)
        found[candidate] = None if known is None else known.candidate

    first = threading.Thread(target=measure, args=[1])
    second = threading.Thread(target=measure, args=[2])
    first.start()
    assert begun.wait(BOUND_S)
    second.start()
    may_end.set()
    first.join(BOUND_S)
    second.join(BOUND_S)
    assert found == {1: 1, 2: 1}
