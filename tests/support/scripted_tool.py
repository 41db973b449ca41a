"""A stand-in for compute-sanitizer or ncu: a script that leaves prepared files instead of running.

Its last argument is the folder of the request, as the real tools' is; nothing is run on a GPU.
"""

from dataclasses import dataclass, field
from pathlib import Path

from kopt.tools.gpu.one_shot_files import ANSWER_FILE, OneShotAnswer
from kopt.tools.profiling.nvidia_tools import NvidiaTool

RAN = OneShotAnswer(ended=True)


@dataclass(frozen=True)
class ToolScript:
    """What the stand-in does."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    """Written to the folder of the request, by name."""
    answer: OneShotAnswer | None = RAN
    """What the child would have answered; None if it got nowhere."""
    prints: str = ""
    hangs: bool = False
    returncode: int = 0


def scripted_tool(folder: Path, script: ToolScript, *options: str) -> NvidiaTool:
    """Return a tool in `folder` that does what `script` says."""
    root = folder / "tool"
    root.mkdir()
    files = dict(script.files)
    if script.answer is not None:
        files[ANSWER_FILE] = script.answer.model_dump_json()
    lines = ["#!/bin/sh", "for last; do :; done", 'echo "$@" > "$last/arguments.txt"']
    for name, text in files.items():
        (root / name).write_text(text)
        lines.append(f'cp "{root / name}" "$last/{name}"')
    (root / "prints").write_text(script.prints)
    lines.append(f'cat "{root / "prints"}"')
    if script.hangs:
        lines.append("while :; do sleep 1; done")
    lines.append(f"exit {script.returncode}")
    program = root / "program"
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    return NvidiaTool(program, "scripted tool 1.0", root, frozenset(options))
