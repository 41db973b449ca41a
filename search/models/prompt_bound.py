"""The most tokens that a prompt can have, told from its bytes before it is sent.

A tokenizer over bytes makes at most one token of a byte, so the bytes of what is sent bound its
tokens whatever the model. Real prompts of code have about a third of that; the difference is given
back when the call is settled. Once a conversation has been answered, its provider has counted what
is sent again, and only what is new is bounded by its bytes.
"""

import json
from dataclasses import dataclass

from .model import ModelReply, ModelRequest

SERVICE_TOKENS = 2_000
"""Tokens that the service adds for tools and for a schema of the answer.

Up to 700 are documented for older models; the rest is reserve."""
_BYTES_PER_TOKEN = 3
"""Bytes of a token in CUDA code and English (estimated): for rate limits, never for money."""


@dataclass(frozen=True)
class PromptBound:
    """Upper bounds in tokens (computed), apart for what may be written to the cache for an hour."""

    hour_tokens: int
    """Tools and system prompt up to the last mark for one hour."""
    other_tokens: int
    likely_tokens: int = 0
    """Probable tokens of the prompt (estimated)."""

    @property
    def tokens(self) -> int:
        """The whole prompt."""
        return self.hour_tokens + self.other_tokens


def bound_prompt(request: ModelRequest) -> PromptBound:
    """Return how many tokens the prompt of `request` has at most."""
    marks = [at for at, block in enumerate(request.system) if block.cache == "1h"]
    end = marks[-1] + 1 if marks else 0
    hour = [block.text for block in request.system[:end]]
    other = [block.text for block in request.system[end:]]
    tools = [tool.model_dump() for tool in request.tools]
    schema_bytes = 0 if request.answer_schema is None else 2 * _size(request.answer_schema)
    tools_bytes = _size(tools) if tools else 0
    hour_bytes = _size(hour) + tools_bytes if marks else 0
    other_bytes = (
        _size(other)
        + (0 if marks else tools_bytes)
        + _size(request.messages)
        + schema_bytes  # twice: limits that the service does not enforce move into descriptions
    )
    likely = (hour_bytes + other_bytes) // _BYTES_PER_TOKEN
    return PromptBound(hour_bytes, other_bytes + SERVICE_TOKENS, likely)


def bound_next_turn(request: ModelRequest, before: ModelRequest, reply: ModelReply) -> PromptBound:
    """Return the same where `request` may go on after `reply` to `before`, which was counted."""
    bound = bound_prompt(request)
    said = (*before.messages, {"role": "assistant", "content": list(reply.content)})
    goes_on = request.messages[: len(said)] == said and _frame(request) == _frame(before)
    if not goes_on:
        return bound
    new_bytes = _size(request.messages[len(said) :])
    known = reply.usage.total_tokens
    tokens = min(bound.tokens, known + new_bytes + SERVICE_TOKENS)
    hour = min(bound.hour_tokens, tokens)
    return PromptBound(hour, tokens - hour, known + new_bytes // _BYTES_PER_TOKEN)


def _frame(request: ModelRequest) -> tuple[object, ...]:
    """Return all of a prompt that is not said in turns, and who counts it."""
    return request.model, request.system, request.tools, request.answer_schema


def _size(value: object) -> int:
    """Return the bytes of `value` as JSON: no text in it has more."""
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
