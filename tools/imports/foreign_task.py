"""One task of somebody else's benchmark, as the text of a Python file that `kopt new` takes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kopt.config.errors import ToolError
from kopt.config.files import content_hash
from kopt.config.near_matches import near_matches
from kopt.kernels.precision import Precision

_LONGEST = 60


@dataclass(frozen=True)
class ForeignTask:
    """A task that was read; nothing of its Python has run."""

    name: str
    """Name of the problem that it becomes."""
    group: str
    """Group of the suite: a level, a kind of operator, a folder."""
    id: str
    """What --ids calls it."""
    origin: str
    """The file that it comes from, below the checkout."""
    model: str = ""
    """The Python file: Model, get_inputs() and get_init_inputs()."""
    fault: str = ""
    """Why it cannot be imported, where that shows without running it."""
    precision: Precision = "torch"

    @property
    def digest(self) -> str:
        """The SHA-256 of all that its problem follows from."""
        return content_hash([self.name, self.group, self.model, self.fault, self.precision])

    @property
    def file_name(self) -> str:
        """The name under which its Python runs, and that messages show."""
        last = self.origin.rpartition("/")[2]
        return last if last.endswith(".py") else f"{self.name}.py"


@dataclass(frozen=True)
class Selection:
    """Which tasks of a checkout are wanted; everything where nothing is named."""

    levels: Sequence[str] = field(default=())
    ids: Sequence[str] = field(default=())

    def of(self, tasks: Iterable[ForeignTask]) -> tuple[ForeignTask, ...]:
        """Return the tasks that are wanted, in their order.

        Raises:
            ToolError: A level or an id is of no task; the message has those that there are.
        """
        found = list(tasks)
        for option, wanted, known in (
            ("--level", self.levels, dict.fromkeys(one.group for one in found)),
            ("--ids", self.ids, dict.fromkeys(one.id for one in found)),
        ):
            for one in wanted:
                if one not in known:
                    raise ToolError(f"{option} {one}: no task is of it; {near_matches(one, known)}")
        return tuple(
            one
            for one in found
            if (not self.levels or one.group in self.levels)
            and (not self.ids or one.id in self.ids)
        )


def problem_name(*parts: str) -> str:
    """Return a name that a problem may have, made of `parts`."""
    words = re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower()).strip("_")[:_LONGEST].strip("_")
    return words if words[:1].isalpha() else f"t_{words}".rstrip("_")


def distinct_names(tasks: Iterable[ForeignTask]) -> None:
    """Refuse tasks of which two would become one problem.

    Raises:
        ToolError: The message names both.
    """
    seen: dict[str, ForeignTask] = {}
    for one in tasks:
        other = seen.setdefault(one.name, one)
        if other is not one:
            raise ToolError(
                f"{other.origin} and {one.origin} would both become {one.name}: import them into"
                " two folders, by --ids"
            )
