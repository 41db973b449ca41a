"""Claude Code as a model: `claude -p`, one process a turn, with no tool but the one for its answer.

Settings, hooks, memory files, plugins and MCP servers of the user are left out; the login is the
user's. Nothing is repeated by the client itself: `retry.py` has the only policy.

Source:
    `claude --help` and the events of Claude Code 2.1.329, tests/clients/test_with_providers.py.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kopt.config.providers import OWN_CHOICE, Provider, own_name
from kopt.search.models.errors import CallFailed, FailureKind
from kopt.search.models.model import ModelRequest, Usage
from kopt.search.models.prices import PriceTable
from kopt.search.models.prompt_bound import bound_prompt

from .bounded_process import Ended, ProgramStart
from .client import UNTIL_TOMORROW_S, Document, Said, ended_early, events, failed, tokens
from .installed import InstalledClient
from .turn import Turn

_ANSWER_TOOL = "StructuredOutput"
"""The tool that Claude Code makes of --json-schema."""
_ALONE = (
    *("--safe-mode", "--setting-sources", "", "--strict-mcp-config", "--tools", ""),
    *("--disable-slash-commands", "--no-session-persistence"),
)
_VARIABLES = {
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # With them, what it says of the machine ends the part of a prompt that is cached.
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
}
_LOGIN = "is not logged in: start `claude` once and /login, or set up `claude setup-token`"
_BY_ERROR: dict[str, tuple[FailureKind, int | None]] = {
    "authentication_failed": ("user", 401),
    "billing_error": ("user", 402),
    "model_not_found": ("user", 404),
    "rate_limit": ("time", 429),
    "server_error": ("time", None),
}
_UNKNOWN: tuple[FailureKind, int | None] = ("us", None)
_LATEST_S = 1e11
"""The end of the times that are taken for one, seconds since 1970."""
_TIMED_OUT = (408, 504, 524)  # the service had begun to work on the call


@dataclass(frozen=True)
class ClaudeCode:
    """Claude Code, headless."""

    installed: InstalledClient
    prices: PriceTable

    @property
    def provider(self) -> Provider:
        """Which client it is."""
        return "claude-code"

    def invocation(self, turn: Turn, folder: Path) -> ProgramStart:
        """Return what runs one turn; the conversation goes through a pipe."""
        request = turn.request
        system = folder / "system.md"
        system.write_text(turn.system, "utf-8")
        model = own_name(request.model)
        words = (
            *(str(self.installed.program), "-p", *_ALONE),
            *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
            *("--system-prompt-file", str(system), "--effort", request.effort),
            *("--json-schema", json.dumps(turn.schema)),
            *("--max-budget-usd", f"{self._most_usd(request):.6f}"),
            *(() if model == OWN_CHOICE else ("--model", model)),
        )
        limit = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens)}
        environment = {**self.installed.environment, **_VARIABLES, **limit}
        return ProgramStart(words, _message(turn), folder / "work", environment)

    def _most_usd(self, request: ModelRequest) -> float:
        """Return what is set aside for the call: the client asks no second time beyond it."""
        prompt, most = bound_prompt(request), request.max_output_tokens
        return self.prices.worst_case_microusd(request.model, prompt, most) / 1e6

    def read(self, request: ModelRequest, ended: Ended) -> Said:
        """Return what it has said.

        Raises:
            CallFailed: It gave no answer.
        """
        told = events(ended.output)
        begun = next((one for one in told if one.get("subtype") == "init"), None)
        if begun is None:
            raise ended_early(self.provider, ended, has_begun=False)
        self._refuse_tools(begun)
        result = next((one for one in reversed(told) if one.get("type") == "result"), None)
        if result is None or ended.cut:
            raise ended_early(self.provider, ended, has_begun=True)
        return self._said(request, told, result)

    def _refuse_tools(self, begun: Document) -> None:
        """Refuse a client that offers its model more than the tool for the answer."""
        tools, servers = _listed(begun.get("tools")), _listed(begun.get("mcp_servers"))
        if servers or any(one != _ANSWER_TOOL for one in tools):
            offered = ", ".join(map(str, (*tools, *servers)))
            what = f"offers tools of its own ({offered}), which kopt asks it not to: update it"
            raise failed(self.provider, "user", what, may_cost=True)

    def _said(self, request: ModelRequest, told: list[Document], result: Document) -> Said:
        usage, model = _usage(result)
        is_refused = result.get("stop_reason") == "refusal"
        is_cut = result.get("api_error") == "max_output_tokens"
        is_unusable = str(result.get("subtype")).startswith("error_max_")
        if result.get("is_error") and not (is_refused or is_cut or is_unusable):
            raise self._failure(told, result, usage)
        ids = [one.get("request_id") for one in told]
        common: dict[str, Any] = {
            "usage": usage,
            "model": model or own_name(request.model),
            "request_id": next((one for one in reversed(ids) if isinstance(one, str)), None),
            "reported_usd": self._cost(result, usage),
        }
        if is_refused:
            return Said(None, "", stop="refusal", refusal=_refusal(told), **common)
        if is_cut:
            return Said(None, "", stop="max_tokens", **common)
        text = result.get("result")
        return Said(
            value=result.get("structured_output"),
            text=text if isinstance(text, str) and not is_unusable else "",
            **common,
        )

    def _cost(self, result: Document, usage: Usage) -> float:
        """Return what it says that the turn cost.

        Raises:
            CallFailed: It says nothing of that, or of tokens.
        """
        usd = result.get("total_cost_usd")
        is_told = isinstance(usd, int | float) and not isinstance(usd, bool) and 0 <= usd < 1e5
        if is_told and usage.total_tokens:
            return float(cast(float, usd))
        raise failed(self.provider, "us", "does not say what the turn cost", may_cost=True)

    def _failure(self, told: list[Document], result: Document, usage: Usage) -> CallFailed:
        errors = [one["error"] for one in told if isinstance(one.get("error"), str)]
        kind, status = _BY_ERROR.get(errors[-1] if errors else "", _UNKNOWN)
        if isinstance(result.get("api_error_status"), int):
            status = cast(int, result["api_error_status"])
        said = str(result.get("result") or result.get("errors") or "it says nothing")
        what = f"has no answer: {said}"
        if kind == "user" and status == 401:
            what = f"{_LOGIN} ({said})"
        failure = failed(self.provider, kind, what)
        failure.status = status
        is_broken = kind == "time" and status is None
        failure.may_cost = usage.total_tokens > 0 or status in _TIMED_OUT or is_broken
        failure.retry_after_s = _reset_s(told) if status == 429 else None
        return failure


def _listed(value: object) -> list[object]:
    """Return what a list holds; something else, if it is anything, as its only member."""
    return cast(list[object], value) if isinstance(value, list) else [value] if value else []


def _message(turn: Turn) -> str:
    """Return the conversation as one message: blocks, so that the provider's cache finds them."""
    content = [{"type": "text", "text": text} for text in turn.texts]
    message = {"role": "user", "content": content}
    return json.dumps({"type": "user", "message": message, "parent_tool_use_id": None}) + "\n"


def _usage(result: Document) -> tuple[Usage, str]:
    """Return the tokens of all requests of a turn, and the model that had most of them."""
    by_model: dict[str, Usage] = {}
    models = result.get("modelUsage")
    for name, one in cast(Document, models).items() if isinstance(models, dict) else ():
        if not isinstance(one, dict):
            continue
        own = cast(Document, one)
        written = tokens(own.get("cacheCreationInputTokens"))
        hour = min(written, tokens(own.get("cacheCreationEphemeral1hInputTokens")))
        by_model[name] = Usage(
            input_tokens=tokens(own.get("inputTokens")),
            cache_write_5m_tokens=written - hour,
            cache_write_1h_tokens=hour,
            cache_read_tokens=tokens(own.get("cacheReadInputTokens")),
            output_tokens=tokens(own.get("outputTokens")),
        )
    names = Usage.model_fields
    total = Usage(**{name: sum(getattr(u, name) for u in by_model.values()) for name in names})
    return total, max(by_model, key=lambda name: by_model[name].total_tokens, default="")


def _refusal(told: list[Document]) -> str:
    for event in reversed(told):
        match event:
            case {"message": {"stop_details": {"category": category, "explanation": why}}}:
                return ": ".join(str(one) for one in (category, why) if one) or "no reason"
            case _:
                continue
    return "the client gives no reason"


def _reset_s(told: list[Document]) -> float | None:
    """Return how long a limit of the plan lasts; None where the service is just busy."""
    for event in reversed(told):
        match event:
            case {"rate_limit_info": {"status": "rejected", "resetsAt": int(at) | float(at)}}:
                return max(0.0, min(at, _LATEST_S) - time.time())
            case {"api_error": "usage_limit_reached"}:
                return UNTIL_TOMORROW_S
            case _:
                continue
    return None
