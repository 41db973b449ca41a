"""`kopt kb show`, `samples`, `diff` and `path`: what the base knows, and where it lies."""

from pathlib import Path

import click

from kopt.config.settings import Settings
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.diff import compare
from kopt.search.knowledge.policy.calibration import calibrate
from kopt.search.knowledge.policy.overview import find_state, report_base, report_state
from kopt.search.knowledge.records import ESTIMATED
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.knowledge.yaml_reader import read_base
from kopt.search.knowledge.yaml_writer import render_complete
from kopt.search.store.run_folders import find_folder, run_folders
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge, read_base_file
from kopt.server.options import one_arch
from kopt.server.session import Session, command_body, print_document
from kopt.server.views.knowledge_view import (
    base_view,
    calibration_view,
    differences_view,
    samples_view,
    state_view,
)

SHOW_EPILOG = """\b
Examples:
  kopt kb show
  kopt kb show dram_saturated --arch sm_90a
  kopt kb show --version 12
  kopt kb show --calibration"""
SAMPLES_EPILOG = """\b
Examples:
  kopt kb samples
  kopt kb samples --run run-20260101-120000-000
  kopt kb samples --state dram_saturated --last 100"""
DIFF_EPILOG = """\b
Examples:
  kopt kb diff --since 12
  kopt kb diff theirs.yaml
  kopt kb diff 12 15
  kopt kb diff mine.yaml theirs.yaml

\b
A and B are files or versions of this base; without B it is the present base."""


def _arch_key(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Read `sm_90a` or `sm_90a estimated`."""
    if text is None:
        return None
    kind = ESTIMATED if text.endswith(ESTIMATED) else ""
    return one_arch(ctx, parameter, text.removesuffix(ESTIMATED)) + kind


@click.command("show", epilog=SHOW_EPILOG)
@click.argument("state", metavar="[STATE]", required=False)
@click.option(
    "--arch",
    metavar="ARCH",
    callback=_arch_key,
    help='Expect for this one: sm_90a as measured, "sm_90a estimated" as on the simulator.'
    "  [default: the one with most tries]",
)
@click.option("--version", type=int, metavar="N", help="As it was then.  [default: now]")
@click.option("--calibration", is_flag=True, help="How good predictions were, per state.")
@command_body()
def show(
    session: Session, state: str | None, arch: str | None, version: int | None, calibration: bool
) -> int:
    """Show what is known: of all states, or of STATE everything.

    Expected gains are computed from documented priors and from evidence, measured and estimated
    kept apart.
    """
    if calibration:
        if arch is not None or version is not None:
            raise click.UsageError(
                "--calibration is of every architecture as of now: leave --arch and --version out"
            )
        return _show_calibration(session, state)
    with open_knowledge(session.settings, for_reading=True) as store:
        base, location = store.base(version), store.path
    if state is None:
        report = report_base(base, location, arch)
        session.show(report, base_view(report))
    else:
        of_state = report_state(base, state, arch)
        session.show(of_state, state_view(of_state))
    return ExitCode.PASSED


def _show_calibration(session: Session, state: str | None) -> ExitCode:
    with open_knowledge(session.settings, for_reading=True) as store:
        if state is not None:
            find_state(store.base(), state)
        found = calibrate(store.samples(state=state))
    shown = [one.model_dump(mode="json") for one in found]
    document = {"schema": "kopt.knowledge-calibration/1", "status": "passed", "calibration": shown}
    session.show(document, calibration_view(found))
    return ExitCode.PASSED


@click.command("samples", epilog=SAMPLES_EPILOG)
@click.option("--run", metavar="RUN", help="Only of this run: its id, or an unmistakable part.")
@click.option("--state", metavar="STATE", help="Only of programs in this state.")
@click.option(
    "--last", type=click.IntRange(min=1), default=20, show_default=True, help="How many, at most."
)
@command_body()
def samples(session: Session, run: str | None, state: str | None, last: int) -> int:
    """Show the latest tries: predicted and measured or estimated gain of each, and its outcome."""
    with open_knowledge(session.settings, for_reading=True) as store:
        if state is not None:
            find_state(store.base(), state)
        known_run = None if run is None else _known_run(run, store, session.settings)
        found = store.samples(last, state, known_run)
    shown = [sample.model_dump(mode="json") for sample in found]
    document = {"schema": "kopt.samples/1", "status": "passed", "samples": shown}
    session.show(document, samples_view(found))
    return ExitCode.PASSED


def _known_run(text: str, store: KnowledgeStore, settings: Settings) -> str:
    """Return the id of the run that `text` names, among those with samples and those on disk.

    Raises:
        ToolError: No run or several runs match; the message shows what there is.
    """
    names = {sample.run for sample in store.samples()}
    names |= {folder.name for folder in run_folders(settings)}
    newest_first = [Path(name) for name in sorted(names, reverse=True)]
    return find_folder(text, newest_first, ("run", "runs")).name


@click.command("diff", epilog=DIFF_EPILOG)
@click.argument("a", metavar="[A]", required=False)
@click.argument("b", metavar="[B]", required=False)
@click.option("--since", type=int, metavar="N", help="What has changed since version N.")
@command_body()
def diff(session: Session, a: str | None, b: str | None, since: int | None) -> int:
    """Show what B, or the present base, says that A does not say or says differently."""
    if (a is None) == (since is None):
        raise click.UsageError("name one thing to compare with: A, or --since N")
    names = (str(since) if a is None else a, b)
    bases = [_base(name, session.settings) for name in names]
    if any(map(_is_file, names)):
        # A file holds rounded numbers: rounding is no difference.
        bases = [read_base(render_complete(base), base.origin) for base in bases]
    differences = compare(*bases)
    shown = [one.model_dump(mode="json") for one in differences]
    document = {"schema": "kopt.knowledge-diff/1", "status": "passed", "differences": shown}
    session.show(document, differences_view(differences))
    return ExitCode.PASSED


def _base(name: str | None, settings: Settings) -> KnowledgeBase:
    if name is not None and _is_file(name):
        return read_base_file(Path(name))
    with open_knowledge(settings, for_reading=True) as store:
        return store.base(None if name is None else int(name))


def _is_file(name: str | None) -> bool:
    return name is not None and not name.isdecimal()


@click.command("path", epilog="\b\nExample:\n  less $(kopt kb path)")
@command_body()
def path(session: Session) -> int:
    """Print where the base lies as YAML, up to date; the truth is samples.sqlite beside it."""
    with open_knowledge(session.settings, for_reading=True) as store:
        location = str(store.path)
    if session.as_json:
        print_document({"schema": "kopt.knowledge-path/1", "status": "passed", "path": location})
    else:
        click.echo(location)
    return ExitCode.PASSED
