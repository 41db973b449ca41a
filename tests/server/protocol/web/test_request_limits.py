"""Permits by key: a burst, a steady rate, no influence of others, bounded memory."""

from kopt.server.protocol.web.request_limits import RateLimiter


class Clock:
    """A clock that the test turns."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_a_burst_is_granted_and_then_refused_with_the_time_to_wait() -> None:
    limit = RateLimiter(per_s=0.5, at_once=3, clock=Clock())
    assert [limit.wait_s("a") for _ in range(4)] == [0, 0, 0, 2]


def test_after_the_wait_there_is_one_permit_again() -> None:
    clock = Clock()
    limit = RateLimiter(per_s=0.5, at_once=1, clock=clock)
    assert [limit.wait_s("a"), limit.wait_s("a")] == [0, 2]
    clock.now += 2
    assert [limit.wait_s("a"), limit.wait_s("a")] == [0, 2]


def test_asking_too_often_does_not_make_the_wait_longer() -> None:
    clock = Clock()
    limit = RateLimiter(per_s=1, at_once=1, clock=clock)
    assert [limit.wait_s("a") for _ in range(50)][1:] == [1] * 49
    clock.now += 1
    assert limit.wait_s("a") == 0


def test_one_caller_s_haste_is_not_another_s() -> None:
    limit = RateLimiter(per_s=1, at_once=1, clock=Clock())
    assert [limit.wait_s("a"), limit.wait_s("a"), limit.wait_s("b")] == [0, 1, 0]


def test_a_long_pause_saves_up_no_more_than_the_burst() -> None:
    clock = Clock()
    limit = RateLimiter(per_s=10, at_once=2, clock=clock)
    clock.now += 3600
    assert [limit.wait_s("a") for _ in range(3)] == [0, 0, 1]


def test_many_keys_do_not_push_out_one_that_keeps_coming() -> None:
    limit = RateLimiter(per_s=1, at_once=1, clock=Clock())
    limit.wait_s("busy")
    for number in range(20_000):
        limit.wait_s(f"other {number}")
        if number % 1000 == 0:
            assert limit.wait_s("busy") == 1
