"""What became of the tasks of a benchmark: one row each, kept beside the problems."""

from typing import Literal

from pydantic import Field

from kopt.kernels.record import Record
from kopt.tools.suite.suite_file import Mark

Outcome = Literal["imported", "refused", "outdated"]


class ImportedTask(Record):
    """One task of a benchmark and the problem that it became, if it did."""

    task: str
    """Name of the problem."""
    group: str
    id: str
    """What --ids calls it."""
    origin: str
    """The file that it comes from, below the checkout."""
    digest: str
    """SHA-256 of the task's text; a task with another one is imported anew."""
    kopt: str
    """The version that imported it; a refusal is tried again by another one, and by any where the
    import ended without an answer: then this is empty."""
    outcome: Outcome
    """`outdated`: its problem was imported from another text and is left as it is."""
    reason: str = ""
    """Why it was refused or left."""
    mark: Mark = "unsupported"
    """How suite.yaml marks it where it is refused."""
    kernels: tuple[str, ...] = ()
    launches: int | None = None
    """Of the generated reference.cu; None where there is none."""
    warnings: tuple[str, ...] = ()
    elapsed_s: float = 0.0


class ImportedSuite(Record):
    """The tasks of one benchmark in a folder; imported.json is one of these."""

    schema_: Literal["kopt.imported/1"] = Field(default="kopt.imported/1", alias="schema")
    format: str
    """What the checkout was read as: kernelbench, trace ..."""
    folder: str = ""
    planned: int = 0
    """Tasks of the call that are wanted; those of earlier calls are not counted."""
    kept: int = 0
    """How many of them were done before."""
    tasks: tuple[ImportedTask, ...] = ()
    """In the file all that the folder has, in a result those of the call."""

    def counted(self, outcome: Outcome) -> int:
        """Return how many tasks came to `outcome`."""
        return sum(one.outcome == outcome for one in self.tasks)
