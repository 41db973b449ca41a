"""`kopt gpu start`, `status` and `stop`."""

import click
from rich.text import Text

from kopt.config.errors import ToolError
from kopt.config.settings import RESIDENT_IDLE_S
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.tables import NOTHING, View, grid
from kopt.tools.gpu.discovery import find_gpu, require_worker_modules
from kopt.tools.resident.control import ResidentEvaluators, ask_evaluators
from kopt.tools.resident.place import place_of
from kopt.tools.resident.starting import start_evaluator

_DEVICE = "cuda:0"


@click.command("start", epilog="Example:\n  kopt gpu start --device cuda:1 --idle 3600")
@click.option("--device", default=_DEVICE, show_default=True, help="cuda:N.")
@click.option(
    "--idle",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="How long it stays without a caller.  [default: KOPT_GPU_IDLE_S, else"
    f" {RESIDENT_IDLE_S:g}]",
)
@command_body(uses_home=False)
def start(session: Session, device: str, idle: float | None) -> int:
    """Start the resident evaluator of a GPU; one that is there already stays as it is."""
    name = find_gpu(device).name
    require_worker_modules()
    place = place_of(name, session.settings)
    start_evaluator(place, idle or session.settings.gpu_idle_s or RESIDENT_IDLE_S)
    found = ask_evaluators(session.settings, "status", name)
    session.show(found, evaluators_view(found))
    return ExitCode.PASSED


@click.command("status", epilog="Example:\n  kopt gpu status --json")
@command_body(uses_home=False)
def status(session: Session) -> int:
    """Show the resident evaluators of this KOPT_HOME: callers, waits, and how busy each GPU is."""
    found = ask_evaluators(session.settings, "status")
    session.show(found, evaluators_view(found))
    return ExitCode.PASSED


@click.command("stop", epilog="Example:\n  kopt gpu stop --device cuda:0 --now")
@click.option("--device", help="cuda:N.  [default: all of this KOPT_HOME]")
@click.option("--now", is_flag=True, help="Hang up on callers too; they begin anew by themselves.")
@command_body(uses_home=False)
def stop(session: Session, device: str | None, now: bool) -> int:
    """Stop resident evaluators: at once where nobody uses them, else after their last caller."""
    if device is not None and not device.startswith("cuda:"):
        raise ToolError(f"--device {device}: a resident evaluator is one of cuda:N")
    found = ask_evaluators(session.settings, "end" if now else "stop", device)
    session.show(found, evaluators_view(found))
    return ExitCode.MACHINE if found.unheard else ExitCode.PASSED


def evaluators_view(found: ResidentEvaluators) -> View:
    """Yield a row for each evaluator, and one line for each of its callers."""
    if not (found.evaluators or found.unheard):
        yield Text("No resident evaluator listens; kopt gpu start starts one.")
        return
    table = grid("GPU", "process#", "since", "state", "turns#", "busy#", "wait p50#", "wait p95#")
    for one in found.evaluators:
        stays = "stays" if one.idle_s is None else f"stays {one.idle_s:g} s idle"
        state = "stopping" if one.is_stopping else stays
        table.add_row(
            one.device,
            str(one.pid),
            one.since,
            state,
            f"{one.turns:,}",
            f"{one.busy_share:.0%}",
            _seconds(one.wait_p50_s),
            _seconds(one.wait_p95_s),
        )
    if found.evaluators:
        yield table
    for one in found.evaluators:
        for caller in one.callers:
            yield Text(f"{one.device}: {caller.caller}, {caller.state}")
    for path in found.unheard:
        yield Text(f"What listens at {path} does not answer", style="yellow")


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g} s"
