"""One step of a search as a piece of work: taken on a warm device, told of event by event."""

from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.members import StepCandidate
from kopt.search.records.run_state import Event
from kopt.search.step.result import StepHooks, StepRequest, StepResult, step_device
from kopt.search.step.step import take_step
from kopt.search.storage.artifacts import open_artifacts
from kopt.server.opened_device import compiled_for
from kopt.server.run_lines import BestSoFar, event_line

from .known_best import known_best
from .requests import StepWork, SubmittedCandidate, source_name
from .work_site import WorkSite


def search_step(work: StepWork, site: WorkSite) -> StepResult:
    """Take the step and return how the run stands.

    The job's id is the step's key: work that begins again finishes the same step.

    Raises:
        ToolError: The step cannot be taken as asked, or another process holds the run for too long.
        SetupError: This machine cannot evaluate; the run is paused.
        InfraError: The machine failed under the step; the run is paused.
    """
    request = StepRequest(
        kernel=work.kernel or None,
        run_id=work.run_id or None,
        candidates=tuple(map(_candidate, work.candidates)),
        device=work.device,
        arch=work.arch or None,
        key=site.key,
        owner=site.owner,
    )
    show = site.steps()
    best = BestSoFar()

    def follow(event: Event) -> None:
        line = event_line(event, best)
        if line is not None:
            show(line.strip())

    with site.devices.use(step_device(request, site.settings), show) as warm:
        opened = warm if work.run_id else compiled_for(warm, work.arch)
        if work.kernel:
            request = request.model_copy(update={"arch": opened.arch})
        place = EvaluationSite(
            opened.device, opened.timer, site.settings, open_artifacts(site.settings.home)
        )
        hooks = StepHooks(on_past=best.recall, on_event=follow, say=show)
        result = take_step(request, site.settings, place, hooks)
        show("looking for the best that is known")
        on_target = compiled_for(opened, result.arch)
        known = known_best(result.kernel, on_target, site, without_run=result.run)
        return result.model_copy(update={"best_known": known})


def _candidate(given: SubmittedCandidate) -> StepCandidate:
    fields = given.model_dump(exclude={"path", "tune"})
    return StepCandidate(**fields, source_name=source_name(given.path), tune=given.tune or None)
