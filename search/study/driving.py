"""One run of a study: begun or taken up where it was left, and driven to its end."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace

from kopt.config.settings import Settings
from kopt.search.evaluation.evaluate_job import EvaluationSite
from kopt.search.records.run_state import Event
from kopt.search.reports.files import write_reports
from kopt.search.runs.parts import RunPlace
from kopt.search.runs.run import RunCallbacks, RunRequest, begin_run, drive_run, reopen_run
from kopt.search.store.store import RunStore

from .plan import Cell, StudyPlan
from .study_folder import cell_settings

Watch = Callable[[Sequence[Event]], AbstractContextManager[RunCallbacks]]
"""Given the events of earlier sessions, yields whom the run is to tell of what comes."""


def drive_cell(plan: StudyPlan, cell: Cell, site: EvaluationSite, watch: Watch) -> None:
    """Drive the run of `cell` to its end and write its reports.

    Raises:
        KeyboardInterrupt: The user stopped it; the run is paused.
        KoptError: This machine cannot evaluate, or no model can be asked; likewise.
    """
    own = replace(site, settings=cell_settings(plan, cell, site.settings))
    with closing(_opened(plan, cell, own.settings)) as store:
        try:
            with watch(store.reader.events()) as callbacks:
                drive_run(store, RunPlace(replace(own, say=callbacks.say)), callbacks.on_event)
        finally:
            write_reports(store.reader, store.folder, own.settings)


def request_of(plan: StudyPlan, cell: Cell) -> RunRequest:
    """Return what `cell` asks of its run."""
    return RunRequest(
        kernel=cell.kernel,
        device=plan.device,
        gpu=plan.gpu,
        arch=plan.arch,
        seed=plan.seed + cell.repeat,
        search=plan.arm(cell.arm).search,
        budget=plan.budget,
        name=cell.run,
    )


def _opened(plan: StudyPlan, cell: Cell, settings: Settings) -> RunStore:
    """Return the open store of the run: new, or ready to be gone on with."""
    store = begin_run(request_of(plan, cell), settings)
    if store.reader.state().round < 0:
        return store
    store.close()
    return reopen_run(cell.run, settings, gpu=plan.gpu)
