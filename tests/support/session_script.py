"""A scripted model that makes a kernel faster: what it says and calls, given the replies so far.

It has no knowledge of its own. It goes on only as a model could: a job that still runs is waited
for, and a run is named by the id that kopt gave.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.messages_wire import Exchange, ToolCall, Turn
from support.session_document import reply_facts

KERNEL = "rms_scale_small"
PROMPT = "I need rms_scale of PyTorch as a fast CUDA kernel for an H100. There is no GPU here."
GPU = "H100"
MODULE = """\
import torch


def rms_scale(x, weight):
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (wide * scale).to(x.dtype) * weight
"""
SHAPES = "--shape x=64,4096 --shape weight=4096 --dtype bfloat16"
IMPORTED = f"kopt new rms_scale.py -o kopt_problems --entry rms_scale {SHAPES}"
SOURCES = Path(__file__).parent / "session_sources"

Facts = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """How a client names tools."""

    prefix: str
    """The beginning of the names of kopt's tools."""
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its own tools and their arguments, where they have other names than in Claude Code."""

    def spoken(self, call: ToolCall) -> ToolCall:
        """Return a call of the script as this client knows it."""
        if call.name not in CLAUDE_CODE_TOOLS:
            return ToolCall(self.prefix + call.name, call.arguments)
        arguments = {self.own.get(name, name): value for name, value in call.arguments.items()}
        return ToolCall(self.own.get(call.name, call.name), arguments)


CLAUDE_CODE_TOOLS = ("Write", "Bash")
CLAUDE_CODE = Dialect("mcp__kopt__")
OPENCODE = Dialect("kopt_", {"Write": "write", "Bash": "bash", "file_path": "filePath"})


@dataclass(frozen=True)
class Step:
    """One turn: some words and a call made of the replies to the steps before."""

    said: str
    tool: str
    """The name of kopt, or of Claude Code for a tool of its own."""
    arguments: Callable[[Sequence[Facts]], Facts]


@dataclass(frozen=True)
class ScriptedModel:
    """Plays `steps` in order, then says `closing`."""

    steps: tuple[Step, ...]
    closing: str
    dialect: Dialect = CLAUDE_CODE

    def __call__(self, done: tuple[Exchange, ...]) -> Turn:
        """Return the turn after the calls in `done`."""
        replies = replies_of(done)
        if replies and replies[-1].get("status") == "running":
            return self._turn("", ToolCall("job_wait", {"job_id": replies[-1]["job_id"]}))
        if len(replies) == len(self.steps):
            return Turn(self.closing)
        step = self.steps[len(replies)]
        return self._turn(step.said, ToolCall(step.tool, step.arguments(replies)))

    def _turn(self, said: str, call: ToolCall) -> Turn:
        return Turn(said, (self.dialect.spoken(call),))


def replies_of(done: Sequence[Exchange]) -> list[Facts]:
    """Return the reply to each step; that of a wait stands for the one before it."""
    replies: list[Facts] = []
    for exchange in done:
        if exchange.call.name.endswith("job_wait") and replies:
            replies.pop()
        replies.append(reply_facts(exchange.text))
    return replies


def _pairs(tune: str) -> list[tuple[str, str]]:
    """Return the names and values of `ROW=256,SPLIT=2`."""
    return [(name, value) for name, _, value in (one.partition("=") for one in tune.split(","))]


def agent_without_gpu(project: Path, dialect: Dialect = CLAUDE_CODE) -> ScriptedModel:
    """Return a model that takes a function of its own from PyTorch to an exported kernel.

    Args:
        project: The workspace, empty before.
        dialect: The names that the client has.
    """
    right = (SOURCES / "rms_rows.cu").read_text("utf-8")
    racing = right.replace("  __syncthreads();\n", "", 1)
    assert racing != right

    def written(name: str, text: str) -> Callable[[Sequence[Facts]], Facts]:
        return lambda _: {"file_path": str(project / name), "content": text}

    def called(**arguments: object) -> Callable[[Sequence[Facts]], Facts]:
        return lambda _: dict(arguments)

    def named(**more: object) -> Callable[[Sequence[Facts]], Facts]:
        return called(kernel=KERNEL, path="rms_rows.cu", device="sim", arch=GPU, **more)

    def round_of_candidates(_: Sequence[Facts]) -> Facts:
        file = {"path": "rms_rows.cu", "family": "vectorization"}
        why = "one warp a row: no barrier is waited for"
        candidates = [
            {**file, "hypothesis": "16-byte loads, the row stays in registers"},
            {**file, "tune": {"BLOCK": 32}, "hypothesis": why},
        ]
        return {"kernel": KERNEL, "device": "sim", "arch": GPU, "candidates": candidates}

    def round_of_kopt(replies: Sequence[Facts]) -> Facts:
        return {"run_id": replies[-1]["run_id"]}

    def best_of(replies: Sequence[Facts]) -> tuple[str, Facts]:
        step = next(one for one in reversed(replies) if "run_id" in one)
        return step["run_id"], step["beam"][0]

    def best_in_full(replies: Sequence[Facts]) -> Facts:
        run, best = best_of(replies)
        tune = {name: int(value) for name, value in _pairs(best["tune"])}
        path = f"kopt://runs/{run}/candidates/{best['number']}"
        return named()(replies) | {"path": path, "tune": tune, "level": "full"}

    def exported(replies: Sequence[Facts]) -> Facts:
        run, best = best_of(replies)
        command = (
            f"kopt export {run}/{best['number']} --problems kopt_problems --as torch"
            " -o rms_scale_op"
        )
        return {"command": command, "description": "Export the best candidate"}

    return ScriptedModel(
        steps=(
            Step("Is it known?", "list_kernels", called(query="rms_scale")),
            Step("No; I make a problem of it.", "Write", written("rms_scale.py", MODULE)),
            Step("", "Bash", called(command=IMPORTED, description="Make a problem of it")),
            Step("What is asked for?", "list_kernels", called(kernel=KERNEL)),
            Step(
                "What do the notes know of such kernels?",
                "search_docs",
                called(query="sum over a row in registers, 16-byte loads of bfloat16", k=2),
            ),
            Step("A block for each row.", "Write", written("rms_rows.cu", racing)),
            Step("Is it right?", "check_correctness", named()),
            Step("A barrier is missing.", "Write", written("rms_rows.cu", right)),
            Step("All of it, now.", "check_correctness", named(level="full")),
            Step("Which block size?", "benchmark", named(tune="all")),
            Step("A search that begins with two.", "beam_step", round_of_candidates),
            Step("A round of kopt's own.", "beam_step", round_of_kopt),
            Step("How far is mine from the best?", "benchmark", named()),
            Step("All of the best, too.", "check_correctness", best_in_full),
            Step("The best becomes an operator.", "Bash", exported),
        ),
        closing=(
            "rms_scale_op has the best candidate as an operator of PyTorch. It passed the full"
            " check on the simulator; its speed is an estimate, which a GPU has to confirm."
        ),
        dialect=dialect,
    )
