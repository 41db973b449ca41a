"""Requests to a model and its replies: the records, and the protocol `Model`.

A request is complete: it holds everything that decides the answer, as plain JSON, so that it can
be recorded and replayed. The real models are in `anthropic_model.py` and `headless/`, their
offline twin in `recording.py`; nothing here knows a network.
"""

import json
from typing import Annotated, Any, Literal, Protocol, cast

from pydantic import Field, field_validator

from kopt.config.search_settings import Effort, Role
from kopt.kernels.record import Record

MOST_LEVELS = 100
"""How deep the content of a reply may nest: what reads JSON here gives up at 200 levels."""
_NEEDED = {"text": ("text",), "tool_use": ("id", "name")}
"""The texts that blocks of these types have to have."""

Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]


class SystemBlock(Record):
    """One part of the system prompt."""

    text: str = Field(min_length=1)
    cache: Literal["1h", "5m"] | None = None
    """Marks the prompt up to the end of this block for the provider's cache, and for how long."""


class Tool(Record):
    """One function that the model may ask for."""

    name: str
    description: str
    input_schema: dict[str, Any]
    """JSON schema of its arguments."""


class ModelRequest(Record):
    """One call. A conversation is a sequence of them whose messages are only ever appended to."""

    id: str = Field(pattern=r"^r[0-9]+(/[a-z0-9]+)+/[0-9]+$")
    """Unique in the run: the place of the call, then its turn, as `r2/b3/coder/0`."""
    role: Role
    model: str
    effort: Effort
    max_output_tokens: int = Field(gt=0)
    """Thinking included; a reply that needs more is cut, with the stop `max_tokens`."""
    system: tuple[SystemBlock, ...]
    """The system prompt; the provider's cache needs it equal in all calls of a role."""
    tools: tuple[Tool, ...] = ()
    messages: tuple[dict[str, Any], ...] = Field(min_length=1)
    """Messages as the Messages API takes them: `role`, and `content` as text or blocks."""
    answer_schema: dict[str, Any] | None = None
    """JSON schema that the text of the reply follows; None asks for free text."""


class Usage(Record):
    """Tokens of one call as the provider counts them; the four inputs add up to the prompt."""

    input_tokens: Tokens = 0
    """Prompt tokens neither read from the provider's cache nor written to it."""
    cache_write_5m_tokens: Tokens = 0
    cache_write_1h_tokens: Tokens = 0
    cache_read_tokens: Tokens = 0
    output_tokens: Tokens = 0
    """Thinking included."""

    @property
    def prompt_tokens(self) -> int:
        """Size of the prompt."""
        return (
            self.input_tokens
            + self.cache_write_5m_tokens
            + self.cache_write_1h_tokens
            + self.cache_read_tokens
        )

    @property
    def total_tokens(self) -> int:
        """Tokens that count towards a budget: prompt and output."""
        return self.prompt_tokens + self.output_tokens


class ToolCall(Record):
    """One call of a tool that a reply asks for."""

    id: str
    """Named by the block with the tool's result."""
    name: str
    arguments: Any
    """An object that follows the tool's schema, if the model kept to it; anything else if not."""


class ModelReply(Record):
    """A reply of a model. A refusal and a cut reply are replies too, and are paid for."""

    content: tuple[dict[str, Any], ...]
    """The blocks, thinking included, exactly as the next request has to send them back."""
    stop: str = Field(max_length=100)
    """end_turn, tool_use, max_tokens, refusal, pause_turn, ...: why it ends here."""
    usage: Usage
    model: str
    """Name of the model that answered, as the provider has it."""
    request_id: str | None
    """The provider's id of the call, for its support."""
    latency_s: float
    """Wall time from the request to the end of the reply, seconds."""
    refusal: str | None = None
    """Why the model refused, as far as it says so; set exactly when the stop is a refusal."""
    reported_usd: float | None = Field(default=None, ge=0.0, le=100_000.0, allow_inf_nan=False)
    """What the client that asked says the call cost, US dollars; None where it says nothing."""

    @field_validator("content")
    @classmethod
    def _can_be_kept(cls, content: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        """Refuse what could not be written down, read again and sent back."""
        for block in content:
            kind = block.get("type")
            if not isinstance(kind, str):
                raise ValueError("a block without a type")
            if not all(isinstance(block.get(name), str) for name in _NEEDED.get(kind, ())):
                raise ValueError(f"a block of type {kind[:40]} lacks a text")
            if kind == "tool_use" and "input" not in block:
                raise ValueError("a call of a tool without arguments")
            if _is_deeper(block, MOST_LEVELS):
                raise ValueError(f"a block nests deeper than {MOST_LEVELS} levels")
            json.dumps(block, allow_nan=False, ensure_ascii=False).encode()
        return content

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that it asks for, in its order."""
        return tuple(
            ToolCall(id=block["id"], name=block["name"], arguments=block["input"])
            for block in self.content
            if block["type"] == "tool_use"
        )


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether `value` nests deeper than `levels`."""
    parts: list[object] = []
    if isinstance(value, dict):
        parts = list(cast(dict[str, object], value).values())
    elif isinstance(value, list):
        parts = cast(list[object], value)
    return levels < 0 or any(_is_deeper(part, levels - 1) for part in parts)


class Model(Protocol):
    """Answers requests, from many threads at once."""

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the answer to `request`; blocks until it is complete.

        Raises:
            CallFailed: There is none; the error says who can mend that and whether it may cost.
            Stopped: The run was stopped meanwhile.
        """
        ...
