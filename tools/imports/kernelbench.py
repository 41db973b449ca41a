"""KernelBench's checkout: folders level1 to level4 of files `19_ReLU.py` with Model and inputs."""

import re
from collections.abc import Iterator
from pathlib import Path

from kopt.config.errors import ToolError

from .foreign_task import ForeignTask, problem_name
from .reading import read_text

_LEVEL = re.compile(r"level(\d+)")
_TASK = re.compile(r"(?P<id>\d+)_(?P<name>.+)\.py")


def kernelbench_tasks(root: Path) -> Iterator[ForeignTask]:
    """Yield the tasks of a checkout, of its folder KernelBench, or of one level, in their order.

    Raises:
        ToolError: `root` has none.
    """
    levels = _levels(root)
    if not levels:
        raise ToolError(
            f"{root} has no folder level1, level2 ... with files like 19_ReLU.py: name a checkout"
            " of KernelBench"
        )
    for level in levels:
        number = level.name.removeprefix("level")
        found = [(_TASK.fullmatch(path.name), path) for path in level.iterdir()]
        tasks = [(int(match["id"]), match["name"], path) for match, path in found if match]
        for identity, name, path in sorted(tasks):
            text, fault = read_text(path)
            yield ForeignTask(
                name=problem_name(f"l{number}", str(identity), name),
                group=level.name,
                id=str(identity),
                origin=f"{level.name}/{path.name}",
                model=text,
                fault=fault,
            )


def _levels(root: Path) -> list[Path]:
    if _LEVEL.fullmatch(root.name):
        return [root]
    for folder in (root, root / "KernelBench"):
        found = [
            one for one in folder.glob("level*") if _LEVEL.fullmatch(one.name) and one.is_dir()
        ]
        if found:
            return sorted(found, key=lambda one: int(one.name.removeprefix("level")))
    return []
