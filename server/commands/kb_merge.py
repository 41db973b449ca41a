"""`kopt kb merge`: several documents of bases as one."""

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import click

from kopt.search.knowledge.merge import join
from kopt.search.knowledge.yaml_writer import render_complete
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import hand_out, read_base_file
from kopt.server.session import Session, command_body

EPILOG = """\b
Examples:
  kopt kb merge mine.yaml theirs.yaml -o ours.yaml
  kopt kb merge *.yaml > ours.yaml

\b
The order of the files does not matter, nor does a file that is named twice. Of
each origin the newest evidence is taken, from whichever file has it."""


@dataclass(frozen=True)
class MergeOptions:
    """Which files, and where the result goes."""

    files: tuple[Path, ...]
    to: Path | None


@click.command("merge", epilog=EPILOG)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="Where to write it.  [default: stdout]",
)
@command_body(MergeOptions)
def command(session: Session, options: MergeOptions) -> int:
    """Merge the bases that FILEs describe; this machine's own base is not touched."""
    base = reduce(join, (read_base_file(path) for path in options.files))
    hand_out(session, render_complete(base), options.to)
    return ExitCode.PASSED
