"""split.json: the parts of a network, how much each weighs, and how they are wired together."""

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.record import Record
from kopt.tools.pytorch.graph import ValueType

SPLIT_FILE = "split.json"
WHOLE_FOLDER = "whole"
"""The folder beside the parts with the problem that they are parts of."""


class SplitPart(Record):
    """A sub-problem: regions that are equal up to names."""

    name: str
    """Name of its problem and folder."""
    regions: tuple[str, ...]
    """Labels of its regions: paths of modules, or numbers of parts."""
    weight: float
    """Share of the time of the whole, of all its regions together."""
    region_us: float
    """Time of one region at the shape that is timed."""
    operators: int
    launches: int | None
    """Of reference.cu; None where there is none."""
    samples: int
    """Recorded values of its inputs."""
    fault: str = ""
    """Why no check can judge it by itself."""

    @property
    def count(self) -> int:
        """The number of its regions."""
        return len(self.regions)


class SplitStep(Record):
    """A region in the order of execution."""

    part: str
    wires: dict[str, str]
    """Tensor of the whole or value between regions, by the name of a tensor of the part."""


class Split(Record):
    """What `kopt split` wrote."""

    format: Literal["kopt.split/1"] = "kopt.split/1"
    whole: str
    """Name of the problem that was split; its folder is in `whole/`."""
    folder: str
    """As the caller named it."""
    digest: str
    """SHA-256 of the whole's graph.json."""
    cut: str
    """How it was cut, in words."""
    weights: Literal["estimated", "measured"]
    gpu: str
    """Whose times the weights are."""
    workload: str
    """The shape of these times."""
    parts: tuple[SplitPart, ...]
    """The heaviest first."""
    steps: tuple[SplitStep, ...]
    values: dict[str, ValueType]
    """Types of the values between regions that are no tensors of the whole."""
    warnings: tuple[str, ...] = ()

    def part(self, name: str) -> SplitPart:
        """Return the part called `name`; KeyError if there is none."""
        return {one.name: one for one in self.parts}[name]


def read_split(folder: Path) -> Split:
    """Return the split.json in `folder`.

    Raises:
        ToolError: There is none, or it is damaged.
    """
    path = folder / SPLIT_FILE
    if not path.is_file():
        raise ToolError(
            f"{folder} has no {SPLIT_FILE}: kopt split PROBLEM_DIR -o DIR writes such a folder"
        )
    try:
        return Split.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise ToolError(f"{path} is damaged ({first}): split the network again") from error
