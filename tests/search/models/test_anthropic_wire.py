"""Every way in which the loopback service fails to answer, and what is made of it."""

import socket

import pytest

from kopt.config.settings import ClaudeAccess
from kopt.search.models.anthropic_model import AnthropicModel, ReplyLimits
from kopt.search.models.errors import CallFailed, Halt
from support.fake_messages import FakeMessages
from support.messages_faults import Break, BrokenStream, Fault, Page, Refused, SignsOfLife, Silence
from support.messages_wire import Turn
from support.model_requests import ask_for

KEY = "sk-made-up-key-0123456789"
QUICK = ReplyLimits(connect_s=5.0, silence_s=0.1, reply_s=5.0)


def failure_of(url: str, limits: ReplyLimits | None = None) -> CallFailed:
    model = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=url), Halt(), limits)
    with pytest.raises(CallFailed) as caught:
        model.reply(ask_for())
    model.close()
    assert KEY not in str(caught.value)
    return caught.value


def fail_with(fault: Fault, limits: ReplyLimits | None = None) -> tuple[CallFailed, int]:
    with FakeMessages(lambda body: Turn("a second request"), [fault]) as fake:
        failure = failure_of(fake.url, limits)
        return failure, len(fake.requests)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "us"),
        (401, "user"),
        (402, "user"),
        (403, "user"),
        (404, "user"),
        (409, "time"),
        (413, "us"),
        (422, "us"),
        (429, "time"),
        (500, "time"),
        (503, "time"),
        (529, "time"),
    ],
)
def test_status_says_who_can_mend_it_and_nothing_is_repeated(status: int, kind: str) -> None:
    failure, requests = fail_with(Refused(status))
    assert (failure.kind, failure.status, failure.may_cost, requests) == (kind, status, False, 1)
    assert "scripted failure" in str(failure) and "req_0001" in str(failure)


@pytest.mark.parametrize("status", [408, 504, 524])
def test_service_that_ran_out_of_time_may_have_to_be_paid(status: int) -> None:
    failure, _ = fail_with(Refused(status))
    assert (failure.kind, failure.may_cost) == ("time", True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "1", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_service_may_say_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert fail_with(Refused(429, headers))[0].retry_after_s == seconds


def test_key_that_the_service_repeats_is_not_told() -> None:
    failure, _ = fail_with(Refused(401, words=f"no such key: {KEY}"))
    assert "no such key: [key]" in str(failure)
    assert "ANTHROPIC_API_KEY" in str(failure)


@pytest.mark.parametrize("fault", [BrokenStream("cut"), BrokenStream("ended")])
def test_stream_that_breaks_may_have_to_be_paid(fault: BrokenStream) -> None:
    failure, requests = fail_with(fault)
    assert (failure.kind, failure.may_cost, requests) == ("time", True, 1)


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ("overloaded_error", "time", 529),
        ("rate_limit_error", "time", 429),
        ("api_error", "time", 500),
        ("never_heard_of_error", "time", 500),
        ("invalid_request_error", "us", 400),
    ],
)
def test_error_inside_a_stream_is_told_by_its_type(error: str, kind: str, status: int) -> None:
    failure, _ = fail_with(BrokenStream("error", error=error))
    assert (failure.kind, failure.status, failure.may_cost) == (kind, status, True)


@pytest.mark.parametrize("how", ["garbled", "no_stop", "no_usage"])
def test_reply_against_the_format_is_a_broken_one(how: Break) -> None:
    failure, _ = fail_with(BrokenStream(how))
    assert (failure.kind, failure.may_cost) == ("us", True)
    assert "the reply is broken" in str(failure)


def test_page_of_a_proxy_is_no_reply() -> None:
    failure, _ = fail_with(Page())
    assert (failure.kind, failure.may_cost) == ("time", True)


def test_service_that_says_nothing_may_still_have_to_be_paid() -> None:
    failure, _ = fail_with(Silence(), QUICK)
    assert (failure.kind, failure.may_cost) == ("time", True)
    assert "did not answer in time" in str(failure)


def test_signs_of_life_alone_end_at_the_time_limit_of_a_reply() -> None:
    failure, _ = fail_with(SignsOfLife(), ReplyLimits(silence_s=5.0, reply_s=0.1))
    assert (failure.kind, failure.may_cost) == ("time", True)


def test_service_that_is_not_there_costs_nothing() -> None:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        failure = failure_of(f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (failure.kind, failure.may_cost) == ("time", False)
    assert "cannot be reached" in str(failure) and "ANTHROPIC_BASE_URL" in str(failure)


def test_address_without_a_protocol_is_for_the_user_to_mend() -> None:
    failure = failure_of("127.0.0.1")
    assert (failure.kind, failure.may_cost) == ("user", False)
    assert "ANTHROPIC_BASE_URL" in str(failure)
