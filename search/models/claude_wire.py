"""Requests and replies in the form of the Messages API. Pure; imports no client.

The prompt is cached in the order tools, system, messages, and every byte counts: what is sent
depends on nothing but the request.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

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
        # and would pay for a cache that nobody reads.
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
