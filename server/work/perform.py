"""The one place where a tool call's work is done, with the stages that the command line uses.

It runs in a runner process and blocks. What a candidate did wrong is in the record that comes back;
only what stops the work itself is raised.
"""

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.candidate import candidate_of_text
from kopt.kernels.case import Case
from kopt.kernels.record import Record
from kopt.server.find_case import case_of
from kopt.tools.bench.request import BenchRequest
from kopt.tools.check.request import CheckRequest
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.profiling.stage import ProfileRequest

from . import stages
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
    show, seeds = site.steps(), tuple(dict.fromkeys(work.seeds))
    request = CheckRequest(case, work.level, seeds=seeds, progress=show)
    with site.devices.use(work.device, show) as opened:
        return stages.check(request, opened, site.settings)


def _bench(work: BenchWork, site: WorkSite) -> Record:
    case = _case(work, site)
    show = site.steps()
    request = BenchRequest(case, progress=show)
    with site.devices.use(work.device, show) as opened:
        return stages.bench(request, opened, site.settings)


def _profile(work: ProfileWork, site: WorkSite) -> Record:
    case = _case(work, site)
    show = site.steps()
    request = ProfileRequest(case, counters=work.counters, progress=show)
    with site.devices.use(work.device, show) as opened:
        return stages.profile(request, opened, site.settings)


def _case(work: SourceWork, site: WorkSite) -> Case:
    candidate = candidate_of_text(work.source, work.source_name)
    return case_of(candidate, work.kernel, site.settings, work.tune)
