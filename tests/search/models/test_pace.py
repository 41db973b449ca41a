"""How the pace of calls follows what the service takes."""

from kopt.search.models.pace import COOL_DOWN_S, AdaptiveLimit, MinuteBucket


def test_refusals_of_one_episode_shrink_the_limit_once() -> None:
    limit = AdaptiveLimit(20)
    for at_s in (0.0, 1.0, COOL_DOWN_S - 0.1):
        limit.refused(at_s)
    assert limit.allowed == 16
    limit.refused(COOL_DOWN_S)
    assert limit.allowed == 12


def test_limit_never_falls_below_one_call() -> None:
    limit = AdaptiveLimit(2)
    for episode in range(50):
        limit.refused(episode * COOL_DOWN_S)
    assert limit.allowed == 1


def test_limit_grows_by_a_twentieth_per_clean_round_up_to_where_it_began() -> None:
    limit = AdaptiveLimit(20)
    limit.refused(0.0)
    for _ in range(15):
        limit.answered()
    assert limit.allowed == 16
    for _ in range(17 * 2):
        limit.answered()
    assert limit.allowed == 17
    for _ in range(1000):
        limit.answered()
    assert limit.allowed == 20


def test_refusal_ends_a_clean_round() -> None:
    limit = AdaptiveLimit(10)
    limit.refused(0.0)
    for _ in range(100):
        for _ in range(7):
            limit.answered()
        limit.refused(1.0)  # within the cool-down: shrinks nothing, but the round was not clean
    assert limit.allowed == 8


def test_bucket_gives_a_minutes_worth_at_once_and_then_as_it_flows_in() -> None:
    bucket = MinuteBucket(60.0, now_s=0.0)
    assert bucket.wait_s(60.0, 0.0) == 0.0
    bucket.take(60.0, 0.0)
    assert bucket.wait_s(10.0, 0.0) == 10.0
    assert bucket.wait_s(10.0, 10.0) == 0.0


def test_more_than_a_minutes_worth_waits_for_a_full_bucket_and_leaves_a_debt() -> None:
    bucket = MinuteBucket(60.0, now_s=0.0)
    assert bucket.wait_s(100.0, 0.0) == 0.0
    bucket.take(100.0, 0.0)
    assert bucket.wait_s(1.0, 0.0) == 41.0


def test_what_is_given_back_does_not_overflow() -> None:
    bucket = MinuteBucket(60.0, now_s=0.0)
    bucket.take(-1000.0, 0.0)
    bucket.take(60.0, 0.0)
    assert bucket.wait_s(1.0, 0.0) == 1.0
