"""A study on disk: `KOPT_HOME/studies/<id>` with plan, reports, a base for each arm and repeat.

Its runs lie among all others, so that every command for runs serves them too; each is begun or
taken up where it was left, and driven to its end.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace

from pydantic import ValidationError

from kopt.config.errors import SetupError
from kopt.config.files import ensure_folder, write_atomically
from kopt.config.settings import Settings
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.models.model_source import ModelSource
from kopt.search.records.run_state import Event
from kopt.search.reports.files import write_reports
from kopt.search.runs.parts import RunPlace
from kopt.search.runs.run import RunCallbacks, RunRequest, begin_run, drive_run, reopen_run
from kopt.search.storage.transaction import now_us
from kopt.search.store.run_folders import find_folder, new_run_folder
from kopt.search.store.store import RunStore

from .plan import STUDY_PREFIX, Cell, StudyPlan

_PLAN = "study.json"
_BASE = "base.yaml"
_WINNERS = "winners"  # what search_docs calls them


def begin_study(asked: StudyPlan, documents: Mapping[str, str], settings: Settings) -> StudyPlan:
    """Create the study that is `asked` for and return its plan with its id; now it can be resumed.

    Args:
        asked: The plan.
        documents: What the bases of an arm begin as, by its name; "" for all others. Those without
            begin as the packaged seed alone.
        settings: Where studies are kept.

    Raises:
        ToolError: A document is no base.
        SetupError: KOPT_HOME cannot be written.
    """
    folder = new_run_folder(ensure_folder(settings.studies), STUDY_PREFIX)
    plan = asked.model_copy(update={"id": folder.name, "created_us": now_us()})
    for name, document in documents.items():
        write_atomically(folder / (f"base-{name}.yaml" if name else _BASE), document.encode())
    _begin_bases(plan, documents, settings)
    # Last: a folder without a plan is no study.
    write_atomically(folder / _PLAN, plan.model_dump_json(by_alias=True, indent=1).encode())
    return plan


def find_study(text: str, settings: Settings) -> StudyPlan:
    """Return the plan of the study that `text` names: an id, or an unmistakable part of one.

    Raises:
        ToolError: No study or several match.
        SetupError: Its plan cannot be read by this kopt.
    """
    found = settings.studies.glob(f"{STUDY_PREFIX}*/{_PLAN}")
    folders = sorted((file.parent for file in found), key=lambda one: one.name, reverse=True)
    folder = find_folder(text, folders, ("study", "studies"))
    try:
        plan = StudyPlan.model_validate_json((folder / _PLAN).read_bytes())
    except (OSError, ValidationError) as error:
        raise SetupError(f"{folder / _PLAN} cannot be read: damaged, or of another kopt") from error
    if plan.id != folder.name:  # its runs and its files are named after it
        raise SetupError(f"{folder} is a copy of {plan.id}: give the folder its name back")
    return plan


def cell_settings(plan: StudyPlan, cell: Cell, settings: Settings) -> Settings:
    """Return the settings of one run: with the base of its arm and repeat, and no other memory.

    Winners that were promoted are memory too; without them the base is all that an arm carries
    from kernel to kernel.
    """
    hidden = dict.fromkeys((*settings.without_sources, _WINNERS))
    folder = settings.studies / plan.id / "bases" / f"{cell.arm}-r{cell.repeat}"
    return replace(settings, knowledge_folder=folder, without_sources=tuple(hidden))


def _begin_bases(plan: StudyPlan, documents: Mapping[str, str], settings: Settings) -> None:
    """Make the base of each arm and repeat that has one begin as its document."""
    for cell in plan.cells():
        document = documents.get(cell.arm, documents.get(""))
        has_memory = plan.arm(cell.arm).search.memory == "on"
        if document is not None and cell.place == 0 and has_memory:
            with KnowledgeStore(cell_settings(plan, cell, settings).knowledge) as store:
                store.import_(document)


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
                place = RunPlace(replace(own, say=callbacks.say), _models(plan, cell))
                drive_run(store, place, callbacks.on_event)
        finally:
            write_reports(store.reader, store.folder, own.settings)


def _models(plan: StudyPlan, cell: Cell) -> ModelSource:
    return ModelSource(plan.arm(cell.arm).search.models.provider)


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
        asks_models=plan.asks_models,
        name=cell.run,
    )


def _opened(plan: StudyPlan, cell: Cell, settings: Settings) -> RunStore:
    """Return the open store of the run: new, or ready to be gone on with."""
    store = begin_run(request_of(plan, cell), settings)
    if store.reader.state().round < 0:
        return store
    store.close()
    return reopen_run(cell.run, settings, gpu=plan.gpu)
