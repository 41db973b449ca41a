"""`kopt new`: a PyTorch function made the folder of a problem, whole or not at all."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import Field

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.files import publish_folder, staging_folder
from kopt.config.last_time import LastTime
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem, tensor_size_bytes
from kopt.kernels.record import Record

from .exported import Exported, step, step_of
from .forward_call import ForwardCall
from .problem_folder import fill_folder, take_constants
from .problem_making import ProblemText
from .request import ExportRequest
from .sandboxed import export_in_sandbox

MODEL_FILE = "model.py"
_LARGEST_GPU_BYTES = 288 * 10**9
"""Memory of the GPU that has most. Source: NVIDIA B300 data sheet."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")


@dataclass(frozen=True)
class ImportRequest:
    """What is imported, and where to."""

    export: ExportRequest
    folder: Path
    """The problem becomes a folder below it."""
    name: str | None = None
    progress: Callable[[str], None] = ignore
    origin: str = ""
    """What is told as the source of a file that lies in a folder for this import alone."""

    @property
    def source(self) -> str:
        """What the problem is said to come from."""
        return self.origin or self.export.source

    @property
    def recorded(self) -> ExportRequest:
        """What import.json says was asked, without names that end with the import."""
        if not self.origin:
            return self.export
        return self.export.model_copy(update={"source": MODEL_FILE, "import_path": ()})


class WorkloadReport(Record):
    """One shape of an imported function."""

    workload: str
    kernel: str
    axes: dict[str, int]
    tensor_bytes: int


class ImportResult(Record):
    """What `kopt new` wrote; import.json is one of these."""

    format: Literal["kopt.import/1"] = "kopt.import/1"
    name: str
    folder: str
    """As the caller named it."""
    source: str
    torch: str
    nodes: int
    launches: int | None
    """Of the generated reference.cu; None where there is none."""
    parameters: int
    workloads: tuple[WorkloadReport, ...]
    regimes: tuple[str, ...]
    left_out: dict[str, str]
    """Regimes that no check asks for, with why."""
    changed: dict[str, tuple[int, int]]
    """Integers of the source at the small shape, and as written."""
    row_axis: str | None
    warnings: tuple[str, ...] = ()
    call: ForwardCall | None = None
    """How forward is called; None where no export can take its place."""
    sandbox: str | None
    """Level of the sandbox that the user's Python ran in; None in the caller's own process."""
    unused: dict[str, int] = Field(default_factory=dict[str, int])
    """Arguments that no output depends on, with their places among the tensors: left out."""
    export: ExportRequest
    """What was asked, with which baseline.py makes the module again."""


def import_function(request: ImportRequest, settings: Settings) -> ImportResult:
    """Return what was written: a folder below `request.folder`, named after the problem.

    Raises:
        ToolError: The function cannot be imported, or the folder is there already.
        SetupError: torch is missing, or the sandbox does not work here.
    """
    place = place_of(request)
    last = LastTime("import", settings)

    def tell(line: str) -> None:
        number = step_of(line)
        request.progress(line if number is None else f"{line}{last.begin(number)}")

    with TemporaryDirectory(prefix="kopt-import-") as work:
        tell(step(1, "loading PyTorch, in the sandbox"))
        exported = export_in_sandbox(request.export, Path(work), settings, tell)
        result = write_problem(replace(request, progress=tell), exported, Path(work), place)
    last.end()
    return result


def place_of(request: ImportRequest) -> Path:
    """Return the folder that is to be written.

    Raises:
        ToolError: It is there already, or has no name that a problem may have.
    """
    place = (request.folder / _name_of(request)).absolute()
    if place.exists():
        raise ToolError(f"{place} is there already: remove it, or choose another name")
    return place


def write_problem(
    request: ImportRequest, exported: Exported, work: Path, place: Path
) -> ImportResult:
    """Write the folder `place` beside its place and rename it; `work` has the constants."""
    place.parent.mkdir(parents=True, exist_ok=True)
    request.progress(step(6, "writing the problem"))
    with staging_folder(place) as staging:
        inner = staging / place.name  # a problem's folder has its name while it is read
        inner.mkdir()
        result = _filled(request, exported, work, inner, place)
        if not publish_folder(inner, place):
            raise ToolError(f"{place} is there already: remove it, or choose another --name")
    return result


def _name_of(request: ImportRequest) -> str:
    source = request.export.source
    guessed = Path(source).stem if source.endswith(".py") else source.rpartition(":")[2]
    name = request.name or re.sub(r"[^a-z0-9]+", "_", guessed.lower()).strip("_")
    if request.name is None and name and not name[0].isalpha():
        name = f"p{name}"
    if not NAME.fullmatch(name):
        raise ToolError(f"--name {name!r} does not have the form {NAME.pattern}")
    return name


def _filled(
    request: ImportRequest, exported: Exported, work: Path, folder: Path, place: Path
) -> ImportResult:
    sized, basis = exported.sized, exported.basis
    name = place.name
    source = request.export.source
    description = f"{Path(request.source).name}, imported from PyTorch {sized.graph.torch}"
    if exported.unused:
        description += f"; without {', '.join(exported.unused)}, which it does not use"
    text = ProblemText(name, description, exported.precision)
    take_constants(sized, work, folder)
    if source.endswith(".py"):
        shutil.copy(source, folder / MODEL_FILE)
    filled = fill_folder(folder, text, sized, basis)
    problem = filled.problem
    result = ImportResult(
        name=name,
        folder=str(place),
        source=request.source,
        torch=sized.graph.torch,
        nodes=len(sized.graph.nodes),
        launches=filled.launches,
        parameters=exported.parameters,
        workloads=_workloads(problem),
        regimes=(*basis.regimes, *basis.derived),
        left_out=basis.left_out,
        changed=exported.changed,
        row_axis=problem.row_axis,
        warnings=(*basis.faults, *exported.warnings, *_unheld(problem), *filled.warnings),
        call=exported.call,
        sandbox=exported.sandbox,
        unused=exported.unused,
        export=request.recorded,
    )
    (folder / "import.json").write_text(result.model_dump_json(indent=1) + "\n", "utf-8")
    return result


def _unheld(problem: Problem) -> Iterator[str]:
    """Say which workloads have more in their tensors than any GPU has memory."""
    for one in _workloads(problem):
        if one.tensor_bytes > _LARGEST_GPU_BYTES:
            yield (
                f"{one.kernel} has {one.tensor_bytes:,} bytes of tensors: no GPU holds them, make"
                " the sizes of the source smaller"
            )


def _workloads(problem: Problem) -> tuple[WorkloadReport, ...]:
    return tuple(
        WorkloadReport(
            workload=one.name,
            kernel=problem.kernel_id(one),
            axes={name: one.axes[name] for name in problem.variable_axes},
            tensor_bytes=sum(tensor_size_bytes(t, one.axes) for t in problem.tensors),
        )
        for one in problem.workloads
    )
