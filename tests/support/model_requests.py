"""Requests to a model, replies of one, and models played in the process, for tests."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, ModelRequest, SystemBlock, Tool, Usage

MODEL = "claude-opus-5-5"
COMPILE = Tool(name="compile", description="Compiles.", input_schema={"type": "object"})


def ask_for(call: str = "r1/b0/coder/0", **changes: Any) -> ModelRequest:
    """Return a small request of a coder, with `changes`."""
    fields: dict[str, Any] = {
        "id": call,
        "role": "coder",
        "model": MODEL,
        "effort": "low",
        "max_output_tokens": 1000,
        "system": (SystemBlock(text="You write CUDA."),),
        "messages": ({"role": "user", "content": "Make it faster."},),
    }
    return ModelRequest(**fields | changes)


def say(text: str = "done", **changes: Any) -> ModelReply:
    """Return a reply that says `text`, with `changes`."""
    fields: dict[str, Any] = {
        "content": ({"type": "text", "text": text},),
        "stop": "end_turn",
        "usage": Usage(input_tokens=50, output_tokens=7),
        "model": MODEL,
        "request_id": "req_1",
        "latency_s": 0.0,
    }
    return ModelReply(**fields | changes)


@dataclass
class PlayedModel:
    """Answers each request by a function of it; keeps the ids it was asked for."""

    script: Callable[[ModelRequest], ModelReply | CallFailed] = lambda request: say()
    asked: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return what the script says, or raise it."""
        with self.lock:
            self.asked.append(request.id)
        outcome = self.script(request)
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome
