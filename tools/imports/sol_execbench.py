"""SOL-ExecBench: folders with definition.json and workload.jsonl, which extend FlashInfer-Trace.

Workloads stand bare, one a line; axes may be expressions, and a Definition may make its own inputs.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from kopt.config.errors import ToolError

from .flashinfer_trace import definition_task
from .foreign_task import ForeignTask
from .reading import json_lines, read_text
from .trace_records import TraceWorkload

_DEFINITION = "definition.json"
_WORKLOADS = "workload.jsonl"


def sol_tasks(root: Path) -> Iterator[ForeignTask]:
    """Yield a task for each problem folder at any depth, in the order of their paths.

    Raises:
        ToolError: `root` has none.
    """
    files = sorted(root.glob(f"**/{_DEFINITION}"))
    if not files:
        raise ToolError(
            f"{root} has no folder with {_DEFINITION} and {_WORKLOADS}: name problems of"
            " SOL-ExecBench"
        )
    for path in files:
        yield definition_task(path, root, partial(_workloads, path.parent))


def _workloads(folder: Path, _: str) -> tuple[TraceWorkload, ...]:
    """Return the workloads of a problem, whatever its Definition is called."""
    text, _ = read_text(folder / _WORKLOADS)
    found: list[TraceWorkload] = []
    for document in json_lines(text):
        try:
            found.append(TraceWorkload.model_validate(document))
        except ValidationError:
            continue
    return tuple(found)
