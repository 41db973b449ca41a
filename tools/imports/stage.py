"""`kopt import`: the tasks of a checkout imported one after the other into a suite's folder.

Each goes through the import of `kopt new`; its Python runs in that sandbox alone. A task that
cannot be imported is a row with its reason. What is done is kept: the next call goes on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from kopt import __version__
from kopt.config.callbacks import ignore, prefixed
from kopt.config.errors import NoAnswer, ToolError, UnjudgeableFunction
from kopt.config.settings import Settings
from kopt.config.time_left import TimeLeft
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.stage import ImportRequest, ImportResult, import_function

from .flashinfer_trace import trace_tasks
from .foreign_task import ForeignTask, Selection, distinct_names
from .gpumode import gpumode_tasks
from .imported_task import ImportedSuite, ImportedTask
from .kernelbench import kernelbench_tasks
from .robust_kbench import robust_kbench_tasks
from .sol_execbench import sol_tasks
from .suite_folder import SuiteFolder, importing_into

FORMATS: dict[str, Callable[[Path], Iterator[ForeignTask]]] = {
    "kernelbench": kernelbench_tasks,
    "trace": trace_tasks,
    "sol": sol_tasks,
    "robust-kbench": robust_kbench_tasks,
    "gpumode": gpumode_tasks,
}
"""Readers of checkouts, by the name of the format."""


@dataclass(frozen=True)
class SuiteImportRequest:
    """What is imported, and where to."""

    format: str
    checkout: Path
    folder: Path
    selection: Selection
    limit: int | None = None
    """Imports of this call at most; what was done before is not counted."""
    anew: bool = False
    """Whether refused tasks are tried again."""
    progress: Callable[[str], None] = ignore
    keep: Callable[[ImportedSuite], None] = ignore
    """Called with the result so far after each task."""


def read_tasks(request: SuiteImportRequest) -> tuple[ForeignTask, ...]:
    """Return the tasks that are wanted, read and not run.

    Raises:
        ToolError: There is no such checkout, or a level or an id is of no task.
    """
    if not request.checkout.is_dir():
        raise ToolError(f"there is no folder {request.checkout}: name a checkout of the benchmark")
    tasks = request.selection.of(FORMATS[request.format](request.checkout.resolve()))
    distinct_names(tasks)
    return tasks


def import_suite(request: SuiteImportRequest, settings: Settings) -> ImportedSuite:
    """Return what became of each wanted task; problems and suite.yaml lie in the folder.

    Raises:
        ToolError: Nothing can be read there, or the folder is of something else.
        SetupError: torch is missing, the sandbox does not work, or the folder cannot be written.
    """
    tasks = read_tasks(request)
    with importing_into(request.folder, request.format) as folder:
        result = ImportedSuite(
            format=request.format, folder=str(request.folder), planned=len(tasks)
        )
        known = {task.name: _kept(task, folder, request) for task in tasks}
        ahead = sum(row is None for row in known.values())
        pace = TimeLeft(ahead if request.limit is None else min(ahead, request.limit))
        if len(tasks) > ahead:
            request.progress(f"{len(tasks) - ahead} of {len(tasks)} tasks are done already")
        for task in tasks:
            row = known[task.name]
            made = len(result.tasks) - result.kept
            if row is None and made == request.limit:
                break
            kept = result.kept + (row is not None)
            if row is None:
                say = prefixed(pace.piece(made + 1, request.progress), task.origin)
                row = _imported(task, folder, say, settings)
                folder.keep(row)
            result = result.model_copy(update={"kept": kept, "tasks": (*result.tasks, row)})
            request.keep(result)
    return result


def _kept(
    task: ForeignTask, folder: SuiteFolder, request: SuiteImportRequest
) -> ImportedTask | None:
    """Return the row of a task that is done; None if it is to be imported."""
    row = folder.rows.get(task.name)
    if row is None or row.digest != task.digest:
        return None
    if row.outcome == "imported":
        return row if folder.place_of(task.group, task.name).is_dir() else None
    is_known = row.outcome == "refused" and row.kopt == __version__ and not request.anew
    return row if is_known else None


def _imported(
    task: ForeignTask, folder: SuiteFolder, say: Callable[[str], None], settings: Settings
) -> ImportedTask:
    start = perf_counter()
    place = folder.place_of(task.group, task.name)
    row = ImportedTask(
        task=task.name,
        group=task.group,
        id=task.id,
        origin=task.origin,
        digest=task.digest,
        kopt=__version__,
        outcome="refused",
        reason=task.fault,
    )
    if place.exists():
        said = f"{place} is there, of another text of the task: remove it to import this one"
        return row.model_copy(update={"outcome": "outdated", "reason": said})
    if task.fault:
        return row
    try:
        update = _of_result(_run(task, place.parent, say, settings))
    except UnjudgeableFunction as error:
        update = {"reason": str(error), "mark": error.cause}
    except NoAnswer as error:  # of no version: the next call tries it again
        update = {"reason": str(error), "kopt": ""}
    except ToolError as error:
        update = {"reason": str(error)}
    return row.model_copy(update={**update, "elapsed_s": perf_counter() - start})


def _run(
    task: ForeignTask, folder: Path, say: Callable[[str], None], settings: Settings
) -> ImportResult:
    """Import one task from a folder of its own: its Python can read nothing else of the checkout.

    Raises:
        ToolError: It cannot be imported; no path of this machine is in the message.
        SetupError: This machine lacks something.
    """
    with TemporaryDirectory(prefix="kopt-task-") as work:
        file = Path(work).resolve() / task.file_name
        file.write_text(task.model, "utf-8")
        export = ExportRequest(
            source=str(file), import_path=(str(file.parent),), precision=task.precision
        )
        request = ImportRequest(export, folder, task.name, say, origin=task.origin)
        try:
            return import_function(request, settings)
        except ToolError as error:
            error.args = (str(error).replace(f"{file.parent}/", ""),)
            raise


def _of_result(result: ImportResult) -> dict[str, object]:
    return {
        "outcome": "imported",
        "kernels": tuple(one.kernel for one in result.workloads),
        "launches": result.launches,
        "warnings": result.warnings,
    }
