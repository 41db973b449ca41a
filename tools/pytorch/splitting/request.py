"""What the child that records a network is asked, and what it hands back: records as JSON."""

from typing import Literal

from pydantic import Field

from kopt.kernels.record import Record
from kopt.tools.pytorch.importing.exported import ChildFailure
from kopt.tools.pytorch.importing.probing import CheckBasis
from kopt.tools.pytorch.importing.sizes_as_axes import SizedGraph


class PartRequest(Record):
    """A sub-problem whose inputs are to be recorded."""

    name: str
    sized: SizedGraph
    fed: tuple[dict[str, str], ...]
    """Wires of the inputs that other regions feed, by their names, of each region."""
    tables: dict[str, str] = Field(default_factory=dict[str, str])
    """Names of constants in the whole's folder, by their names here."""


class RecordRequest(Record):
    """A network in a folder, and its parts."""

    folder: str
    parts: tuple[PartRequest, ...]


class RecordedPart(Record):
    """A sub-problem with its inputs as the network feeds them."""

    sized: SizedGraph
    basis: CheckBasis
    fault: str = ""
    """Why no check can judge it; then `basis` is nothing that a check may rest on."""


class RecordAnswer(Record):
    """The child's one document."""

    format: Literal["kopt.recorded/1"] = "kopt.recorded/1"
    parts: tuple[RecordedPart, ...] = ()
    failure: ChildFailure | None = None
