"""What `import kopt` offers to scripts and notebooks: the stages, each one call with its result.

They return the records that `--json` prints. What a candidate did wrong is in the record; an
exception says that the call is at fault (`ToolError`), this machine (`SetupError`: it lacks a GPU,
a compiler or a folder that can be written; `InfraError`: it failed), or kopt. Everywhere `device`
is auto, sim or cuda:N, and `settings` are those of the environment unless they are given.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import get_args

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.home_use import using_home
from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.config.settings import DEFAULT_ARCH, Settings, settings_from_environment
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import Candidate, candidate_of_text, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel, CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.precision import Precision
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.search.reports.run_report import RunReport
from kopt.server.find_case import refuse_unknown_tune
from kopt.server.opened_device import DeviceChoice, OpenedDevice, opened_device
from kopt.tools.bench.request import BaselineChoice, BenchRequest
from kopt.tools.check.request import CheckRequest

from . import stages


def case(
    kernel: str | Problem,
    candidate: Candidate | Path | str,
    tune: Mapping[str, int] | None = None,
    settings: Settings | None = None,
) -> Case:
    """Return a candidate with the kernel that it is for, as the stages take it.

    Args:
        kernel: A kernel id, or a problem, which stands for its first workload.
        candidate: A file, or its text; text has a line break.
        tune: Tune values by name; those left out have their default.
        settings: Where problems of your own are; None: as the environment says.

    Raises:
        ToolError: The id is unknown, the file cannot be read, or a tune value is no int or is not
            declared.
    """
    for name, value in (tune or {}).items():
        if type(value) is not int:  # bool is an int to isinstance
            raise ToolError(f"tune {name}={value!r}: a tune value is an int")
    if isinstance(kernel, str):
        where = settings or settings_from_environment()
        problem, workload = find_kernel(kernel, where.problems)
    else:
        problem, workload = kernel, kernel.workloads[0]
    made = Case(problem, workload, _candidate(candidate), tune or {})
    refuse_unknown_tune(made, option="tune")
    return made


def compile_case(case: Case, *archs: str, settings: Settings | None = None) -> CompileResult:
    """Return the resources of a candidate on `archs`, by default sm_100a; no GPU is needed.

    Raises:
        ToolError: An architecture is unknown.
    """
    from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate

    request = CompileRequest(case, archs or (DEFAULT_ARCH,))
    return compile_candidate(request, settings or settings_from_environment())


def check(
    case: Case,
    device: str = "auto",
    level: CheckLevel = "quick",
    seeds: tuple[int, ...] = (1, 2, 3),
    settings: Settings | None = None,
) -> CheckResult:
    """Return whether a candidate computes what its problem asks for.

    Level quick runs one workload with the first of the visible `seeds`; full every workload that
    the header claims, hidden seeds included.

    Raises:
        ToolError: No such device or level, or no seeds.
    """
    _refuse_other("level", level, get_args(CheckLevel))
    request = CheckRequest(case, level, seeds=seeds)
    with _opened(device, settings) as (opened, found):
        return stages.check(request, opened, found)


def bench(
    case: Case,
    device: str = "auto",
    baselines: BaselineChoice = "auto",
    settings: Settings | None = None,
) -> BenchResult:
    """Return the times of a candidate and its baselines; on sim the ratio of two estimates.

    Baselines are auto, library, reference or every (docs/benchmarking.md).

    Raises:
        ToolError: No such device or baselines, or libraries were asked for on sim.
    """
    _refuse_other("baselines", baselines, get_args(BaselineChoice))
    with _opened(device, settings) as (opened, found):
        return stages.bench(
            BenchRequest(case, baselines=baselines, proves=True, copies=True), opened, found
        )


def profile(
    case: Case, device: str = "auto", settings: Settings | None = None, *, counters: bool = True
) -> ProfileResult:
    """Return what limits a candidate; on a GPU with its time and the hardware's counters.

    Without `counters` Nsight Compute reads none, which saves seconds.

    Raises:
        ToolError: No such device, or the candidate has no plan for it.
    """
    from kopt.tools.profiling.stage import ProfileRequest

    with _opened(device, settings) as (opened, found):
        return stages.profile(ProfileRequest(case, counters=counters), opened, found)


def run(
    kernel: str,
    start: Path | None = None,
    device: str = "auto",
    search: SearchSettings | None = None,
    settings: Settings | None = None,
) -> RunReport:
    """Search for a faster kernel to the end and return the report; `kopt run` shows it meanwhile.

    With a key in `settings`, Claude writes candidates and is paid up to the dollars of `search`;
    with another provider in `search` its client does, by its own login; else kopt writes kernels
    where it knows the function, and sweeps tune values.

    Args:
        kernel: Kernel id.
        start: The source to start from; None: the problem's reference.cu.
        device: auto, sim or cuda:N.
        search: Rounds, beam and budget (docs/run.md); None: the defaults.
        settings: None: those of the environment.

    Raises:
        ToolError: No such kernel or device, or the start cannot be read.
        SetupError: This machine cannot evaluate; the run is paused and can be resumed.
        InfraError: The machine failed under the work; the run is paused likewise.
    """
    from kopt.search.evaluation.evaluation_site import EvaluationSite
    from kopt.search.models.model_source import ModelSource, refuse_unaskable
    from kopt.search.records.budget import UNLIMITED
    from kopt.search.reports.files import write_reports
    from kopt.search.reports.run_report import report_run
    from kopt.search.runs.parts import RunPlace
    from kopt.search.runs.run import RunRequest, begin_run, drive_run

    how = search or load_search_settings()
    models = ModelSource(how.models.provider)
    with _opened(device, settings) as (opened, found):
        refuse_unaskable(models, how, found)
        asked = RunRequest(
            kernel=kernel,
            start=start,
            device=opened.device.name,
            gpu=None if opened.timer is None else opened.timer.facts,
            arch=opened.arch,
            search=how,
            budget=UNLIMITED.for_models(how) if models.exists(found) else UNLIMITED,
        )
        with closing(begin_run(asked, found)) as store:
            site = EvaluationSite(opened.device, opened.timer, found, store.artifacts)
            try:
                drive_run(store, RunPlace(site, models))
            finally:
                write_reports(store.reader, store.folder, found)
            return report_run(store.reader, store.folder)


def problem_from(
    function: object,
    inputs: Sequence[object],
    folder: Path | str = ".",
    name: str | None = None,
    precision: Precision = "torch",
) -> Path:
    """Write a PyTorch module or function as a problem and return its folder.

    It is traced in this process, with torch on the CPU; `kopt new` does the same in the sandbox.

    Args:
        function: An nn.Module, or a function of tensors. `module.eval()` first leaves dropout out.
        inputs: Example inputs at the shape that is to be fast; a smaller one is cut out of them.
        folder: The problem becomes a folder in it.
        name: Of the problem; None: that of the class or function.
        precision: What float32 products may do (docs/problems.md).

    Raises:
        ToolError: It cannot be imported; the message names the operator and the line.
        SetupError: torch is not installed.
    """
    from kopt.tools.pytorch.importing.live import import_live

    return Path(import_live(function, inputs, Path(folder), name, precision).folder)


@contextmanager
def _opened(device: str, settings: Settings | None) -> Generator[tuple[OpenedDevice, Settings]]:
    found = settings or settings_from_environment()
    choice = DeviceChoice(device, has_spare=False, sim_name='device "sim"')
    with using_home(found.home), opened_device(choice, found, ignore) as opened:
        yield opened, found


def _refuse_other(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ToolError(f"{name} {value!r} is none of {', '.join(allowed)}")


def _candidate(candidate: Candidate | Path | str) -> Candidate:
    if isinstance(candidate, Candidate):
        return candidate
    if isinstance(candidate, str) and "\n" in candidate:
        return candidate_of_text(candidate)
    return read_candidate(Path(candidate))
