"""`kopt runs`: earlier runs as a list, in detail, as a web page, as data; and their removal."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from kopt.config.errors import SetupError, ToolError
from kopt.search.reports.contents import read_contents
from kopt.search.reports.files import export_lines, write_reports
from kopt.search.reports.markdown import render_markdown
from kopt.search.reports.page import render_page
from kopt.search.reports.removal import RunRemoval, RunSelection, plan_removal, remove_runs
from kopt.search.reports.run_list import list_runs
from kopt.search.reports.run_report import report_run, view_run
from kopt.server.exits import ExitCode
from kopt.server.lazy_group import NamingGroup
from kopt.server.next_of_run import after_run
from kopt.server.session import Session, command_body, print_document, print_view
from kopt.server.spending import can_be_asked
from kopt.server.views.removal_view import removal_view
from kopt.server.views.run_view import run_view, runs_table
from kopt.tools.facts.next_command import NextCommand

EPILOG = """\b
Examples:
  kopt runs
  kopt runs show run-20260101-120000-000
  kopt runs report 120000-000 --to report.html
  kopt runs export 120000-000 > run.jsonl
  kopt runs rm --older-than 30d

\b
RUN is an id or any part of one that fits a single run. A run that is paused or
interrupted goes on with: kopt run --resume RUN"""

_HOURS = {"h": 1, "d": 24, "w": 168}


def _age(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """Read `30d`.

    Raises:
        click.BadParameter: It is no age.
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is no age such as 12h, 30d or 8w")
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])


@dataclass(frozen=True)
class RemovalOptions:
    """The options of `kopt runs rm`."""

    names: tuple[str, ...]
    older_than: timedelta | None
    keep: int | None
    dry_run: bool
    yes: bool


run_argument = click.argument("run", metavar="RUN")


def _to_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    file = click.Path(dir_okay=False, path_type=Path)
    return click.option("--to", type=file, metavar="FILE", help=help_text)


@click.group("runs", cls=NamingGroup, epilog=EPILOG, invoke_without_command=True)
@command_body()
def command(session: Session) -> int:
    """List earlier runs, newest first; or show, report, export or remove some."""
    if click.get_current_context().invoked_subcommand is not None:
        return ExitCode.PASSED
    return _list(session)


@command.command("list", hidden=True)
@command_body()
def listed(session: Session) -> int:
    """List earlier runs, newest first: what `kopt runs` alone does."""
    return _list(session)


def _list(session: Session) -> ExitCode:
    found = list_runs(session.settings)
    if session.as_json:
        document = found.model_dump(mode="json", by_alias=True)
        print_document({"schema": "kopt.runs/1", "status": "passed", **document})
    elif found.runs or found.damaged:
        print_view(runs_table(found))
    else:
        click.echo(f"no runs yet in {session.settings.runs}")
        click.echo(NextCommand(("kopt", "run", "--kernel", "ID"), "begins one").line())
    return ExitCode.PASSED


@command.command(
    "show",
    short_help="Show one run: ranking, statuses, winner.",
    epilog="\b\nExample:\n  kopt runs show run-20260101-120000-000",
)
@run_argument
@command_body()
def show(session: Session, run: str) -> int:
    """Show one run: ranking, statuses, winner. Works while it is running, too."""
    with view_run(run, session.settings) as (reader, folder):
        report = report_run(reader, folder)
    following = (one.on(report.problems) for one in after_run(report))
    session.show(report, run_view(report), *following)
    return ExitCode.PASSED


@command.command(
    "report",
    short_help="Write the report of one run.",
    epilog="\b\nExamples:\n  kopt runs report 120000-000\n"
    "  kopt runs report 120000-000 --to report.md",
)
@run_argument
@_to_option("Where to write one of the two; FILE.md is Markdown.  [default: both, with the run]")
@command_body()
def report(session: Session, run: str, to: Path | None) -> int:
    """Write what one run found as a web page and as Markdown.

    The page is one file without scripts or outside links. Works while the run goes on, too.
    """
    with view_run(run, session.settings) as (reader, folder):
        run = reader.state().id
        paths: tuple[Path, ...]
        if to is None:
            paths = write_reports(reader, folder, session.settings)
        else:
            contents = read_contents(reader, folder, session.settings)
            render = render_markdown if to.suffix == ".md" else render_page
            _write(to, [render(contents)])
            paths = (to,)
    if session.as_json:
        print_document(
            {
                "schema": "kopt.report/2",
                "status": "passed",
                "run": run,
                "paths": [str(path) for path in paths],
            }
        )
    else:
        for path in paths:
            click.echo(path)
    return ExitCode.PASSED


@command.command(
    "export",
    short_help="Export one run as JSON lines.",
    epilog="\b\nExample:\n  kopt runs export 120000-000 > run.jsonl",
)
@run_argument
@_to_option("Where to write the lines.  [default: stdout]")
@command_body()
def export(session: Session, run: str, to: Path | None) -> int:
    """Export everything that one run recorded as JSON lines, sources included.

    With --json the lines are the `records` of one document.
    """
    with view_run(run, session.settings) as (reader, folder):
        if session.as_json:
            records = [json.loads(line) for line in export_lines(reader, folder)]
            print_document({"schema": "kopt.run-export/1", "status": "passed", "records": records})
        elif to is not None:
            _write(to, (f"{line}\n" for line in export_lines(reader, folder)))
            click.echo(to, err=True)
        else:
            for line in export_lines(reader, folder):
                click.echo(line)
    return ExitCode.PASSED


@command.command(
    "rm",
    short_help="Remove runs; never one that is running.",
    epilog="\b\nExamples:\n  kopt runs rm 120000-000\n  kopt runs rm --older-than 30d --keep 10"
    "\n  kopt runs rm --keep 20 --dry-run",
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option(
    "--older-than", metavar="AGE", callback=_age, help="Those begun longer ago: 12h, 30d, 8w."
)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="All but the N newest.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; remove nothing.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@command_body(RemovalOptions, uses_home=False)
def remove(session: Session, options: RemovalOptions) -> int:
    """Remove runs, with the sources and results that no other run refers to.

    Their winners stay where they were promoted or exported to; a study loses those of its runs that
    are removed.
    """
    selection = RunSelection(options.names, options.older_than, options.keep)
    plan = plan_removal(selection, session.settings, datetime.now(UTC))
    if options.dry_run or not plan.runs:
        session.show(plan, removal_view(plan))
        return ExitCode.PASSED
    if not options.yes:
        _agree(session, plan)
    done = remove_runs(plan, session.settings)
    session.show(done, removal_view(done))
    return ExitCode.PASSED


def _agree(session: Session, plan: RunRemoval) -> None:
    """Ask on a terminal.

    Raises:
        ToolError: The user says no, or there is no terminal.
    """
    if not can_be_asked(session):
        raise ToolError(
            "nothing was removed: there is no terminal to ask on. Add --yes, or --dry-run to only"
            " see what would go"
        )
    print_view(removal_view(plan))
    if not click.confirm("Remove them?", err=True):
        raise ToolError("nothing was removed")


def _write(path: Path, parts: Iterable[str]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(parts)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}; choose another --to") from error
