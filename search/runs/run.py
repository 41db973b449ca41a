"""Where runs lie and how one is begun, taken up again and driven with the parts of this machine.

A run is a folder `KOPT_HOME/runs/<run id>` with its store, its lock and, at the end, its winner.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kopt import __version__
from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder
from kopt.config.folder_owner import LOCAL_OWNER, write_owner
from kopt.config.pool_address import is_pool
from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel, own_folder
from kopt.search.models.model_source import ModelSource, is_played
from kopt.search.records.budget import Budget
from kopt.search.records.run_state import Event, RunSettings, RunState, RunTarget
from kopt.search.rounds.advance import run_search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.run_folders import find_run, new_run_folder
from kopt.search.store.run_lock import AT_ONCE, LockClaim
from kopt.search.store.store import RunStore
from kopt.tools.bench.bound_files import (
    BASELINE_FILES,
    DECISIVE_FILES,
    GRAPH_FILE,
    problem_files,
)

from .parts import RunPlace, search_of


class RunRequest(RunTarget):
    """What a user asks of a new run."""

    start: Path | None = None
    """The source to start from; None for the problem's reference.cu."""
    name: str | None = None
    """Its id, `run-...`; None for one made of the time. A run of this name is gone on with."""
    claim: LockClaim = AT_ONCE
    owner: str = LOCAL_OWNER
    """Whose run it is."""


def begin_run(request: RunRequest, settings: Settings) -> RunStore:
    """Create a run and return its open store; from here on it can be resumed.

    Raises:
        ToolError: No such kernel, or the starting source cannot be read.
        SetupError: KOPT_HOME cannot be written.
    """
    problem, _ = find_kernel(request.kernel, settings.problems)
    reference = problem.folder / "reference.cu"
    if request.start is None and not reference.is_file():
        raise ToolError(
            f"{reference} is missing: write it, or name a kernel to start from (--start)"
        )
    start = read_candidate(request.start or reference)
    own = own_folder(problem, settings.problems)
    artifacts = open_artifacts(settings.home)
    artifacts.sweep()
    run_settings = RunSettings(
        **{name: getattr(request, name) for name in RunTarget.model_fields if name != "is_paid"},
        is_paid=request.is_paid and not is_played(settings),
        problem_sha=_problem_digest(problem),
        start_sha=artifacts.put(start.source.encode()),
        start_name=start.name,
        problems=None if own is None else str(own),
    )
    runs = ensure_folder(settings.runs)
    folder = new_run_folder(runs) if request.name is None else ensure_folder(runs / request.name)
    write_owner(folder, request.owner)
    store = RunStore(folder, artifacts, request.claim)
    if not store.reader.run_exists():
        store.begin(run_settings, __version__)
    return store


def reopen_run(
    text: str,
    settings: Settings,
    budget: Budget | None = None,
    gpu: DeviceFacts | None = None,
    models: ModelSource | None = None,
) -> RunStore:
    """Return the open store of the run that `text` names, ready to be driven on.

    A finished run is opened as it is, unless it had spent its budget and is given a larger one.

    Args:
        text: A run id, or an unmistakable part of one.
        settings: Where runs lie.
        budget: A larger one; None keeps the run's.
        gpu: What it shall go on with; None for the simulator.
        models: Who answers its agents, if it asks any; None: the provider of its settings.

    Raises:
        ToolError: No such run, another process holds it, the problem has changed since, or the
            device is another one.
    """
    store = open_run(text, settings)
    try:
        state = store.reader.state()
        wanted = budget or state.settings.budget
        asks_models, search = state.settings.asks_models, state.settings.search
        source = models or ModelSource(search.models.provider)
        if asks_models:
            search = search.by(source.provider)
        if asks_models and source.exists(settings):
            wanted = wanted.for_models(search)
        if goes_on(state, wanted):
            refuse_another_device(state, gpu)
            gets_paid = asks_models and source.is_paid(settings)
            is_paid = state.settings.is_paid or gets_paid
            changed = {"budget": wanted, "is_paid": is_paid, "search": search}
            store.resume(state.settings.model_copy(update=changed))
    except BaseException:
        store.close()
        raise
    return store


def open_run(text: str, settings: Settings, claim: LockClaim = AT_ONCE) -> RunStore:
    """Return the open store of the run that `text` names, as it was left.

    Raises:
        ToolError: No such run, another process holds it, or the problem has changed since.
    """
    store = RunStore(find_run(text, settings), open_artifacts(settings.home), claim)
    try:
        if not store.reader.run_exists():
            raise ToolError(f"{store.folder.name} was killed before it began: start a new run")
        state = store.reader.state()
        problem, _ = find_kernel(state.settings.kernel, settings.problems)
        if _problem_digest(problem) != state.settings.problem_sha:
            raise ToolError(
                f"the problem {problem.name} has changed since {state.id} began: start a new run"
            )
    except BaseException:
        store.close()
        raise
    return store


def goes_on(state: RunState, budget: Budget | None) -> bool:
    """Return whether resuming a run has something left to do; a larger budget gives it more."""
    wanted = budget or state.settings.budget
    gets_more = state.status == "budget" and not state.settings.budget.covers(wanted)
    return gets_more or not state.is_finished


def drive_run(
    store: RunStore, place: RunPlace, on_event: Callable[[Event], None] | None = None
) -> RunState:
    """Search with the parts of `place` until the run ends and return its final state.

    Raises:
        KeyboardInterrupt: The user stopped it; the run is paused and can be resumed.
        KoptError: This machine cannot evaluate, or no model can be asked; the run is paused
            likewise.
    """
    with search_of(store, place) as search:
        return run_search(search, on_event)


def refuse_another_device(state: RunState, gpu: DeviceFacts | None) -> None:
    """Refuse to go on with a device whose times do not compare with those that the run has.

    Raises:
        ToolError: It is another one; the message names both.
    """
    before = state.settings.gpu
    if (before and before.uuid) == (gpu and gpu.uuid):
        return
    if is_pool(state.settings.device) and (before and before.name) == (gpu and gpu.name):
        return  # its candidates were measured on several GPUs of one model, each against a baseline
    if before is None:
        raise ToolError(f"{state.id} has estimates of sim: go on with --device sim")
    now = "sim measures no time" if gpu is None else f"cuda:{gpu.index} is {_gpu_words(gpu)}"
    raise ToolError(
        f"{state.id} was measured on {_gpu_words(before)}, {now}: name the first by --device"
        " cuda:N, or begin a new run"
    )


def _gpu_words(gpu: DeviceFacts) -> str:
    return f"{gpu.name} ({gpu.uuid})"


def _problem_digest(problem: Problem) -> str:
    """Return the SHA-256 of what makes `problem` this one; an import rests on its arrays, too."""
    parts = [(problem.folder / name).read_bytes() for name in DECISIVE_FILES]
    if (problem.folder / GRAPH_FILE).is_file():
        files = sorted(problem_files(problem).items())
        parts += [f"{name} {sha}".encode() for name, sha in files if name not in BASELINE_FILES]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@dataclass(frozen=True)
class RunCallbacks:
    """What takes the events of a run and the lines beside them, from any thread."""

    on_event: Callable[[Event], None]
    """Every event, after it was committed."""
    say: Callable[[str], None]
    """What goes on besides the events, e.g. what the first timing waits for."""
