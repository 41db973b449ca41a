"""What a client prints is data, whatever it is: a reply, or a failure in one line."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from kopt.config.providers import Provider
from kopt.search.models.errors import CallFailed, Halt
from kopt.search.models.headless.bounded_process import Ended
from kopt.search.models.headless.claude_code import ClaudeCode
from kopt.search.models.headless.client import HeadlessClient, Said, events
from kopt.search.models.headless.codex import Codex
from kopt.search.models.headless.headless_model import HeadlessModel
from kopt.search.models.headless.installed import InstalledClient
from kopt.search.models.prices import load_prices
from support.model_requests import ask_for

LIMIT = {"status": "rejected"}
LOST = "the service is not there"


def _client(folder: Path, provider: Provider = "claude-code") -> HeadlessClient:
    installed = InstalledClient(provider, folder / "client", os.environ)
    if provider == "codex":
        return Codex(installed, "{}")
    return ClaudeCode(installed, load_prices(folder))


def _read(client: HeadlessClient, *told: dict[str, Any]) -> Said:
    request = ask_for(model="claude-code:claude-opus-5-5")
    lines = "\n".join(json.dumps(one) for one in told)
    return client.read(request, Ended(0, lines, ""))


def test_lines_end_where_json_ends_them() -> None:
    said = {"type": "result", "result": "a\u2028b\u2029c\x85d"}
    assert events(json.dumps(said, ensure_ascii=False) + "\n") == [said]


@pytest.mark.parametrize("offered", [{"tools": 5}, {"mcp_servers": {"a": 1}}, {"tools": "Bash"}])
def test_tools_in_no_list_are_tools(tmp_path: Path, offered: dict[str, Any]) -> None:
    with pytest.raises(CallFailed, match="offers tools of its own"):
        _read(_client(tmp_path), {"subtype": "init", **offered})


def test_limit_that_ends_in_no_time_is_not_waited_for(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = [
        {"subtype": "init"},
        {"error": "rate_limit", "rate_limit_info": {**LIMIT, "resetsAt": 10**400}},
        {"type": "result", "is_error": True, "result": "limit"},
    ]
    with pytest.raises(CallFailed) as caught:
        _read(_client(tmp_path), *told)
    assert (caught.value.retry_after_s or 0) > time.time()


def test_failure_of_any_length_is_one_line_without_the_token_in_it(tmp_path: Path) -> None:
    message = f"{LOST} sk-{'s' * 590} " + "-eyJaaaaaaaaaa model" * 200_000
    told: list[dict[str, Any]] = [
        {"type": "turn.started"},
        {"type": "turn.failed", "error": {"message": message}},
    ]
    with pytest.raises(CallFailed) as caught:
        _read(_client(tmp_path, "codex"), *told)
    assert f"{LOST} [key]" in str(caught.value) and len(str(caught.value)) < 700


def test_answer_is_kept_where_the_folder_of_the_turn_cannot_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "client"
    usage = {"modelUsage": {"m": {"inputTokens": 1}}, "total_cost_usd": 0.5}
    told: list[dict[str, Any]] = [
        {"subtype": "init"},
        {"type": "result", "result": "here it is", **usage},
    ]
    lines = "\n".join(json.dumps(one) for one in told)
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{lines}\nEOF\n", "utf-8")
    program.chmod(0o755)

    def busy(*_: object, **__: object) -> None:
        raise OSError("Directory not empty")

    monkeypatch.setattr("os.rmdir", busy)
    model = HeadlessModel(_client(tmp_path), Halt())
    request = ask_for(model="claude-code:claude-opus-5-5")
    assert model.reply(request).text == "here it is"
