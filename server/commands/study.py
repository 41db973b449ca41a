"""`kopt study`: ways to search compared on a set of kernels, with and without memory."""

from dataclasses import replace
from pathlib import Path

import click

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.search.study.study_folder import begin_study, find_study
from kopt.search.study.study_report import StudyReport, report_study
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import read_document
from kopt.server.opened_device import DeviceChoice, opened_device
from kopt.server.options import device_arch_option, device_option, provider_option
from kopt.server.run_progress import waiting_lines
from kopt.server.same_call import same_call
from kopt.server.session import Session, command_body
from kopt.server.study_driving import (
    REPEATS,
    TARGET,
    StudyOptions,
    agree_on_study,
    asked_of_study,
    bases_of_study,
    device_of_study,
    drive_study,
    parse_target,
    plan_of_study,
)
from kopt.server.views.study_view import forecast_view, study_view
from kopt.tools.facts.next_command import NextCommand

EPILOG = """\b
Examples:
  kopt study --kernel silu_and_mul_b8xh14336 --kernel fused_add_rmsnorm_b8xh4096 --dry-run
  kopt study --kernel silu_and_mul_b8xh14336 --kernel fused_add_rmsnorm_b8xh4096 \\
      --arm full --arm memory_off --repeats 3 --target 1.3x --budget 2usd
  kopt study --kernel silu_and_mul_b8xh14336 --arm full --arm wide=wide.yaml
  kopt study --kernel silu_and_mul_b8xh14336 --no-models --repeats 5 --device sim
  kopt study --kernel silu_and_mul_b8xh14336 --no-models --target 95% --base h100=h100.yaml
  kopt study --kernel silu_and_mul_b8xh14336 --provider claude-code --budget 2usd
  kopt study --resume study-20260101-120000-000

\b
Arms: full; memory_off, without the knowledge base; cycles_only, times in place
of profiles; minimal, a kernel with its profile in, a kernel out; NAME=FILE.yaml,
settings of your own. The others are compared with the first. Each arm and repeat has a
knowledge base of its own, carried from kernel to kernel. Ctrl-C pauses a study.
Needs ANTHROPIC_API_KEY, or --provider claude-code, and costs one run for each arm,
kernel and repeat: see --dry-run. With --no-models kopt writes the candidates and
nothing is paid; the arms are full and memory_off. On a terminal it asks
first; elsewhere name the dollars, or add --yes. The report is
KOPT_HOME/studies/STUDY/study.html.
Exit codes: 0 all runs have ended, 2 wrong usage, 3 this machine or the model
lacks something, 130 interrupted."""


def _target(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Return what was given, which has to be `1.3x` or `1.3`, or `95%`.

    Raises:
        click.BadParameter: It is no speed and no share of one, or may be both.
    """
    try:
        if text is not None:
            parse_target(text)
    except ToolError as error:
        raise click.BadParameter(str(error)) from error
    return text


@click.command("study", epilog=EPILOG)
@click.option("--kernel", metavar="ID", multiple=True, help="Kernel id (kopt list); several times.")
@click.option(
    "--arm",
    metavar="NAME[=FILE]",
    multiple=True,
    help="A way to search; several times.  [default: full, memory_off, cycles_only, minimal]",
)
@click.option("--repeats", type=click.IntRange(1, 100), help=f"Of each.  [default: {REPEATS}]")
@click.option(
    "--target",
    metavar="SPEED",
    callback=_target,
    help="What candidates and tokens are counted to, as 1.3x: over the baseline where it is"
    " measured, else over the starting kernel; or as 95%: of the fastest candidate of the kernel"
    f" that any run of the study finds.  [default: {TARGET:g}x]",
)
@click.option(
    "--budget", metavar="LIMITS", help="Of each run, as of kopt run: 2usd, 2Mtok, 50, 1h."
)
@click.option(
    "--strategy", type=click.Choice(["beam", "maic_rl"]), help="Of all arms.  [default: beam]"
)
@click.option("--rounds", type=click.IntRange(min=0), help="Of all arms.  [default: 4]")
@click.option("--beam-width", type=click.IntRange(min=1), help="Of all arms.  [default: 4]")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="YAML with what shall differ from config/search.yaml in all arms.",
)
@click.option("--seed", type=int, help="Of the first repeat; each next is one more.  [default: 0]")
@click.option(
    "--base",
    metavar="[NAME=]FILE",
    multiple=True,
    help="What knowledge bases begin as (kopt kb export): all, or those of the arm NAME, which"
    " searches as full does.  [default: the packaged seed]",
)
@device_option
@device_arch_option
@click.option("--resume", metavar="STUDY", help="Go on with this study, or show a finished one.")
@provider_option
@click.option("--no-models", is_flag=True, help="Ask no model, key or not: kopt writes kernels.")
@click.option("--yes", is_flag=True, help="Agree to what a model may cost: nothing is asked.")
@click.option("--dry-run", is_flag=True, help="Show what it would do and cost; run nothing.")
@click.option("--progress", is_flag=True, help="Show progress on stderr with --json too.")
@command_body(StudyOptions)
def command(session: Session, options: StudyOptions) -> int:
    """Compare ways to search on a set of kernels, and say what each part is worth.

    Each arm searches every kernel, in turns. Shown are the speeds, and the candidates, tokens and
    dollars that a target speed took, with 95 % intervals.
    """
    if options.no_models:
        session = session.without_models
    if options.dry_run:
        return _show_forecast(session, options)
    report = _begun(session, options) if options.resume is None else _resumed(session, options)
    page = NextCommand(("cat", f"{report.folder}/study.md"), "every run, and what it cost")
    session.show(report, study_view(report), page)
    return ExitCode.PASSED


def _begun(session: Session, options: StudyOptions) -> StudyReport:
    asked = asked_of_study(options, session)
    agree_on_study(asked, options, session)
    documents = {name: read_document(file) for name, file in bases_of_study(options).items()}
    choice = DeviceChoice(options.device, options.arch)
    with opened_device(choice, session.settings, waiting_lines(options.is_quiet(session))) as on:
        plan = begin_study(plan_of_study(asked, on), documents, session.settings)
        if not options.is_quiet(session):
            click.echo(f"{plan.id}: {len(list(plan.cells()))} runs", err=True)
        return drive_study(plan, session, options, on)


def _resumed(session: Session, options: StudyOptions) -> StudyReport:
    if options.for_new_studies:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options.for_new_studies)
        raise ToolError(f"{names} cannot be changed by --resume")
    plan = find_study(options.resume or "", session.settings)
    report = report_study(plan, session.settings)
    if report.status == "done":
        return report
    session = session if plan.asks_models else session.without_models
    with device_of_study(plan, session, options) as on:
        return drive_study(plan, session, options, on)


def _show_forecast(session: Session, options: StudyOptions) -> int:
    """Show what the study would do and cost; nothing is begun or asked."""
    from kopt.search.study.study_forecast import forecast_study

    if options.resume is not None:
        raise ToolError("--dry-run shows the plan of a new study: leave --resume out")
    asked = asked_of_study(options, session)
    choice = DeviceChoice(options.device, options.arch)
    # Looked at and not used: nothing waits for a GPU here, or stays.
    with opened_device(choice, replace(session.settings, gpu_idle_s=0.0), ignore) as on:
        plan = plan_of_study(asked, on)
        gpu = on.device.gpu or gpu_for_arch(on.arch)
    forecast = forecast_study(plan, session.settings, gpu)
    lacks_key = not forecast.can_begin
    more = ("--no-models",) if lacks_key and not options.arm else ()
    begins = same_call("begins it", without=("dry_run",), more=more)
    can_begin = forecast.can_begin or bool(more)
    session.show(forecast, forecast_view(forecast), begins if can_begin else None)
    return ExitCode.PASSED
