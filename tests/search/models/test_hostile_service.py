"""Answers that no service would give, and what a gateway may make of them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import ClaudeAccess
from kopt.search.models.anthropic_model import AnthropicModel, ReplyLimits
from kopt.search.models.errors import CallFailed, Halt
from kopt.search.models.model import MOST_LEVELS, ModelReply
from kopt.search.records.budget import Budget
from support.call_ledgers import desk_for, open_ledger
from support.fake_messages import FakeMessages
from support.messages_faults import Fault, Raw, Refused
from support.messages_wire import ToolCall, Turn, event, reply, stream_events
from support.model_requests import COMPILE, MODEL, ask_for

KEY = "sk-made-up-key-0123456789"
SMALL = ReplyLimits(reply_bytes=4096)


def answer_to(fault: Fault, limits: ReplyLimits | None = None) -> ModelReply | CallFailed:
    with FakeMessages(lambda body: Turn("another one"), [fault]) as fake:
        model = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=fake.url), Halt(), limits)
        try:
            return model.reply(ask_for(tools=(COMPILE,)))
        except CallFailed as failure:
            return failure
        finally:
            model.close()


def stream_of(turn: Turn, **changes: Any) -> bytes:
    return b"".join(stream_events(reply(turn, MODEL, 1) | changes))


def with_block(block: dict[str, Any]) -> bytes:
    """Return a stream that begins with this block, as it is."""
    begin, *rest = stream_events(reply(Turn(""), MODEL, 1))
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    stop = {"type": "content_block_stop", "index": 0}
    return b"".join([begin, event(start), event(stop), *rest])


def nested(levels: int) -> dict[str, Any]:
    inner: Any = 0
    for _ in range(levels):
        inner = [inner]
    return {"source": inner}


@pytest.mark.parametrize(
    "stream",
    [
        with_block({"type": "text"}),
        with_block({"type": "text", "text": 5}),
        with_block({"text": "of no type"}),
        with_block({"type": "tool_use", "id": "t", "input": {}}),
        with_block({"type": "text", "text": "half a letter: \ud800"}),
        with_block({"type": "text", "text": "x", "more": float("nan")}),
        with_block({"type": "text", "text": "x", "more": nested(900)}),
        stream_of(Turn("", (ToolCall("compile", nested(MOST_LEVELS)),))),
        stream_of(Turn("", (ToolCall("compile", {"first": float("nan")}),))),
        stream_of(Turn("x", stop="x" * 1000)),
        stream_of(Turn("x", usage={"input_tokens": 10**20, "output_tokens": 7})),
        stream_of(Turn("x", usage={"input_tokens": -1, "output_tokens": 7})),
        stream_of(Turn("x", usage={"input_tokens": 0, "output_tokens": 7})),
        stream_of(Turn("x", usage={"input_tokens": 50, "output_tokens": 0})),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_what_cannot_be_kept_or_counted_is_a_broken_reply(stream: bytes) -> None:
    outcome = answer_to(Raw(stream))
    assert isinstance(outcome, CallFailed)
    assert (outcome.kind, outcome.may_cost) == ("us", True)
    assert len(str(outcome)) < 800


def test_deep_arguments_that_are_kept_can_be_sent_back_and_read_again(tmp_path: Path) -> None:
    call = ToolCall("compile", nested(MOST_LEVELS - 3))
    with FakeMessages(lambda body: Turn("", (call,))) as fake:
        model = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=fake.url), Halt())
        with open_ledger(tmp_path) as ledger:
            desk = desk_for(model, ledger)
            first = desk.ask(ask_for(tools=(COMPILE,)))
            said = {"role": "assistant", "content": list(first.content)}
            result = {"type": "tool_result", "tool_use_id": "toolu_0001_0", "content": "no"}
            messages = (*ask_for().messages, said, {"role": "user", "content": [result]})
            desk.ask(ask_for("r1/b0/coder/1", tools=(COMPILE,), messages=messages))
            last = desk.last_of("r1/b0/coder")
        model.close()
    assert last is not None and last.request.messages == messages


def test_reply_without_counts_is_paid_at_its_worst_and_ends_at_the_budget(tmp_path: Path) -> None:
    usage = {"input_tokens": 0, "output_tokens": 0}
    with FakeMessages(lambda body: Turn("free of charge", usage=usage)) as fake:
        model = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=fake.url), Halt())
        with open_ledger(tmp_path, Budget(usd=1.0)) as ledger:
            with pytest.raises(CallFailed, match="how many tokens"):
                desk_for(model, ledger).ask(ask_for())
            rows = ledger.rows("state, cost_microusd = reserved_microusd, cost_microusd > 0")
        model.close()
    assert rows == [("unknown", 1, 1)] * 3


@pytest.mark.parametrize(
    "fault",
    [
        Raw(stream_of(Turn("x" * 10_000))),
        Raw(b"event: content_block_delta\ndata: " + b"x" * 10_000),
        Refused(500, words="x" * 10_000),
    ],
)
def test_answer_beyond_all_bounds_is_not_read_to_its_end(fault: Fault) -> None:
    outcome = answer_to(fault, SMALL)
    assert isinstance(outcome, CallFailed)
    assert (outcome.kind, "RemoteProtocolError" in str(outcome)) == ("time", True)


def test_answer_that_would_grow_as_it_is_read_is_not_taken() -> None:
    packed = gzip.compress(stream_of(Turn("x" * 10_000)))
    outcome = answer_to(
        Raw(packed, {"content-type": "text/event-stream", "content-encoding": "gzip"}), SMALL
    )
    assert isinstance(outcome, CallFailed) and outcome.may_cost


def test_prompt_goes_to_no_other_place_than_the_one_named() -> None:
    with FakeMessages(lambda body: Turn("elsewhere")) as other:
        outcome = answer_to(Refused(307, {"location": f"{other.url}/v1/messages"}))
    assert isinstance(outcome, CallFailed)
    assert (outcome.kind, "ANTHROPIC_BASE_URL" in str(outcome), other.requests) == (
        "user",
        True,
        [],
    )


@pytest.mark.parametrize("status", [400, 401, 500])
def test_words_of_the_service_are_short_and_harmless(status: int) -> None:
    outcome = answer_to(Refused(status, words="\x1b[31m\ud800" + "y" * 100_000 + KEY))
    assert isinstance(outcome, CallFailed)
    assert len(str(outcome)) < 800 and outcome.message.isprintable()
    assert KEY not in str(outcome)
    json.dumps(outcome.message, ensure_ascii=False).encode()
