"""`kopt import FORMAT PATH -o DIR`: the tasks of somebody else's benchmark as a suite."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.counted import counted
from kopt.server.exits import ExitCode
from kopt.server.options import to_folder_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.import_view import imported_suite_view
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.imports.foreign_task import Selection
from kopt.tools.imports.imported_task import ImportedSuite
from kopt.tools.imports.stage import FORMATS, SuiteImportRequest, import_suite

EPILOG = """\b
Examples:
  kopt import kernelbench ~/KernelBench -o kb
  kopt import kernelbench ~/KernelBench -o kb --level 1,2 --limit 10
  kopt import kernelbench ~/KernelBench -o kb --level level1 --ids 19,23,40
  kopt import trace ~/flashinfer-trace -o fi --ids rmsnorm_h4096
  kopt import sol ~/SOL-ExecBench/problems -o sol
  kopt import robust-kbench ~/robust-kbench -o rkb
  kopt import gpumode ~/reference-kernels/problems/pmpp_v2 -o gm
  kopt suite run kb

\b
PATH is your own checkout; nothing of it comes with kopt. Each task is imported
as kopt new does, its Python in the sandbox, and DIR becomes a suite that kopt
suite run takes (docs/suite.md). Call it again to go on after Ctrl-C or kill -9:
what is done is kept. A task that cannot be imported is a row with its reason.
Exit codes: 0 every task was imported, 1 some were not (the reasons are shown),
2 wrong usage, 3 this machine lacks something, 130 interrupted."""


def _words(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in (text or "").split(",")) if word)


@dataclass(frozen=True)
class ImportOptions:
    """The options of `kopt import`, under click's names."""

    form: str
    checkout: Path
    folder: Path
    level: tuple[str, ...]
    ids: tuple[str, ...]
    limit: int | None
    anew: bool

    @property
    def selection(self) -> Selection:
        """Which tasks are wanted; `--level 1` is level1."""
        levels = tuple(f"level{one}" if one.isdecimal() else one for one in self.level)
        return Selection(levels, self.ids)


@click.command("import", epilog=EPILOG)
@click.argument("form", metavar="FORMAT", type=click.Choice(tuple(FORMATS)))
@click.argument("checkout", metavar="PATH", type=click.Path(file_okay=False, path_type=Path))
@to_folder_option("The suite: new, or one of an earlier call.", required=True)
@click.option(
    "--level",
    metavar="1,2",
    callback=_words,
    help="Only tasks of these levels of KernelBench, or of these groups.",
)
@click.option(
    "--ids",
    metavar="ID,...",
    callback=_words,
    help="Only these tasks: numbers of KernelBench, names of the others.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Import N more tasks at most.")
@click.option("--anew", is_flag=True, help="Try tasks again that could not be imported.")
@command_body(ImportOptions)
def command(session: Session, options: ImportOptions) -> int:
    """Make a suite of a benchmark's tasks: KernelBench, FlashInfer-Trace, SOL-ExecBench and others.

    FORMAT is what the checkout at PATH is read as.
    """
    found = session.show_growing(
        lambda keep: _import(session, options, keep),
        imported_suite_view,
        lambda one: f"{len(one.tasks)} of {counted(one.planned, 'task')}",
        _after,
    )
    if found is None:
        return ExitCode.INTERRUPTED
    is_whole = found.counted("imported") == len(found.tasks)
    return ExitCode.PASSED if is_whole else ExitCode.FELL_SHORT


def _after(found: ImportedSuite) -> NextCommand | None:
    if not found.counted("imported"):
        return None
    return NextCommand(("kopt", "suite", "run", found.folder), "checks and times their kernels")


def _import(
    session: Session, options: ImportOptions, keep: Callable[[ImportedSuite], None]
) -> ImportedSuite:
    with status_line(quiet=session.as_json) as show:
        request = SuiteImportRequest(
            format=options.form,
            checkout=options.checkout,
            folder=options.folder,
            selection=options.selection,
            limit=options.limit,
            anew=options.anew,
            progress=show,
            keep=keep,
        )
        return import_suite(request, session.settings)
