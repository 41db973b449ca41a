"""The one place where a tool call's work is done, with the stages that the command line uses.

It runs in a runner process and blocks. What a candidate did wrong is in the record that comes back;
only what stops the work itself is raised.
"""

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.candidate import candidate_of_text
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Record
from kopt.server.find_case import refuse_unknown_tune
from kopt.tools.bench.request import BenchRequest
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice

from .benchmark import benchmark
from .requests import (
    BenchWork,
    CheckWork,
    CompileWork,
    ProfileWork,
    SourceWork,
    StepWork,
    Work,
)
from .work_site import WorkSite


def perform(work: Work, site: WorkSite) -> Record:
    """Do `work` and return the stage's own result record.

    Raises:
        ToolError: The work cannot be done as written: an unknown kernel, architecture, tune value
            or run.
        SetupError: This machine lacks a compiler, a GPU or a writable folder.
        InfraError: The machine failed under the work, not the candidate.
    """
    match work:
        case CompileWork():
            return _compile(work, site)
        case CheckWork():
            return _check(work, site)
        case BenchWork():
            return _bench(work, site)
        case ProfileWork():
            return _profile(work, site)
        case StepWork():
            # Half of what a runner would load, and most runners take no step.
            from .search_step import search_step

            return search_step(work, site)


def _compile(work: CompileWork, site: WorkSite) -> Record:
    case = _case(work, site)
    archs = tuple(dict.fromkeys(work.arch)) or (DEFAULT_ARCH,)
    site.steps()(f"compiling for {', '.join(archs)}")
    return compile_candidate(CompileRequest(case, archs), site.settings)


def _check(work: CheckWork, site: WorkSite) -> Record:
    case = _case(work, site)
    show = site.steps()
    with site.devices.use(work.device, show) as opened:
        request = CheckRequest(
            case=case,
            level=work.level,
            seeds=tuple(dict.fromkeys(work.seeds)),
            arch=opened.arch,
            progress=show,
        )
        return check_candidate(request, opened.device, site.settings)


def _bench(work: BenchWork, site: WorkSite) -> Record:
    case = _case(work, site)
    show = site.steps()
    request = BenchRequest(case=case, progress=show)
    with site.devices.use(work.device, show) as opened:
        return benchmark(request, opened, site.settings)


def _profile(work: ProfileWork, site: WorkSite) -> Record:
    case = _case(work, site)
    show = site.steps()
    with site.devices.use(work.device, show) as opened:
        request = ProfileRequest(
            case=case,
            arch=opened.arch,
            counters=work.counters,
            progress=show,
        )
        devices = ProfileDevices(SimDevice(site.settings), opened.timer)
        return profile_candidate(request, site.settings, devices)


def _case(work: SourceWork, site: WorkSite) -> Case:
    """Return the candidate with its kernel, its tune values among those that it declares."""
    candidate = candidate_of_text(work.source, work.source_name)
    kernel = find_kernel(work.kernel, site.settings.problems)
    case = Case(*kernel, candidate, work.tune or {})
    refuse_unknown_tune(case, option="tune")
    return case
