"""Claude behind the Messages API, against the loopback service: requests, replies, usage."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import ClaudeAccess
from kopt.search.models.anthropic_model import AnthropicModel
from kopt.search.models.errors import CallFailed, Halt, Stopped
from kopt.search.models.model import SystemBlock, Usage
from support.fake_messages import BodyScript, FakeMessages
from support.messages_wire import ToolCall, Turn, cached_usage
from support.model_requests import COMPILE, MODEL, ask_for

KEY = "sk-made-up-key-0123456789"
SOURCE = "__global__ void f() {}\n" * 9


@contextmanager
def claude(script: BodyScript) -> Generator[tuple[FakeMessages, AnthropicModel]]:
    with FakeMessages(script) as fake:
        model = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=fake.url), Halt())
        yield fake, model
        model.close()


def test_reply_has_text_stop_usage_and_what_to_name_when_asking() -> None:
    turn = Turn("It is faster now.", usage=cached_usage(read=2000, hour=300, five=20))
    with claude(lambda body: turn) as (_, model):
        reply = model.reply(ask_for())
    assert (reply.text, reply.stop, reply.model) == ("It is faster now.", "end_turn", MODEL)
    assert reply.usage == Usage(
        input_tokens=50,
        cache_read_tokens=2000,
        cache_write_1h_tokens=300,
        cache_write_5m_tokens=20,
        output_tokens=7,
    )
    assert (reply.request_id, reply.refusal) == ("req_0001", None)
    assert reply.latency_s > 0.0


def test_conversation_goes_on_with_thinking_sent_back_unchanged() -> None:
    first = Turn("I compile.", (ToolCall("compile", {"source": SOURCE}),), thinking="Vectors help.")

    def play(body: dict[str, object]) -> Turn:
        return Turn("done") if "tool_result" in str(body["messages"]) else first

    with claude(play) as (fake, model):
        asked = ask_for(tools=(COMPILE,))
        reply = model.reply(asked)
        (call,) = reply.tool_calls
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "compiled"}
        said = {"role": "assistant", "content": list(reply.content)}
        messages = (*asked.messages, said, {"role": "user", "content": [result]})
        last = model.reply(ask_for("r1/b0/coder/1", tools=(COMPILE,), messages=messages))
    assert (call.name, call.arguments, reply.stop) == ("compile", {"source": SOURCE}, "tool_use")
    assert last.text == "done"
    kinds = [block["type"] for block in fake.requests[1]["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]
    assert fake.requests[1]["messages"][1]["content"][0]["signature"] == "sig1"
    assert fake.requests[1]["messages"][:1] == fake.requests[0]["messages"]


def test_request_asks_for_effort_and_summaries_and_marks_what_is_to_be_cached() -> None:
    blocks = (SystemBlock(text="rules", cache="1h"), SystemBlock(text="kernel", cache="5m"))
    with claude(lambda body: Turn("ok")) as (fake, model):
        model.reply(ask_for(system=blocks, tools=(COMPILE,), effort="high"))
    (body,) = fake.requests
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "high"}
    assert [block["cache_control"]["ttl"] for block in body["system"]] == ["1h", "5m"]
    assert body["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert (body["max_tokens"], body["stream"]) == (1000, True)
    assert "tool_choice" not in body and "temperature" not in body


def test_a_single_question_does_not_pay_for_a_cache_of_its_own() -> None:
    with claude(lambda body: Turn("ok")) as (fake, model):
        model.reply(ask_for())
    assert "cache_control" not in str(fake.requests[0])


def test_schema_of_the_answer_is_sent_as_far_as_the_service_enforces_it() -> None:
    schema = {
        "type": "object",
        "properties": {"tile": {"type": "integer", "minimum": 1}},
        "required": ["tile"],
    }
    with claude(lambda body: Turn('{"tile": 0}')) as (fake, model):
        reply = model.reply(ask_for(answer_schema=schema))
    sent = fake.requests[0]["output_config"]["format"]
    assert sent["type"] == "json_schema"
    assert sent["schema"]["additionalProperties"] is False
    assert "minimum" not in sent["schema"]["properties"]["tile"]
    assert reply.text == '{"tile": 0}'


def test_refusal_is_a_reply_with_its_reason() -> None:
    turn = Turn("", refusal=("frontier_llm", "It looks like training code."))
    with claude(lambda body: turn) as (_, model):
        reply = model.reply(ask_for())
    assert reply.stop == "refusal"
    assert reply.refusal == "frontier_llm: It looks like training code."
    assert reply.usage.output_tokens == 7


@pytest.mark.parametrize("stop", ["max_tokens", "pause_turn", "model_context_window_exceeded"])
def test_reply_that_stops_early_is_a_reply(stop: str) -> None:
    with claude(lambda body: Turn("half", stop=stop)) as (_, model):
        reply = model.reply(ask_for())
    assert (reply.text, reply.stop, reply.refusal) == ("half", stop, None)


def test_cache_writes_of_an_unknown_kind_count_as_the_dearer_one() -> None:
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 40}
    hour = ask_for(system=(SystemBlock(text="rules", cache="1h"),))
    with claude(lambda body: Turn("ok", usage=usage)) as (_, model):
        assert model.reply(hour).usage.cache_write_1h_tokens == 40
        assert model.reply(ask_for()).usage.cache_write_5m_tokens == 40


def test_key_is_in_the_header_and_in_no_log_or_reply(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with claude(lambda body: Turn("ok")) as (fake, model):
        reply = model.reply(ask_for())
    assert KEY in str(fake.headers)
    assert KEY not in caplog.text
    assert KEY not in reply.model_dump_json() + str(fake.requests)


def test_stopped_run_ends_a_call_in_the_middle_of_its_reply() -> None:
    halt = Halt()

    def play(body: dict[str, object]) -> Turn:
        halt.stop()
        return Turn("too late")

    with FakeMessages(play) as fake:
        model = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=fake.url), halt)
        with pytest.raises(Stopped):
            model.reply(ask_for())
        model.close()


@pytest.mark.parametrize("status", [401, 403])
def test_key_that_is_refused_is_told_before_anything_is_asked(status: int) -> None:
    with claude(lambda body: Turn("ok")) as (fake, model):
        fake.lookup_status = status
        with pytest.raises(CallFailed, match="key") as caught:
            model.check_access()
    assert (caught.value.kind, fake.requests) == ("user", [])


@pytest.mark.parametrize("status", [200, 404, 429, 500])
def test_service_that_cannot_tell_is_believed(status: int) -> None:
    with claude(lambda body: Turn("ok")) as (fake, model):
        fake.lookup_status = status
        model.check_access()


def test_service_that_is_not_there_is_believed_until_it_is_needed() -> None:
    with claude(lambda body: Turn("ok")) as (_, model):
        pass
    model.check_access()


def test_address_that_is_none_is_told_without_showing_it() -> None:
    access = ClaudeAccess(api_key=KEY, base_url="http://me:word@host:port")
    with pytest.raises(SetupError, match="ANTHROPIC_BASE_URL") as caught:
        AnthropicModel(access, Halt())
    assert "word" not in str(caught.value)
