"""A module or function of the user's own process made a problem: `kopt.problem_from`.

Nothing is loaded and no sandbox is needed: the code is the caller's and already runs. Only sizes of
the inputs can be smaller at the small shape; the module stays as it is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.kernels.precision import Precision
from kopt.tools.pytorch.torch_library import load_torch

from .child import export
from .request import ExportRequest
from .stage import ImportRequest, ImportResult, place_of, write_problem
from .user_source import LEAST, cut


@dataclass(frozen=True)
class LiveFunction:
    """A module with its example inputs."""

    module: Any
    inputs: tuple[Any, ...]
    inner: frozenset[str] = frozenset()

    @property
    def integers(self) -> Mapping[str, int]:
        """Sizes of the inputs by their value: equal ones change together."""
        sizes = {int(n) for one in self.inputs for n in getattr(one, "shape", ())}
        return {str(n): n for n in sorted(sizes) if n > LEAST}

    def build(self, values: Mapping[str, int]) -> tuple[Any, tuple[Any, ...]]:
        """Return the module with its inputs cut to other sizes."""
        other = {self.integers[name]: value for name, value in values.items()}
        return self.module, tuple(cut(one, other) for one in self.inputs)


def import_live(
    function: Any, inputs: Sequence[Any], folder: Path, name: str | None, precision: Precision
) -> ImportResult:
    """Return what was written for a module or function of this process.

    Raises:
        ToolError: It cannot be imported.
        SetupError: torch is missing.
    """
    torch = load_torch()
    if not callable(function):
        raise ToolError(f"{function!r} is no module and no function")
    called = getattr(function, "__name__", type(function).__name__)
    module = function
    if not isinstance(function, torch.nn.Module):
        module = type("Function", (torch.nn.Module,), {"forward": staticmethod(function)})()
    guessed = re.sub(r"[^a-z0-9]+", "_", called.lower()).strip("_")
    asked = ExportRequest(
        source=f"{getattr(function, '__module__', '')}:{called}", precision=precision
    )
    request = ImportRequest(asked, folder, name or guessed, ignore)
    place = place_of(request)
    with TemporaryDirectory(prefix="kopt-import-") as work:
        function = LiveFunction(module, tuple(inputs))
        exported = export(asked, Path(work), ignore, function)
        return write_problem(request, exported, Path(work), place)
