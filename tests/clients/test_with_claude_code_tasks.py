"""Claude Code on a terminal declares the Tasks extension: long work is pushed to it when done."""

import json
from uuid import uuid4

from support.fake_messages import FakeMessages, in_conversation
from support.messages_wire import Exchange, ToolCall, Turn
from support.real_clients import KOPT, Clients
from support.samples import SILU, plain_source

API_KEY = "scripted-key-0123456789abcdef"
# Without waiting, so that it is a task however fast the machine checks.
CHECK = {"kernel": SILU, "path": "mine.cu", "device": "sim", "level": "full", "wait_s": 0}


def _check_then_rest(done: tuple[Exchange, ...]) -> Turn:
    """Call until there is such a tool: at the first turn the server may still be starting."""
    if done and "No such tool" not in done[-1].text:
        return Turn("I wait for the result.")
    return Turn("I check it.", (ToolCall("mcp__kopt__check_correctness", CHECK),))


def _settle_in(clients: Clients) -> None:
    """Write what Claude Code keeps of a person who has used it in this folder before."""
    trusted = {str(clients.project): {"hasTrustDialogAccepted": True}}
    keys = {"approved": [API_KEY[-20:]], "rejected": []}
    state = {"hasCompletedOnboarding": True, "projects": trusted, "customApiKeyResponses": keys}
    servers = {"mcpServers": {"kopt": {"command": str(KOPT), "args": ["serve"]}}}
    (clients.home / ".claude.json").write_text(json.dumps(state), "utf-8")
    (clients.home / "mcp.json").write_text(json.dumps(servers), "utf-8")
    # A source that nobody has checked: a result that is at hand is no task.
    source = f"{plain_source('good_scalar.cu')}// {uuid4()}\n"
    (clients.project / "mine.cu").write_text(source, "utf-8")


def test_result_of_a_task_is_pushed_into_the_conversation(clients: Clients) -> None:
    _settle_in(clients)
    words = ["--mcp-config", clients.home / "mcp.json", "--strict-mcp-config"]
    words += ["--allowedTools", "mcp__kopt", "--", "Check mine.cu."]

    with FakeMessages(in_conversation(_check_then_rest)) as fake:

        def messages() -> str:
            return json.dumps([request["messages"] for request in list(fake.requests)])

        client = clients.on_terminal(
            "claude",
            *words,
            ANTHROPIC_BASE_URL=fake.url,
            ANTHROPIC_API_KEY=API_KEY,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )
        assert client.run_until(lambda: "<task-notification>" in messages()), messages()[-3000:]
        said = messages().replace("\\", "")
    assert "started server-side task job-" in said
    assert "<status>completed</status>" in said
    assert '"status":"passed"' in said
    assert clients.left_over() == []
