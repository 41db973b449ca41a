"""`kopt kb merge`, `export`, `import` and `forget`: what goes out, comes in and counts no more."""

from functools import partial, reduce
from pathlib import Path

import click

from kopt.search.knowledge.merge import join
from kopt.search.knowledge.yaml_writer import render_complete
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import hand_out, open_knowledge, read_base_file, read_document
from kopt.server.session import Session, command_body, print_document
from kopt.server.views.knowledge_view import tries_words

MERGE_EPILOG = """\b
Examples:
  kopt kb merge mine.yaml theirs.yaml -o ours.yaml
  kopt kb merge *.yaml > ours.yaml

\b
The order of the files does not matter, nor does a file that is named twice. Of
each origin the newest evidence is taken, from whichever file has it."""
EXPORT_EPILOG = """\b
Examples:
  kopt kb export --to mine.yaml
  kopt kb export > mine.yaml"""
IMPORT_EPILOG = """\b
Example:
  kopt kb import theirs.yaml

\b
A file is taken whole or not at all; the same one twice changes nothing. Import
only what you trust: its gains and notes advise your runs. kopt kb forget ORIGIN
revokes all that came from one base."""
FORGET_EPILOG = """\b
Examples:
  kopt kb forget run-20260101-120000-000
  kopt kb forget run-20260101-120000-000/17
  kopt kb forget k3f9a2c1b"""

_out_option = partial(
    click.option,
    *("-o", "--to"),
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write it.  [default: stdout]",
)


@click.command("merge", epilog=MERGE_EPILOG)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@_out_option(metavar="OUT")
@command_body()
def merge(session: Session, files: tuple[Path, ...], to: Path | None) -> int:
    """Merge the bases that FILEs describe; this machine's own base is not touched."""
    base = reduce(join, (read_base_file(path) for path in files))
    hand_out(session, render_complete(base), to)
    return ExitCode.PASSED


@click.command("export", epilog=EXPORT_EPILOG)
@_out_option(metavar="FILE")
@command_body()
def export(session: Session, to: Path | None) -> int:
    """Write everything that another base can use: states, techniques, evidence, notes.

    No source of a candidate is in it, but the names of kernels and runs are.
    """
    with open_knowledge(session.settings, for_reading=True) as store:
        hand_out(session, store.export(), to)
    return ExitCode.PASSED


@click.command("import", epilog=IMPORT_EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@command_body()
def import_(session: Session, file: Path) -> int:
    """Take in the base that FILE describes (kopt kb export, merge, or a base.yaml).

    Its evidence is kept apart by origin and never counts as this base's own.
    """
    document = read_document(file)
    with open_knowledge(session.settings) as store:
        imported = store.import_(document, str(file))
    if session.as_json:
        shown = imported.model_dump(mode="json", exclude={"is_new"})
        print_document({"schema": "kopt.knowledge-import/1", "status": "passed", **shown})
        return ExitCode.PASSED
    if imported.is_new:
        origins = ", ".join(imported.origins) or "no new evidence, but texts"
        tries = f" with {tries_words(imported.tries)}" if imported.origins else ""
        click.echo(f"imported: {origins}{tries}; the base is at version {imported.version}")
    else:
        click.echo(f"nothing new; the base stays at version {imported.version}")
    if imported.left_out:
        click.echo(f"left out, own or forgotten: {', '.join(imported.left_out)}")
    return ExitCode.PASSED


@click.command("forget", epilog=FORGET_EPILOG)
@click.argument("name", metavar="RUN|SAMPLE|ORIGIN")
@command_body()
def forget(session: Session, name: str) -> int:
    """Revoke what a run, one sample or an imported base has taught, for good.

    The base is projected again without it; earlier versions keep it (kopt kb diff --since N).
    """
    with open_knowledge(session.settings) as store:
        forgotten = store.forget(name)
    if session.as_json:
        shown = list(forgotten)
        schema = "kopt.knowledge-forget/1"
        print_document({"schema": schema, "status": "passed", "forgotten": shown})
    elif forgotten:
        click.echo(f"forgotten: {', '.join(forgotten)}")
    else:
        click.echo(f"{name} was forgotten before")
    return ExitCode.PASSED
