"""A scripted model that makes a kernel faster: what it says and calls, given the replies so far.

It has no knowledge of its own. It goes on only as a model could: a job that still runs is waited
for, and a run is named by the id that kopt gave.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.tools.selftest.sample import SAMPLES
from support.messages_wire import Exchange, ToolCall, Turn
from support.session_document import reply_facts

KERNEL = "silu_and_mul_b8xh14336"
PROMPT = f"Make {KERNEL} faster. Use the simulator."

Facts = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One turn: some words and a call made of the replies to the steps before."""

    said: str
    tool: str
    arguments: Callable[[Sequence[Facts]], Facts]


@dataclass(frozen=True)
class ScriptedModel:
    """Plays `steps` in order, then says `closing`."""

    steps: tuple[Step, ...]
    closing: str

    def __call__(self, done: tuple[Exchange, ...]) -> Turn:
        """Return the turn after the calls in `done`."""
        replies: list[Facts] = []
        for exchange in done:
            if exchange.call.name == "mcp__kopt__job_wait" and replies:
                replies.pop()
            replies.append(reply_facts(exchange.text))
        if replies and replies[-1].get("status") == "running":
            return Turn(calls=(ToolCall("mcp__kopt__job_wait", {"job_id": replies[-1]["job_id"]}),))
        if len(replies) == len(self.steps):
            return Turn(self.closing)
        step = self.steps[len(replies)]
        return Turn(step.said, (ToolCall(step.tool, step.arguments(replies)),))


def candidate(name: str) -> str:
    """Return the source of a sample, without the line that is for the tests."""
    lines = (SAMPLES / name).read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("// sample:"))


def faster_silu(project: Path) -> ScriptedModel:
    """Return a model that writes candidates into `project` and takes them through every stage."""
    right = candidate("good_vectorized_16_bytes.cu")
    wrong = right.replace("const uint4 up = row[", "const uint4 up = rows[")
    assert wrong != right

    def written(text: str) -> Callable[[Sequence[Facts]], Facts]:
        return lambda _: {"file_path": str(project / "vec8.cu"), "content": text}

    def named(**more: object) -> Callable[[Sequence[Facts]], Facts]:
        return lambda _: {"kernel": KERNEL, "path": "vec8.cu", **more}

    def round_of_candidates(_: Sequence[Facts]) -> Facts:
        tuned = {"path": "vec8.cu", "tune": {"BLOCK": 128}, "family": "vectorization"}
        why = "smaller blocks leave a shorter tail on the last wave"
        return {
            "kernel": KERNEL,
            "device": "sim",
            "candidates": [
                {"path": "vec8.cu", "hypothesis": "16-byte accesses", "family": "vectorization"},
                {**tuned, "hypothesis": why},
            ],
        }

    def round_of_kopt(replies: Sequence[Facts]) -> Facts:
        return {"run_id": replies[-1]["run_id"]}

    return ScriptedModel(
        steps=(
            Step(
                "What do the manuals say on wide loads of bf16?",
                "mcp__kopt__search_docs",
                lambda _: {"query": "vectorized 16-byte loads of bfloat16", "k": 2},
            ),
            Step("Each thread takes 8 elements, 16 bytes.", "Write", written(wrong)),
            Step("Does it build?", "mcp__kopt__compile", named()),
            Step("A wrong name; I fix it.", "Write", written(right)),
            Step("Once more.", "mcp__kopt__compile", named()),
            Step("Is it right?", "mcp__kopt__check_correctness", named(device="sim")),
            Step(
                "What does the model say of its speed?", "mcp__kopt__benchmark", named(device="sim")
            ),
            Step("Now a search with two variants.", "mcp__kopt__beam_step", round_of_candidates),
            Step("And a round of kopt's own.", "mcp__kopt__beam_step", round_of_kopt),
        ),
        closing=(
            "vec8.cu passes on the simulator. Its speed is an estimate: a GPU has to confirm it."
        ),
    )
