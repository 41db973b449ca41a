"""Requests, replies and failures in the form of the Messages API.

The prompt is cached in the order tools, system, messages, and every byte counts: what is sent
depends on nothing but the request.

Source:
    The error types of the `anthropic` package and https://docs.anthropic.com/en/api/errors. An
    error inside a stream has the status 200 and tells its kind by `type` alone.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

import anthropic
import httpx2

from .errors import CallFailed, FailureKind
from .model import ModelReply, ModelRequest, SystemBlock, Tool, Usage

if TYPE_CHECKING:  # its import takes a second: only where Claude is called
    from anthropic.types import Message
    from anthropic.types import Usage as WireUsage

# Summaries, because text between calls of tools comes as thinking and would be empty otherwise.
_THINKING = {"type": "adaptive", "display": "summarized"}


def request_arguments(request: ModelRequest, schema: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the client sends; `schema` is the answer's, as far as the service enforces it."""
    output: dict[str, Any] = {"effort": request.effort}
    if schema is not None:
        output["format"] = {"type": "json_schema", "schema": schema}
    arguments: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "system": [_system_block(block) for block in request.system],
        "messages": list(request.messages),
        "thinking": _THINKING,
        "output_config": output,
    }
    if request.tools:
        arguments["tools"] = [_tool(tool) for tool in request.tools]
        # A conversation with tools comes back, longer each time; another one is over with its reply
        # and would pay for a cache that is never read.
        arguments["cache_control"] = {"type": "ephemeral", "ttl": "5m"}
    return arguments


def cached_prefix(request: ModelRequest) -> str | None:
    """Return what tells the cached part of the prompt from another; None if none is marked."""
    marks = [at for at, block in enumerate(request.system) if block.cache is not None]
    if not marks:
        return None
    tools = [_tool(tool) for tool in request.tools]
    system = [_system_block(block) for block in request.system[: marks[-1] + 1]]
    text = json.dumps([request.model, tools, system])
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def reply_of(message: "Message", request: ModelRequest, request_id: str | None) -> ModelReply:
    """Return the reply that a complete message is; its latency is left at zero."""
    refusal = None
    if message.stop_reason == "refusal":
        details = message.stop_details
        said = () if details is None else (details.category, details.explanation)
        refusal = ": ".join(part for part in said if part) or "the service gives no reason"
    return ModelReply(
        content=tuple(block.to_dict() for block in message.content),
        stop=str(message.stop_reason),
        usage=_counted(_usage(message.usage, request), message),
        model=message.model,
        request_id=request_id,
        latency_s=0.0,
        refusal=refusal,
    )


def _counted(usage: Usage, message: "Message") -> Usage:
    """Return `usage`, once it counts something: a budget cannot be kept with zeros.

    Raises:
        ValueError: It does not.
    """
    if not usage.prompt_tokens or (message.content and not usage.output_tokens):
        raise ValueError("it does not say how many tokens it takes")
    return usage


def _usage(usage: "WireUsage", request: ModelRequest) -> Usage:
    written = usage.cache_creation_input_tokens or 0
    if usage.cache_creation is not None:
        hour = usage.cache_creation.ephemeral_1h_input_tokens
    else:  # a gateway that does not tell them apart: the dearer one, if it may be that
        hour = written if any(block.cache == "1h" for block in request.system) else 0
    return Usage(
        input_tokens=usage.input_tokens,
        cache_write_5m_tokens=max(0, written - hour),
        cache_write_1h_tokens=hour,
        cache_read_tokens=usage.cache_read_input_tokens or 0,
        output_tokens=usage.output_tokens,
    )


def _system_block(block: SystemBlock) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "text", "text": block.text}
    if block.cache is not None:
        wire["cache_control"] = {"type": "ephemeral", "ttl": block.cache}
    return wire


def _tool(tool: Tool) -> dict[str, Any]:
    return tool.model_dump()


_STATUS_OF_TYPE = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "request_too_large": 413,
    "timeout_error": 504,
}
_USER_ADVICE = {
    401: "the service does not take the key: set ANTHROPIC_API_KEY to a valid one",
    402: "the account behind the key cannot pay: fix that, then resume the run",
    403: "the key may not do this: use another key or another model",
    404: "the service does not know the model, or not for this key: name another in the settings",
}
_LATER = (408, 409, 429)
_TIMED_OUT = (408, 504, 524)  # the service, or a gateway before it, had begun to work on the call
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


def failure_of_call(error: Exception, began: bool) -> CallFailed:
    """Return what went wrong; `began` says whether the service had begun to answer."""
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error, began)
    if isinstance(error, anthropic.APIConnectionError):
        return _of_connection(cast(Exception, error.__cause__ or error))
    if isinstance(error, httpx2.HTTPError):
        return CallFailed(
            kind="time",
            message=f"the connection broke before the reply was complete ({_name(error)})",
            may_cost=True,
        )
    return broken_reply(f"{_name(error)}: {error}")


def broken_reply(what: str) -> CallFailed:
    """Return that a reply is not of the form that the service promises."""
    return CallFailed(kind="us", message=f"the reply is broken: {what}", may_cost=True)


def _of_status(error: anthropic.APIStatusError, began: bool) -> CallFailed:
    status = error.status_code
    if status == 200:  # inside a stream
        status = _STATUS_OF_TYPE.get(str(error.type), 500)
    said = error.api_message or "no explanation"
    kind: FailureKind = "us"
    message = f"the service refuses the request (HTTP {status}): {said}"
    if status in _USER_ADVICE:
        kind, message = "user", f"{_USER_ADVICE[status]} (HTTP {status}: {said})"
    elif 300 <= status < 400:
        kind, message = "user", f"ANTHROPIC_BASE_URL leads elsewhere (HTTP {status}): name that"
    elif status in _LATER or status >= 500:
        kind, message = "time", f"the service cannot answer now (HTTP {status}): {said}"
    return CallFailed(
        kind=kind,
        message=message,
        status=status,
        request_id=error.request_id,
        retry_after_s=_retry_after_s(error.response.headers),
        may_cost=began or status in _TIMED_OUT,
    )


def _of_connection(cause: Exception) -> CallFailed:
    if isinstance(cause, httpx2.UnsupportedProtocol):
        message = "ANTHROPIC_BASE_URL is no address: it begins with http:// or https://"
        return CallFailed(kind="user", message=message)
    was_sent = not isinstance(cause, _NEVER_SENT)
    message = f"the service did not answer in time ({_name(cause)})"
    if not was_sent:  # the address is not shown: it may hold a password
        message = (
            f"the service cannot be reached ({_name(cause)}): look at the network, and at"
            " ANTHROPIC_BASE_URL if it is set"
        )
    return CallFailed(kind="time", message=message, may_cost=was_sent)


def _retry_after_s(headers: httpx2.Headers) -> float | None:
    """Return how long the service asks to wait; None if it does not, or not in seconds."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    return None


def _name(error: Exception) -> str:
    return type(error).__name__
