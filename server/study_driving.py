"""`kopt study`: from the opened device to the study's report, as the command line asked for it."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click

from kopt import __version__
from kopt.config.counted import counted
from kopt.config.errors import KoptError, SetupError, ToolError
from kopt.config.pool_address import is_pool
from kopt.config.providers import COST_KINDS, NAMES, Provider
from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.config.time_left import TimeLeft
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.models.model_source import ModelSource, refuse_unaskable, refuse_unready
from kopt.search.records.budget import UNLIMITED, Budget, parse_budget
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.study.outcome import RunStanding, read_standing, read_targets
from kopt.search.study.plan import ABLATIONS, WITHOUT_MODELS, Arm, StudyPlan, make_arms, with_bases
from kopt.search.study.study_folder import drive_cell
from kopt.search.study.study_page import write_study
from kopt.search.study.study_report import StudyReport, report_study
from kopt.tools.facts.next_command import NextCommand

from .exits import Interrupted
from .knowledge_access import read_base_file
from .opened_device import DeviceChoice, OpenedDevice, opened_device
from .run_driving import stopped
from .run_progress import run_progress, waiting_lines
from .session import Session
from .spending import Spending, agree_to_spend, warn_of_eaten_dollar

NO_KEY = (
    "no ANTHROPIC_API_KEY: a study compares what models do. --provider claude-code asks Claude Code"
    " by its own login; --no-models compares the search that"
    " asks none, with memory and without; make demo-study shows one with a scripted model"
)
_OF_EVERY_STUDY = ("device", "resume", "yes", "dry_run", "progress")
REPEATS, TARGET = 1, 1.3
_MOST_BARE = 10.0
"""A target without a unit is a speed up to here; 95 may have been meant as a share."""


@dataclass(frozen=True)
class StudyOptions:
    """Options of `kopt study`; None or empty where the command line names none."""

    kernel: tuple[str, ...]
    arm: tuple[str, ...]
    strategy: str | None
    rounds: int | None
    beam_width: int | None
    config: Path | None
    seed: int | None
    repeats: int | None
    target: str | None
    budget: str | None
    base: tuple[str, ...]
    device: str
    arch: str | None
    resume: str | None
    provider: Provider | None
    no_models: bool
    yes: bool
    dry_run: bool
    progress: bool

    @property
    def for_new_studies(self) -> tuple[str, ...]:
        """Names of what was given of all that only a new study can be told."""
        names = (one.name for one in fields(self) if one.name not in _OF_EVERY_STUDY)
        return tuple(name for name in names if getattr(self, name) not in (None, (), False))

    def is_quiet(self, session: Session) -> bool:
        """Return whether nothing but one JSON document is to be shown."""
        return session.as_json and not self.progress


def asked_of_study(options: StudyOptions, session: Session) -> dict[str, Any]:
    """Return the fields of a new study's plan but its device, before anything waits for a GPU.

    Raises:
        ToolError: A kernel, an arm, a setting or a base that is not there.
        SetupError: No model could be asked.
    """
    if not options.kernel:
        raise ToolError("name the kernels to compare on: --kernel ID, several times (kopt list)")
    twice = next((one for one in options.kernel if options.kernel.count(one) > 1), None)
    if twice is not None:
        raise ToolError(f"the kernel {twice} is named twice: --repeats N runs each N times")
    for kernel in options.kernel:
        find_kernel(kernel, session.settings.problems)
    common = load_search_settings(options.config).with_beam(options.beam_width, options.rounds)
    common = common.model_copy(update={"strategy": options.strategy or common.strategy})
    common = common.by(options.provider or common.models.provider)
    usual = WITHOUT_MODELS if options.no_models else tuple(ABLATIONS)
    bases = bases_of_study(options)
    named = (*options.arm, *bases)
    of_agents = [one for one in named if one in ABLATIONS and one not in WITHOUT_MODELS]
    if options.no_models and of_agents:
        raise ToolError(f"the arm {of_agents[0]} is one of agents: --no-models asks none")
    arms = with_bases(make_arms(options.arm or usual, common), bases, common)
    for file in bases.values():
        read_base_file(file)
    if not options.no_models:
        for arm in arms:
            _refuse_unaskable(arm.search, options, session)
    target, is_share = parse_target(options.target or f"{TARGET}x")
    budget: Budget = UNLIMITED if options.budget is None else parse_budget(options.budget)
    return {
        "arms": arms,
        "kernels": options.kernel,
        "repeats": options.repeats or REPEATS,
        "target": target,
        "is_share": is_share,
        "budget": budget.for_models(common),
        "seed": options.seed or 0,
        "asks_models": not options.no_models,
        "has_base": "" in bases,
        "based": tuple(name for name in bases if name),
    }


def _refuse_unaskable(search: SearchSettings, options: StudyOptions, session: Session) -> None:
    """Refuse an arm whose models could not be asked, or whose dollars nobody could count.

    Raises:
        ToolError: Its client reports no cost.
        SetupError: No model could be asked.
    """
    provider = search.models.provider
    if COST_KINDS[provider] == "unavailable":
        raise ToolError(
            f"a study counts dollars, and {NAMES[provider]} reports no cost: name another"
            " --provider"
        )
    source = ModelSource(provider)
    refuse_unaskable(source, search, session.settings)
    if not source.exists(session.settings) and not options.dry_run:
        raise SetupError(NO_KEY)


def parse_target(text: str) -> tuple[float, bool]:
    """Return a speed (`1.3x`, `1.3`), or a share of the best (`95%`) and True.

    Raises:
        ToolError: It is neither, or may be both.
    """
    is_share = text.endswith("%")
    with suppress(ValueError):
        value = float(text.removesuffix("%" if is_share else "x"))
        is_bare = not is_share and not text.endswith("x")
        if is_bare and (0.0 < value < 1.0 or _MOST_BARE < value <= 1000.0):
            raise ToolError(f"{text!r} may be {text}x or {text}%: write which")
        if 0.0 < value <= (100.0 if is_share else 1000.0):
            return (value / 100 if is_share else value), is_share
    raise ToolError(f"{text!r} is no speed such as 1.3x, and no share such as 95%")


def bases_of_study(options: StudyOptions) -> dict[str, Path]:
    """Return the files that bases begin as, by the names of their arms; "" for all other arms.

    Raises:
        ToolError: There are two of one name.
    """
    found: dict[str, Path] = {}
    for text in options.base:
        name, equals, file = text.partition("=")
        if not equals or Path(text).exists():
            name, file = "", text
        if name in found:
            raise ToolError(f"--base names {f'the arm {name}' if name else 'all arms'} twice")
        found[name] = Path(file)
    return found


def agree_on_study(asked: dict[str, Any], options: StudyOptions, session: Session) -> None:
    """Have the user agree to what all runs of a new study may cost.

    Raises:
        ToolError: There is no agreement.
    """
    if options.no_models:
        return
    arms: tuple[Arm, ...] = asked["arms"]
    sources = tuple(ModelSource(arm.search.models.provider) for arm in arms)
    paid: list[Provider] = [one.provider for one in sources if one.is_paid(session.settings)]
    if not paid:
        return
    for source in dict.fromkeys(sources):
        refuse_unready(source)
    named = UNLIMITED if options.budget is None else parse_budget(options.budget)
    if not options.is_quiet(session):
        warn_of_eaten_dollar(named)
    runs = len(asked["arms"]) * len(asked["kernels"]) * asked["repeats"]
    spending = Spending(asked["budget"], paid[0], runs, options.yes, named)
    agree_to_spend(spending, session, options.is_quiet(session))


def plan_of_study(asked: dict[str, Any], opened: OpenedDevice) -> StudyPlan:
    """Return the plan of a study on the opened device; it has no id before it is begun."""
    return StudyPlan(
        **asked,
        id="study-dry-run",
        device=opened.device.name,
        gpu=None if opened.timer is None else opened.timer.facts,
        arch=opened.arch,
        kopt_version=__version__,
        created_us=0,
    )


def drive_study(
    plan: StudyPlan, session: Session, options: StudyOptions, opened: OpenedDevice
) -> StudyReport:
    """Make every run that the study still lacks and return its report, which is written too.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: This machine cannot evaluate; the message says how to go on, too.
    """
    settings, quiet = session.settings, options.is_quiet(session)
    site = EvaluationSite(opened.device, opened.timer, settings, open_artifacts(settings.home))
    resume = ("kopt", "study", "--resume", plan.id)
    again = NextCommand(resume, "go on with the study").on(settings.problems)
    cells = list(plan.cells())
    ahead = [
        (number, cell)
        for number, cell in enumerate(cells, start=1)
        if read_standing(cell, inf, settings).outcome is None
    ]
    pace = TimeLeft(len(ahead))
    try:
        for at, (number, cell) in enumerate(ahead, start=1):
            place = f"{cell.arm}, repeat {cell.repeat + 1}: {cell.kernel} ({cell.run})"
            _say(quiet, f"[{number}/{len(cells)}] {place}{pace.left(at)}")
            drive_cell(plan, cell, site, partial(run_progress, quiet))
            target = read_targets(plan, settings)[cell.kernel]
            _say(quiet, f"  {_result_words(read_standing(cell, target, settings))}")
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted; {plan.id} is paused", again) from stop
    except KoptError as error:
        raise stopped(error, plan.id, again) from error
    finally:
        report = report_study(plan, settings)
        write_study(report)
    return report


@contextmanager
def device_of_study(
    plan: StudyPlan, session: Session, options: StudyOptions
) -> Generator[OpenedDevice]:
    """Open the device that a study goes on with; leaving ends its processes.

    Raises:
        ToolError: The device is not the one that the study began on.
        SetupError: The device is not there.
    """
    device = plan.device if options.device == "auto" else options.device
    choice = DeviceChoice(device, None if plan.gpu else plan.arch, needs_gpu=plan.gpu is not None)
    with opened_device(choice, session.settings, waiting_lines(options.is_quiet(session))) as on:
        found = None if on.timer is None else on.timer.facts
        key = "name" if is_pool(plan.device) else "uuid"  # a pool is several GPUs of one model
        if (found and getattr(found, key)) != (plan.gpu and getattr(plan.gpu, key)):
            before = "sim" if plan.gpu is None else f"{plan.gpu.name} ({plan.gpu.uuid})"
            raise ToolError(f"{plan.id} was begun on {before}: name that by --device")
        yield on


def _result_words(standing: RunStanding) -> str:
    """Return what a run came to, in a line."""
    outcome = standing.outcome
    if outcome is None:
        return standing.status
    speed = "no time" if outcome.speed is None else f"{outcome.speed:.3f}x {outcome.provenance}"
    winner = "" if outcome.winner is not None else ", without a winner"
    target = outcome.target
    told = {
        "reached": f"the target after {counted(target.candidates, 'candidate')},"
        f" {target.tokens:,} tokens",
        "cut": "its budget was spent before the target",
        "never": "it ended without the target",
    }
    return f"{speed}{winner}; {told[target.ending]}; ${outcome.usd:.2f} in all"


def _say(quiet: bool, line: str) -> None:
    if not quiet:
        click.echo(line, err=True)
