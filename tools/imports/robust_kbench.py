"""robust-kbench: folders with func_forward.py and config_forward.json.

func_forward.py has `Model`, whose forward calls `forward_fn`, and `get_inputs(**config)`; the
configurations of both stand in the JSON file, shared ones last. A task is its first single
configuration. Source: robust_kbench/config_task.py and kernel_task.py.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from kopt.config.errors import ToolError

from .foreign_task import ForeignTask, problem_name
from .host_python import on_cpu
from .python_files import one_file
from .reading import read_text

_FUNCTION = "func_forward"
_CONFIG = "config_forward.json"


def robust_kbench_tasks(root: Path) -> Iterator[ForeignTask]:
    """Yield a task for each folder at any depth, in the order of their paths.

    Raises:
        ToolError: `root` has none.
    """
    files = sorted(root.glob(f"**/{_FUNCTION}.py"))
    if not files:
        raise ToolError(
            f"{root} has no folder with {_FUNCTION}.py and {_CONFIG}: name a checkout of"
            " robust-kbench"
        )
    for path in files:
        name = path.parent.relative_to(root).as_posix().removeprefix("tasks/")
        try:
            model, fault = _model(path), ""
        except ToolError as error:
            model, fault = "", str(error)
        yield ForeignTask(
            problem_name(name if path.parent != root else root.name),
            "all",
            path.parent.name,
            path.relative_to(root).as_posix(),
            model,
            fault,
        )


def _model(path: Path) -> str:
    text, fault = read_text(path)
    if fault:
        raise ToolError(fault)
    settings, fault = read_text(path.parent / _CONFIG)
    if fault:
        raise ToolError(fault)
    try:
        document: object = json.loads(settings)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{_CONFIG} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ToolError(f"{_CONFIG} is no mapping")
    said = cast("dict[str, Any]", document)
    given = {kind: _first(said, kind) for kind in ("shared", "input", "init")}
    return "\n".join(_lines(on_cpu(text, path.name), given)) + "\n"


def _first(said: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the first configuration of a kind, of one setting before several."""
    for number in ("single", "multi"):
        several: object = said.get(f"{number}_{kind}_configs")
        if not several:
            continue
        first: object = several[0] if isinstance(several, list) else None  # pyright: ignore[reportUnknownVariableType] -- JSON has no types
        if not isinstance(first, dict) or not all(str(name).isidentifier() for name in first):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- JSON has no types
            raise ToolError(f"{number}_{kind}_configs of {_CONFIG} is no list of settings by name")
        return cast("dict[str, Any]", first)
    return {}


def _lines(text: str, given: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    yield one_file({_FUNCTION: text}, _FUNCTION)
    for kind, settings in given.items():
        for name, value in settings.items():
            yield f"{kind}_{name} = {value!r}"
    arguments: dict[str, str] = {}
    for kind in ("input", "init"):
        # Shared settings come last and override.
        chosen = {**dict.fromkeys(given[kind], kind), **dict.fromkeys(given["shared"], "shared")}
        arguments[kind] = ", ".join(f"{name}={of}_{name}" for name, of in chosen.items())
    yield ""
    yield ""
    yield "class Model(_task.Model):"
    yield "    def __init__(self):"
    yield f"        super().__init__({arguments['init']})"
    yield ""
    yield ""
    yield "def get_inputs():"
    yield f"    return _task.get_inputs({arguments['input']})"
