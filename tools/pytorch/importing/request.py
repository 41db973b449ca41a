"""What the child is asked to export: a PyTorch function, as the command line names it."""

from typing import Literal

from pydantic import Field

from kopt.kernels.precision import Precision
from kopt.kernels.record import Record

Mode = Literal["as-is", "eval"]


class ExportRequest(Record):
    """A PyTorch function, as the command line names it."""

    source: str
    """A Python file, absolute, or `module:attribute`."""
    import_path: tuple[str, ...] = ()
    """Folders in which its imports are looked for first."""
    entry: str | None = None
    """Class, function or instance; None: `Model`, or what there is one of."""
    inputs: str | None = None
    """Name, or `module:attribute`, of what returns the example inputs; None: `get_inputs`."""
    init: str | None = None
    """The same of the constructor's arguments; None: `get_init_inputs`, or none."""
    shapes: dict[str, tuple[int, ...]] = Field(default_factory=dict[str, tuple[int, ...]])
    """Of inputs that are drawn, by parameter name; instead of `inputs`."""
    dtype: str | None = None
    """What parameters and floating-point inputs are converted to."""
    mode: Mode = "as-is"
    precision: Precision = "torch"
    small: dict[str, int] | None = None
    """Values of the source's integers at the small shape; None: chosen."""
