"""`kopt docs build`: get production code and index it, where something changed."""

import re
from pathlib import Path

import click

from kopt.server.exits import ExitCode, Interrupted
from kopt.server.progress import step_bar
from kopt.server.session import Session, command_body
from kopt.server.views.docs_library_view import build_step, build_view
from kopt.tools.docs.build_records import BuildResult
from kopt.tools.docs.library.git_sources import git_choice
from kopt.tools.docs.library.harvest import FileSelection, FolderChoice
from kopt.tools.docs.library.pins import default_keys, known_libraries, pins
from kopt.tools.docs.library_index.choices import build_chosen

_WEIGHT = re.compile(r"(.+):(-?\d+(?:\.\d*)?|-?\.\d+)")
"""A path may have colons: what looks like a number after the last one is the weight."""

EPILOG = f"""\b
Examples:
  kopt docs build
  kopt docs build --installed
  kopt docs build --source flashinfer --source liger
  kopt docs build --folder mine=~/kernels:0.9
  kopt docs build --git apex --git https://example.org/team/kernels.git

\b
By default: {", ".join(default_keys())}.
More libraries: {", ".join(key for key in known_libraries() if key not in default_keys())}.
What was chosen once stays in every later build; kopt docs sources --forget NAME
takes it out. Files are checked by hash and read, never run. Only what changed is
read again; Ctrl-C loses nothing.
Exit codes: 0 built, 1 built without a source that --source, --git or --folder
names, or, if they name none, without one that no earlier build had, 2 wrong usage,
3 no source could be had, 130 interrupted."""


def _folders(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[FolderChoice, ...]:
    """Read `NAME=PATH` or `NAME=PATH:WEIGHT`, each once.

    Raises:
        click.BadParameter: One is of another form, or no folder.
    """
    folders = tuple(_folder(text) for text in texts)
    names = [folder.name for folder in folders]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.BadParameter(f"{twice!r} is named twice")
    return folders


def _folder(text: str) -> FolderChoice:
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise click.BadParameter(f"{text!r} is not NAME=PATH or NAME=PATH:WEIGHT")
    path, quality = Path(rest).expanduser(), 1.0
    weighted = _WEIGHT.fullmatch(rest)
    if weighted and not path.is_dir():
        path, quality = Path(weighted[1]).expanduser(), float(weighted[2])
    if not path.is_dir():
        what = "a file, not a folder" if path.exists() else "not there"
        raise click.BadParameter(f"the folder of {name!r}, {path}, is {what}")
    return FolderChoice(name, path, quality)


@click.command("build", epilog=EPILOG)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="KEY",
    help="Only this library, and those built before.",
)
@click.option(
    "--installed",
    is_flag=True,
    help="From installed packages alone, in whatever version: no network.",
)
@click.option(
    "--git",
    multiple=True,
    metavar="NAME|URL",
    help=f"A repository: {', '.join(pins().repositories)}, an address or a local folder.",
)
@click.option(
    "--folder",
    "folders",
    multiple=True,
    callback=_folders,
    metavar="NAME=PATH[:WEIGHT]",
    help="A folder of yours as the source NAME; weight 0 to 1, default 1.",
)
@click.option("--fresh", is_flag=True, help="Read every file again, changed or not.")
@command_body(FileSelection)
def command(session: Session, selection: FileSelection) -> int:
    """Get production kernels and index them for kopt docs search.

    FlashInfer, vLLM, SGLang, CUTLASS, PyTorch's headers and more: about 74 MB to download once.
    """
    try:
        with step_bar(quiet=session.as_json) as show:
            result = build_chosen(
                selection, session.settings, lambda progress: show(build_step(progress))
            )
    except KeyboardInterrupt as error:
        again = "the same command without --fresh" if selection.fresh else "the same command"
        raise Interrupted(f"interrupted; nothing is lost: {again} goes on where it was") from error
    session.show(result, build_view(result))
    if missing := _missing(selection, result):
        click.echo(f"not had this time: {', '.join(missing)}; the same command gets them", err=True)
    return ExitCode.FELL_SHORT if missing else ExitCode.PASSED


def _missing(selection: FileSelection, result: BuildResult) -> list[str]:
    """Return what the call names and could not have; if it names nothing, what is not there.

    Of installed packages alone, nobody expects all.
    """
    skipped = {one.source for one in result.skipped}
    named = {
        *selection.sources,
        *(git_choice(text).key for text in selection.git),
        *(folder.name for folder in selection.folders),
    }
    if named or selection.installed:
        return sorted(named & skipped)
    return sorted(skipped - {one.source for one in result.sources})
