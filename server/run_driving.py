"""`kopt run`: one run from the opened device to its reports, as the command line asked for it."""

from contextlib import closing
from dataclasses import replace

import click

from kopt.config.device_names import is_simulated
from kopt.config.errors import (
    BackendUnavailable,
    FarSetupError,
    InfraError,
    KoptError,
    SetupError,
    ToolError,
)
from kopt.config.home_use import deleted_caches_told
from kopt.config.search_settings import SearchSettings
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.best_known_search import KnownKernelSearch, find_best_known
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.models.errors import CallFailed
from kopt.search.models.model_source import refuse_unaskable, refuse_unready
from kopt.search.records.budget import UNLIMITED, Budget
from kopt.search.records.run_state import RunState
from kopt.search.reports.files import write_reports
from kopt.search.reports.next_steps import resuming
from kopt.search.reports.run_report import RunReport, report_run, view_run
from kopt.search.runs.parts import RunPlace
from kopt.search.runs.run import RunRequest, begin_run, drive_run, goes_on, reopen_run
from kopt.search.store.store import RunStore
from kopt.tools.check.uses import refuse_timed_workload
from kopt.tools.facts.next_command import NextCommand

from .exits import Interrupted
from .find_case import read_named_candidate
from .opened_device import DeviceChoice, OpenedDevice, opened_device
from .progress import status_line
from .run_opening import say_who_is_asked
from .run_options import RunOptions
from .run_progress import run_progress, waiting_lines
from .session import Session
from .spending import (
    Spending,
    agree_to_spend,
    refuse_uncountable_dollars,
    warn_of_eaten_dollar,
)
from .starting import program_name

DIFFERING = "requests that differ from the recorded ones: {}; this is not the run that was recorded"


def refuse_typos(options: RunOptions, kernel: str, session: Session) -> RunRequest:
    """Return the new run that is asked for, before anything waits for a GPU.

    Raises:
        ToolError: A kernel, a start, a recording or a setting that is not there.
        SetupError: No model could be asked as it is meant.
    """
    find_kernel(kernel, session.settings.problems)
    if options.start is not None:
        read_named_candidate(options.start, kernel)
    search, budget = read_settings(options, session)
    return RunRequest(
        kernel=kernel,
        start=options.start,
        seed=options.seed or 0,
        search=search,
        budget=budget,
        asks_models=not options.no_models,
    )


def read_settings(options: RunOptions, session: Session) -> tuple[SearchSettings, Budget]:
    """Return what is asked of a new run whatever its kernel, once models could be asked so.

    Raises:
        ToolError: The budget, the settings or the recording are none.
        SetupError: No model could be asked as it is meant.
    """
    search, budget = options.search, options.parsed_budget or UNLIMITED
    refuse_unaskable(options.models, search, session.settings)
    if not options.no_models:
        refuse_uncountable_dollars(search, budget)
    if options.dry_run or options.models.exists(session.settings):
        budget = budget.for_models(search)
    return search, budget.share(options.share)


def agree_on_runs(options: RunOptions, session: Session, runs: int) -> None:
    """Have the user agree to what new runs may cost, if Claude is to be asked.

    Raises:
        ToolError: There is no agreement.
    """
    if not options.models.is_paid(session.settings):
        return
    refuse_unready(options.models)
    asked = options.parsed_budget or UNLIMITED
    if not options.is_quiet(session):
        warn_of_eaten_dollar(asked)
    search, budget = read_settings(options, session)
    spending = Spending(budget, search.models.provider, runs, options.yes, asked)
    agree_to_spend(spending, session, options.is_quiet(session))


def _agree_on_resuming(before: RunState, options: RunOptions, session: Session) -> None:
    """Have the user agree where a run that goes on may cost more than was agreed to before.

    Raises:
        ToolError: There is no agreement.
    """
    agreed, asked = before.settings.budget, options.parsed_budget or UNLIMITED
    search = before.settings.search.by(options.models.provider)
    wanted = agreed if options.budget is None else asked
    refuse_uncountable_dollars(search, asked)
    wanted = wanted.for_models(search)
    if not options.models.is_paid(session.settings):
        return
    refuse_unready(options.models)
    before_by = before.settings.search.models.provider
    is_agreed = before.settings.is_paid and before_by == search.models.provider
    spending = Spending(wanted, search.models.provider, is_yes=options.yes, named=asked)
    if not (is_agreed and spending.is_within(agreed)):
        agree_to_spend(spending, session, options.is_quiet(session))


def begin_and_drive(session: Session, options: RunOptions, kernel: str) -> RunReport:
    """Drive a new run of `kernel` to its end and return its report.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: It cannot be begun or gone on with; the message says how to go on, if it can be.
    """
    request = refuse_typos(options, kernel, session)
    choice = DeviceChoice(options.device, options.arch)
    with opened_device(choice, session.settings, waiting_lines(options.is_quiet(session))) as on:
        refuse_timed_workload(*find_kernel(kernel, session.settings.problems), on.device)
        gpu = None if on.timer is None else on.timer.facts
        found: dict[str, object] = {"arch": on.arch, "device": on.device.name, "gpu": gpu}
        found |= {"is_paid": options.replay is None}
        asked = request.model_copy(update=found)
        with closing(begin_run(asked, session.settings)) as store:
            return _drive(store, session, options, on)


def resume(session: Session, options: RunOptions, run: str) -> RunReport:
    """Drive a run on to its end and return its report; a finished one is reported as it is.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: It cannot be gone on with.
    """
    if options.for_new_runs:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options.for_new_runs)
        raise ToolError(f"{names} cannot be changed by --resume; only --budget can")
    with view_run(run, session.settings) as (reader, folder):
        before: RunState = reader.state()
        if not goes_on(before, options.parsed_budget):
            if not options.is_quiet(session):
                click.echo(_nothing_left(before), err=True)
            return report_run(reader, folder)
    if not before.settings.asks_models:
        if options.record is not None or options.replay is not None:
            raise ToolError(
                f"{before.id} asks no model (--no-models): leave out --record, --replay"
            )
        session, options = session.without_models, replace(options, no_models=True)
    options = options.of_run(before.settings)
    _agree_on_resuming(before, options, session)
    was_measured = not is_simulated(before.settings.device)
    device = before.settings.device_for(options.device)
    choice = DeviceChoice(device, needs_gpu=was_measured)
    with opened_device(choice, session.settings, waiting_lines(options.is_quiet(session))) as on:
        gpu = None if on.timer is None else on.timer.facts
        budget, models = options.parsed_budget, options.models
        reopened = reopen_run(before.id, session.settings, budget, gpu, models)
        with closing(reopened) as store:
            return _drive(store, session, options, on)


def stopped(error: KoptError, paused: str, again: NextCommand) -> KoptError:
    """Return what is told of an error that has paused a run or a study: also how to go on."""
    kind = type(error) if isinstance(error, ToolError | InfraError) else SetupError
    if isinstance(error, CallFailed) and error.kind == "time":
        kind = BackendUnavailable
    text = f"{error} ({paused} is paused; go on with: {again.by(program_name()).shell})"
    return FarSetupError(text, error.device) if isinstance(error, FarSetupError) else kind(text)


def _nothing_left(run: RunState) -> str:
    """Return why resuming a run changes nothing, and what would."""
    if run.status == "budget":
        spent = run.settings.budget
        return f"{run.id} has spent its budget of {spent}: give it more with --budget"
    return (
        f"{run.id} is {run.status}: nothing is left to do; kopt step --run {run.id} opens it again"
    )


def _drive(
    store: RunStore, session: Session, options: RunOptions, opened: OpenedDevice
) -> RunReport:
    """Drive the run to its end and write its reports, however it ends.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: This machine cannot evaluate; the message says how to go on, too.
    """
    name, quiet = store.folder.name, options.is_quiet(session)
    if not quiet:
        say_who_is_asked(store, session, options)
    again = resuming(name, store.reader.state().settings.problems)
    if options.no_models:
        again = replace(again, words=(*again.words, "--no-models"))
    site = EvaluationSite(opened.device, opened.timer, session.settings, store.artifacts)
    try:
        told = deleted_caches_told(session.settings.home)
        with told, run_progress(quiet, store.reader.events()) as callbacks:
            place = RunPlace(replace(site, say=callbacks.say), options.models)
            drive_run(store, place, callbacks.on_event)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted; {name} is paused", again) from stop
    except KoptError as error:
        raise stopped(error, name, again) from error
    finally:
        write_reports(store.reader, store.folder, session.settings)
    recording = options.models.recording
    if recording is not None and recording.differing and not quiet:
        click.echo(DIFFERING.format(recording.differing), err=True)
    report = report_run(store.reader, store.folder)
    if report.winner is None:
        return report
    asked = KnownKernelSearch(report.kernel, report.arch, opened.device, session.settings)
    try:
        with status_line(quiet) as show:
            known = find_best_known(replace(asked, progress=show))
    except KeyboardInterrupt:  # the run is done, and its winner is what was asked for
        return report
    return report.model_copy(update={"best_known": known})
