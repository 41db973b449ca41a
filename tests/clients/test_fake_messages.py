"""The stand-in for the Messages API speaks its wire format and refuses what the service refuses."""

import http.client
import json
from typing import Any

from support.fake_messages import FakeMessages, in_conversation
from support.messages_faults import Refused
from support.messages_wire import Exchange, ToolCall, Turn, complaint, exchanges

TOOLS = [{"name": "compile", "input_schema": {"type": "object"}}]
LONG = {"source": "x" * 100, "kernel": "a"}


def play(done: tuple[Exchange, ...]) -> Turn:
    turns = (
        Turn("I compile.", (ToolCall("compile", LONG),)),
        Turn("", (ToolCall("compile", {}), ToolCall("check", {}))),
    )
    return {0: turns[0], 1: turns[1]}.get(len(done), Turn("done"))


def request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {"role": "user", "content": "make it fast"}
    return {
        "model": "m",
        "max_tokens": 10,
        "tools": TOOLS,
        "messages": [asked, *messages],
        **more,
    }


def said(*calls: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": call, "name": "compile", "input": LONG} for call in calls]
    return {"role": "assistant", "content": blocks}


def results(*calls: str, content: Any = "passed") -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": call, "content": content} for call in calls]
    return {"role": "user", "content": blocks}


def post(fake: FakeMessages, body: dict[str, Any]) -> tuple[int, bytes, str]:
    connection = http.client.HTTPConnection(fake.url.removeprefix("http://"), timeout=5)
    try:
        connection.request("POST", "/v1/messages?beta=true", json.dumps(body))
        reply = connection.getresponse()
        return reply.status, reply.read(), reply.headers["content-type"]
    finally:
        connection.close()


def answer(fake: FakeMessages, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(post(fake, body)[1])
    return message


def events(stream: bytes) -> list[dict[str, Any]]:
    """Read server-sent events; the name of each must be the type in its data."""
    found: list[dict[str, Any]] = []
    for event in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def test_script_goes_on_with_the_results_of_the_history() -> None:
    with FakeMessages(in_conversation(play)) as fake:
        first = answer(fake, request())
        second = answer(fake, request(said("a"), results("a")))
        third = answer(fake, request(said("a"), results("a"), said("b"), results("b")))
    assert [block["type"] for block in first["content"]] == ["text", "tool_use"]
    assert [block["name"] for block in second["content"]] == ["compile", "check"]
    assert third["content"] == [{"type": "text", "text": "done"}]
    assert [m["stop_reason"] for m in (first, second, third)] == [*["tool_use"] * 2, "end_turn"]


def test_same_request_twice_gets_the_same_turn() -> None:
    with FakeMessages(in_conversation(play)) as fake:
        contents = [answer(fake, request())["content"] for _ in range(2)]
    assert [c[1]["input"] for c in contents] == [LONG, LONG]


def test_streamed_reply_adds_up_to_the_plain_one() -> None:
    with FakeMessages(in_conversation(play)) as fake:
        plain = answer(fake, request())
        status, stream, content_type = post(fake, request(stream=True))
    found = events(stream)
    texts = [e["delta"] for e in found if e["type"] == "content_block_delta"]
    assert (status, content_type.partition(";")[0]) == (200, "text/event-stream")
    assert "".join(d.get("text", "") for d in texts) == plain["content"][0]["text"]
    assert json.loads("".join(d.get("partial_json", "") for d in texts)) == LONG
    assert found[0]["type"] == "message_start" and found[-1]["type"] == "message_stop"
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


def test_long_block_comes_in_several_deltas() -> None:
    with FakeMessages(in_conversation(play)) as fake:
        found = events(post(fake, request(stream=True))[1])
    pieces = [e for e in found if e.get("delta", {}).get("type") == "input_json_delta"]
    assert len(pieces) > 3
    assert {e["index"] for e in pieces} == {1}


def test_scripted_failure_comes_first_and_once() -> None:
    with FakeMessages(in_conversation(play), [Refused(529)]) as fake:
        status, body, _ = post(fake, request())
        again = answer(fake, request())
    assert (status, json.loads(body)["error"]["type"]) == (529, "overloaded_error")
    assert again["type"] == "message"


def test_request_without_tools_leaves_the_script_alone() -> None:
    with FakeMessages(in_conversation(play)) as fake:
        title = answer(fake, request(tools=[]))
    assert title["content"] == [{"type": "text", "text": "ok"}]


def test_script_that_fails_is_told_to_the_client() -> None:
    def broken(done: tuple[Exchange, ...]) -> Turn:
        raise KeyError(f"run_id after {len(done)} calls")

    with FakeMessages(in_conversation(broken)) as fake:
        status, body, _ = post(fake, request())
    assert (status, "run_id after 0 calls" in body.decode()) == (400, True)


def test_broken_history_is_answered_with_400() -> None:
    with FakeMessages(in_conversation(play)) as fake:
        status, body, _ = post(fake, request(said("a")))
    assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")


def test_call_without_result_is_complained_about() -> None:
    assert "`tool_result` blocks immediately after: b" in str(
        complaint(request(said("a", "b"), results("a")))
    )


def test_result_without_call_is_complained_about() -> None:
    assert "unexpected `tool_use_id`" in str(complaint(request(said("a"), results("a", "z"))))


def test_history_must_begin_with_the_user() -> None:
    assert "first message" in str(complaint({**request(), "messages": [said()]}))


def test_whole_history_is_not_complained_about() -> None:
    assert complaint(request(said("a", "b"), results("a", "b"))) is None


def test_text_blocks_of_a_result_are_joined() -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    (exchange,) = exchanges([said("a"), results("a", content=blocks)])
    assert exchange == Exchange(ToolCall("compile", LONG), "one\ntwo", is_error=False)
