"""`kopt kb show`: what the base knows of all states, or of one in full."""

from dataclasses import dataclass

import click

from kopt.kernels.record import Record
from kopt.search.knowledge.policy.calibration import calibrate
from kopt.search.knowledge.policy.overview import find_state, report_base, report_state
from kopt.search.knowledge.records import ESTIMATED
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge
from kopt.server.options import optional_arch
from kopt.server.session import Session, command_body, print_document, print_view
from kopt.server.views.knowledge_view import base_view, calibration_view, state_view
from kopt.server.views.tables import View

EPILOG = """\b
Examples:
  kopt kb show
  kopt kb show dram_saturated --arch sm_90a
  kopt kb show --version 12
  kopt kb show --calibration"""


@dataclass(frozen=True)
class ShowOptions:
    """What of the base, and for which architecture."""

    state: str | None
    arch: str | None
    version: int | None
    calibration: bool


def _arch_key(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Read `sm_90a` or `sm_90a estimated`."""
    optional_arch(ctx, parameter, None if text is None else text.removesuffix(ESTIMATED))
    return text


@click.command("show", epilog=EPILOG)
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
@command_body(ShowOptions)
def command(session: Session, options: ShowOptions) -> int:
    """Show what is known: of all states, or of STATE everything.

    Expected gains are computed from documented priors and from evidence, measured and estimated
    kept apart.
    """
    if options.calibration:
        if options.arch is not None or options.version is not None:
            raise click.UsageError(
                "--calibration is of every architecture as of now: leave --arch and --version out"
            )
        return _show_calibration(session, options.state)
    with open_knowledge(session.settings) as store:
        base, path = store.base(options.version), store.path
    if options.state is None:
        report = report_base(base, path, options.arch)
        _show(session, report, base_view(report))
    else:
        of_state = report_state(base, options.state, options.arch)
        _show(session, of_state, state_view(of_state))
    return ExitCode.PASSED


def _show(session: Session, report: Record, view: View) -> None:
    session.show(report, view)


def _show_calibration(session: Session, state: str | None) -> ExitCode:
    with open_knowledge(session.settings) as store:
        if state is not None:
            find_state(store.base(), state)
        found = calibrate(store.samples(state=state))
    if session.as_json:
        shown = [one.model_dump(mode="json") for one in found]
        schema = "kopt.knowledge-calibration/1"
        print_document({"schema": schema, "status": "passed", "calibration": shown})
    elif found:
        print_view(calibration_view(found))
    else:
        click.echo("nothing was predicted yet: run a search with techniques first")
    return ExitCode.PASSED
