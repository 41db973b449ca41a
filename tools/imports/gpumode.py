"""GPU MODE's reference kernels: folders with task.yml and reference.py.

task.yml lists the sizes of tests and benchmarks; reference.py has `generate_input(**sizes)` and
`ref_kernel(data)`. A task is the largest benchmark. The files of a task that are Python become one
file, written for the CPU. Source: task.yml of gpu-mode/reference-kernels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

import yaml

from kopt.config.errors import ToolError

from .foreign_task import ForeignTask, problem_name
from .host_python import on_cpu
from .python_files import one_file
from .reading import read_text

_TASK = "task.yml"
_REFERENCE = "reference"
_NOT_OURS = frozenset({"submission", "eval", "template"})
"""What is handed in, and what times it."""
_SEED = "seed"


def gpumode_tasks(root: Path) -> Iterator[ForeignTask]:
    """Yield a task for each folder with task.yml at any depth, in the order of their paths.

    Raises:
        ToolError: `root` has none.
    """
    files = sorted(root.glob(f"**/{_TASK}"))
    if not files:
        raise ToolError(f"{root} has no folder with {_TASK}: name problems of GPU MODE's checkout")
    for path in files:
        folder = path.parent
        name = folder.relative_to(root).as_posix() if folder != root else root.name
        deck = folder.parent.name if folder.parent != root and folder != root else "all"
        try:
            model, fault = _model(path, root), ""
        except ToolError as error:
            model, fault = "", str(error)
        yield ForeignTask(
            problem_name(name),
            problem_name(deck),
            folder.name,
            path.relative_to(root).as_posix(),
            model,
            fault,
        )


@dataclass(frozen=True)
class _Task:
    files: Mapping[str, Path]
    """Python files by the name under which they import each other."""
    sizes: Mapping[str, Any]
    """Arguments of generate_input at the largest benchmark."""


def _model(path: Path, root: Path) -> str:
    """Return the file of a task.

    Raises:
        ToolError: Something of it cannot be read; the message says what.
    """
    task = _read(path, root)
    texts: dict[str, str] = {}
    for name, file in task.files.items():
        text, fault = read_text(file)
        if fault:
            raise ToolError(fault)
        texts[name] = on_cpu(text, file.name)
    if _REFERENCE not in texts:
        raise ToolError(f"{_TASK} names no {_REFERENCE}.py")
    return "\n".join(_lines(texts, task.sizes)) + "\n"


def _read(path: Path, root: Path) -> _Task:
    text, fault = read_text(path)
    try:
        document: object = yaml.safe_load(text) if not fault else None
    except (yaml.YAMLError, RecursionError) as error:
        fault = f"{_TASK} is no YAML: {str(error).splitlines()[0]}"
        document = None
    if fault:
        raise ToolError(fault)
    if not isinstance(document, dict):
        raise ToolError(f"{_TASK} is no mapping")
    said = cast("dict[str, Any]", document)
    if said.get("lang", "py") != "py":
        raise ToolError(f"its language is {str(said['lang'])[:20]}: only Python tasks have a graph")
    if said.get("multi_gpu"):
        raise ToolError("it runs on several GPUs")
    return _Task(_files(said, path.parent, root), _largest(said))


def _files(said: Mapping[str, Any], folder: Path, root: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for entry in said.get("files") or ():
        name, source = str(entry.get("name", "")), str(entry.get("source", ""))
        stem, _, end = name.rpartition(".")
        if end != "py" or stem in _NOT_OURS or source.startswith("@"):
            continue
        place = (folder / source).resolve()
        # What several decks share lies beside them: never outside of the checkout.
        if not place.is_relative_to(root.parent):
            raise ToolError(f"{name[:60]} lies outside of the checkout: {source[:80]}")
        found[stem] = place
    return found


def _largest(said: Mapping[str, Any]) -> Mapping[str, Any]:
    cases = [one for one in (said.get("benchmarks") or said.get("tests") or ()) if _is_case(one)]
    if not cases:
        raise ToolError(f"{_TASK} has no benchmark whose values are numbers and texts")
    return max(cases, key=_elements)


def _is_case(case: object) -> bool:
    if not isinstance(case, dict):
        return False
    items = cast("dict[object, object]", case).items()
    return all(
        isinstance(name, str)
        and name.isidentifier()
        and isinstance(value, bool | int | float | str)
        for name, value in items
    )


def _elements(case: Mapping[str, Any]) -> int:
    return prod(
        value for name, value in case.items() if type(value) is int and value > 0 and name != _SEED
    )


def _lines(texts: Mapping[str, str], sizes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the file: the task's own files, sizes as assignments, Model and its inputs."""
    yield one_file(texts, _REFERENCE)
    for name, value in sizes.items():
        if name != _SEED:
            yield f"size_{name} = {value!r}"
    given = [f"{name}=size_{name}" for name in sizes if name != _SEED]
    if _SEED in sizes:
        given.append(f"{_SEED}=_torch.initial_seed() % 65521")
    yield _BODY.replace("SIZES", ", ".join(given))


_BODY = """
_TENSOR = object()


def _draw():
    leaves, spec = _torch.utils._pytree.tree_flatten(_task.generate_input(SIZES))
    tensors = [one for one in leaves if isinstance(one, _torch.Tensor)]
    return tensors, [_TENSOR if isinstance(one, _torch.Tensor) else one for one in leaves], spec


class Model(_torch.nn.Module):
    def __init__(self):
        super().__init__()
        _, self.leaves, self.spec = _draw()

    def forward(self, *tensors):
        given = iter(tensors)
        leaves = [next(given) if one is _TENSOR else one for one in self.leaves]
        return _task.ref_kernel(_torch.utils._pytree.tree_unflatten(leaves, self.spec))


def get_inputs():
    return _draw()[0]
"""
