"""The one place where a tool call's work is done, with the stages that the command line uses.

It runs in a runner process and blocks. What a candidate did wrong is in the record that comes back;
only what stops the work itself is raised.
"""

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.candidate import candidate_of_text
from kopt.kernels.record import Record
from kopt.server.find_case import case_of
from kopt.server.opened_device import compiled_for
from kopt.tools.bench.request import BenchRequest
from kopt.tools.check.request import CheckRequest
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.profiling.stage import ProfileRequest

from . import stages
from .known_best import known_best
from .requests import (
    BenchWork,
    CheckWork,
    ComparedWork,
    CompileWork,
    ProfileWork,
    StepWork,
    TableWork,
    Work,
    source_name,
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
    if isinstance(work, StepWork):
        # Half of what a runner would load, and most runners take no step.
        from .search_step import search_step

        return search_step(work, site)
    settings, show = site.settings, site.steps()
    if isinstance(work, TableWork):
        from .choice_rows import choice_table

        with site.devices.use(work.device, show) as warm:
            return choice_table(work, compiled_for(warm, work.arch), site)
    candidate = candidate_of_text(work.source, source_name(work.path))
    tune = work.values if isinstance(work, ComparedWork) else work.tune
    case = case_of(candidate, work.kernel, settings, tune)
    if isinstance(work, CompileWork):
        archs = tuple(dict.fromkeys(work.arch)) or (DEFAULT_ARCH,)
        show(f"compiling for {', '.join(archs)}")
        return compile_candidate(CompileRequest(case, archs), settings)
    with site.devices.use(work.device, show) as warm:
        opened = compiled_for(warm, work.arch)
        match work:
            case CheckWork():
                seeds = tuple(dict.fromkeys(work.seeds))
                request = CheckRequest(case, work.level, seeds=seeds, progress=show)
                return stages.check(request, opened, settings)
            case BenchWork():
                timing = BenchRequest(case, proves=True, copies=True, progress=show)
                result = stages.bench(timing, opened, settings)
                if result.latency is None:
                    return result
                show("looking for the best that is known")
                known = known_best(work.kernel, opened, site)
                return result.model_copy(update={"best_known": known})
            case ProfileWork():
                profiling = ProfileRequest(
                    case, counters=work.counters, sass=work.sass, progress=show
                )
                return stages.profile(profiling, opened, settings)
