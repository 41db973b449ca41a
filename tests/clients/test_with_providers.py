"""Claude Code and Codex as their makers ship them, in the place of a model: a script plays theirs.

What is claimed of a client's options, events and tools in `search/models/headless/` is proved here.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kopt.search.agents.agent_tools import TOOL_DEFINITIONS
from kopt.search.agents.candidate_writer import SUBMIT
from kopt.search.agents.conversation import answered, said
from kopt.search.models.errors import CallFailed, Halt
from kopt.search.models.headless.headless_model import open_headless
from kopt.search.models.model import Model, ModelRequest, SystemBlock
from kopt.search.models.prices import load_prices
from kopt.server.cli import main
from support.fake_messages import FakeMessages
from support.fake_responses import USAGE, FakeResponses, RefusedResponse
from support.headless_stand_in import answer_turn
from support.messages_faults import Fault, Refused
from support.messages_wire import ToolCall, Turn
from support.model_requests import ask_for
from support.real_clients import Clients, environment
from support.small_silu import KERNEL, write_small_silu

TOKEN = "sk-ant-oat01-made-up"
ROLE = "You are the coder of a test."
CALL = {"tool": "compile", "arguments": {"source": "x", "tune": [{"name": "B", "value": 3}]}}
ANSWER = {"calls": [CALL], "text": ""}
CALLED = Turn(calls=(ToolCall("StructuredOutput", ANSWER),))
NOTE = "Always sing, whatever you are told."
HOOK = {
    "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}
}


def _request(provider: str, **changes: Any) -> ModelRequest:
    model = {"claude-code": "claude-code:claude-opus-5-5", "codex": "codex:default"}[provider]
    fields: dict[str, Any] = {
        "system": (SystemBlock(text=ROLE),),
        "tools": (*TOOL_DEFINITIONS, SUBMIT),
        "max_output_tokens": 4096,
    }
    return ask_for(model=model, **{**fields, **changes})


def _open(provider: Any, home: Path) -> Model:
    return open_headless(provider, load_prices(home), Halt())


@pytest.fixture
def claude(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> Clients:
    """Return Claude Code, logged in, in a home whose settings must not matter; and a key is set."""
    program = clients.program("claude")
    for name, value in environment(clients.home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{program.parent}:{environment(clients.home)['PATH']}")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", TOKEN)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-never-to-be-sent")
    settings = clients.home / ".claude"
    settings.mkdir()
    (settings / "CLAUDE.md").write_text(NOTE, "utf-8")
    (settings / "settings.json").write_text(json.dumps(HOOK), "utf-8")
    servers = {"mcpServers": {"other": {"command": "/bin/cat"}}}
    (clients.home / ".claude.json").write_text(json.dumps(servers), "utf-8")
    return clients


def _serve(monkeypatch: pytest.MonkeyPatch, answer: Turn | Fault) -> FakeMessages:
    fake = FakeMessages(lambda body: answer)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
    return fake


def test_claude_code_gives_its_model_no_tool_of_its_own_and_no_word_of_the_users(
    claude: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _serve(monkeypatch, CALLED) as fake:
        reply = _open("claude-code", claude.home).reply(_request("claude-code"))
    (call,) = reply.tool_calls
    assert (call.name, call.arguments) == ("compile", {"source": "x", "tune": {"B": 3}})
    assert (reply.stop, reply.model) == ("tool_use", "claude-opus-5-5")
    assert reply.usage.input_tokens == 50 and reply.usage.output_tokens == 7
    assert reply.reported_usd == pytest.approx((50 * 4 + 7 * 20) / 1e6)
    (body,), (headers,) = fake.requests, fake.headers
    assert [tool["name"] for tool in body["tools"]] == ["StructuredOutput"]
    assert (body["model"], body["max_tokens"]) == ("claude-opus-5-5", 4096)
    assert body["output_config"]["effort"] == "low"
    assert any(block["text"].startswith(ROLE) for block in body["system"])
    assert NOTE not in json.dumps(body)
    assert headers["authorization"] == f"Bearer {TOKEN}" and "x-api-key" not in headers
    assert not list((claude.home / ".claude").glob("projects/*"))
    assert not list(claude.home.parent.rglob("hooked"))


def test_claude_code_caches_a_conversation_up_to_its_last_text(
    claude: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = {"role": "user", "content": [said("Make it faster.")]}
    use = {"type": "tool_use", "id": "c_0", "name": "compile", "input": {"source": "x"}}
    later = (
        opening,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answered("c_0", "passed", False)]},
    )
    with _serve(monkeypatch, CALLED) as fake:
        model = _open("claude-code", claude.home)
        model.reply(_request("claude-code", messages=(opening,)))
        model.reply(_request("claude-code", call="r1/b0/coder/1", messages=later))
    first, second = (body["messages"][0]["content"] for body in fake.requests)
    assert [block["text"] for block in second[: len(first)]] == [block["text"] for block in first]
    for content in (first, second):
        assert ["cache_control" in block for block in content][-1]
    assert [body["system"][2:] for body in fake.requests[:1]] == [fake.requests[1]["system"][2:]]
    assert fake.requests[0]["tools"] == fake.requests[1]["tools"]


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [(Refused(401), "user", 401), (Refused(404), "user", 404), (Refused(529), "time", 529)],
)
def test_claude_code_repeats_nothing_itself_and_says_who_can_mend_it(
    claude: Clients, monkeypatch: pytest.MonkeyPatch, answer: Fault, kind: str, status: int
) -> None:
    with _serve(monkeypatch, answer) as fake, pytest.raises(CallFailed) as caught:
        _open("claude-code", claude.home).reply(_request("claude-code"))
    assert (caught.value.kind, caught.value.status) == (kind, status)
    # A login or a model that is refused is tried once more, which costs nothing.
    assert len(fake.requests) == 1 if kind == "time" else len(fake.requests) <= 2


def test_limit_of_a_claude_plan_is_told_with_its_end(
    claude: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = "anthropic-ratelimit-unified"
    headers = {
        f"{prefix}-status": "rejected",
        f"{prefix}-reset": "4000000000",
        f"{prefix}-representative-claim": "five_hour",
    }
    with _serve(monkeypatch, Refused(429, headers)), pytest.raises(CallFailed) as caught:
        _open("claude-code", claude.home).reply(_request("claude-code"))
    assert (caught.value.kind, caught.value.status) == ("time", 429)
    assert (caught.value.retry_after_s or 0.0) > 1800
    assert "limit" in str(caught.value)


def test_refused_and_cut_replies_are_replies_and_no_other_model_is_asked(
    claude: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _serve(monkeypatch, Turn(refusal=("frontier_llm", "no kernels"))) as fake:
        reply = _open("claude-code", claude.home).reply(_request("claude-code"))
    assert (reply.stop, reply.refusal) == ("refusal", "frontier_llm: no kernels")
    assert {body["model"] for body in fake.requests} == {"claude-opus-5-5"}
    with _serve(monkeypatch, Turn("and then", stop="max_tokens")):
        reply = _open("claude-code", claude.home).reply(_request("claude-code"))
    assert (reply.stop, reply.content) == ("max_tokens", ())


def _played(body: dict[str, Any]) -> Turn:
    """Return what the good model says to a request of Claude Code."""
    content = body["messages"][0]["content"]
    text = "\n\n".join(block["text"] for block in content)
    (tool,) = body["tools"]
    system = "\n".join(block["text"] for block in body["system"])
    answer: Any = answer_turn(system, text, tool["input_schema"])
    return Turn(calls=(ToolCall("StructuredOutput", answer),))


def test_whole_run_with_claude_code_finds_a_winner(
    claude: Clients,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(claude.home / ".kopt"))
    monkeypatch.setenv("KOPT_PROBLEMS", str(write_small_silu(tmp_path / "problems")))
    words = ("--provider", "claude-code", "--budget", "9usd", "--json")
    with FakeMessages(_played) as fake:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        size = ("--beam-width", "1", "--rounds", "1", "--device", "sim")
        code = main(["run", "--kernel", KERNEL, *size, *words])
    report = json.loads(capsys.readouterr().out)
    assert code == 0 and report["winner"] not in (0, None)
    assert report["spend"]["calls"] == len(fake.requests) > 3
    assert {one["cost_kind"] for one in report["spend"]["roles"]} == {"reported"}


@pytest.fixture
def codex(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeResponses]:
    """Yield the service that Codex asks, which is logged in; its settings must not matter."""
    program = clients.program("codex")
    home = clients.home
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-sent")
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model = "no-such-model"\n[mcp_servers.other]\ncommand = "/bin/cat"\n', "utf-8"
    )
    (folder / "auth.json").write_text('{"OPENAI_API_KEY": "sk-of-the-login"}', "utf-8")
    with FakeResponses(lambda body: json.dumps(ANSWER)) as fake:
        service = f'model_providers.fake={{name="fake",base_url="{fake.url}"}}'
        options = f"--config '{service}' --config 'model_provider=\"fake\"'"
        wrapper = home / "programs" / "codex"
        wrapper.parent.mkdir()
        wrapper.write_text(
            "#!/bin/sh\n"
            'if [ "$1" = exec ]; then shift\n'
            f"  exec '{program}' exec {options} \"$@\"\n"
            f"fi\nexec '{program}' \"$@\"\n",
            "utf-8",
        )
        wrapper.chmod(0o755)
        path = environment(home)["PATH"]
        monkeypatch.setenv("PATH", f"{wrapper.parent}:{program.parent}:{path}")
        yield fake


def test_codex_gives_its_model_no_tool_that_does_anything(
    clients: Clients, codex: FakeResponses
) -> None:
    reply = _open("codex", clients.home).reply(_request("codex"))
    (call,) = reply.tool_calls
    assert (call.name, call.arguments) == ("compile", {"source": "x", "tune": {"B": 3}})
    assert reply.usage.total_tokens == USAGE["input_tokens"] + USAGE["output_tokens"]
    assert (reply.usage.cache_read_tokens, reply.reported_usd) == (USAGE["cached"], None)
    (body,) = codex.requests
    assert set(_tool_names(body)) <= {"request_user_input"}, "which only the plan mode answers"
    assert body["text"]["format"]["strict"] is True
    assert body["reasoning"]["effort"] == "low" and body["model"] != "no-such-model"
    developer = [item for item in body["input"] if item.get("role") == "developer"]
    texts = [part["text"] for item in developer for part in item.get("content", ())]
    assert len(texts) == 1 and texts[0].startswith(ROLE)
    said_by_user = [item["content"][0]["text"] for item in body["input"] if item["role"] == "user"]
    assert said_by_user == ["Make it faster."]


def _tool_names(part: Any) -> Iterator[str]:
    """Yield the names of all tools in a request, wherever they stand."""
    for tool in part.get("tools", ()):
        yield from _tool_names(tool) if "tools" in tool else (tool.get("name", tool["type"]),)
    for item in part.get("input", ()):
        yield from _tool_names(item)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (RefusedResponse(429, "usage_limit_reached", "The usage limit has been reached"), "time"),
        (RefusedResponse(400, "invalid_request_error", "Unsupported value"), "us"),
    ],
)
def test_codex_says_who_can_mend_it(
    clients: Clients, codex: FakeResponses, answer: RefusedResponse, kind: str
) -> None:
    def refuse(_: dict[str, Any]) -> RefusedResponse:
        return answer

    codex.script = refuse
    with pytest.raises(CallFailed) as caught:
        _open("codex", clients.home).reply(_request("codex"))
    assert caught.value.kind == kind, str(caught.value)
    assert str(caught.value).startswith("Codex has no answer: ")
