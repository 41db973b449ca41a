"""`kopt stitch`: the kernels of a network's parts as one candidate for the whole."""

from dataclasses import dataclass
from pathlib import Path

import click
from rich.text import Text

from kopt.config.settings import DEFAULT_ARCH
from kopt.server.exits import ExitCode
from kopt.server.options import one_arch
from kopt.server.part_winners import chosen_kernels
from kopt.server.session import Session, command_body
from kopt.server.views.tables import View, grid
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.pytorch.splitting.split_file import WHOLE_FOLDER
from kopt.tools.pytorch.stitching.stage import SplitFolder, Stitched, read_split_folder, stitch

EPILOG = """\b
Examples:
  kopt stitch resnet_parts -o resnet.cu
  kopt stitch resnet_parts --winners winner --arch sm_90a -o resnet.cu
  kopt stitch resnet_parts --winners kernels/ --use layer1_0=mine.cu -o resnet.cu
  kopt check resnet.cu --kernel resnet_small --problems resnet_parts/whole

\b
DIR is what kopt split wrote. A part without a kernel of its own has its
reference.cu. The result is an ordinary candidate for the whole: kopt check and
kopt bench judge it end to end (docs/pytorch.md).
Exit codes: 0 written, 2 a kernel or a part is not there or cannot be stitched."""


@dataclass(frozen=True)
class StitchOptions:
    """The options of `kopt stitch`, under click's names."""

    folder: Path
    file: Path
    winners: str
    use: tuple[str, ...]
    arch: str


@click.command("stitch", epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--to",
    "file",
    metavar="FILE.cu",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The candidate for the whole; is replaced.",
)
@click.option(
    "--winners",
    metavar="run|winner|reference|DIR",
    default="run",
    show_default=True,
    help="Whose kernels: the best of the runs in KOPT_HOME, promoted winners, the reference.cu of"
    " each part, or a folder of <part>.cu.",
)
@click.option("--use", metavar="PART=FILE", multiple=True, help="This kernel for this part.")
@click.option(
    "--arch",
    default=DEFAULT_ARCH,
    show_default=True,
    callback=one_arch,
    metavar="ARCH",
    help="The architecture that kernels must be for: runs, winners, and files named here.",
)
@command_body(StitchOptions)
def command(session: Session, options: StitchOptions) -> int:
    """Put kernels of the parts of a network together to one candidate for the whole."""
    given = read_split_folder(options.folder)
    how = (options.arch, session.settings)
    chosen = chosen_kernels(given, options.winners, options.use, how)
    result = stitch(given, chosen, options.file)
    session.show(result, stitch_view(result), _after(given, result, options.arch))
    return ExitCode.PASSED


def stitch_view(result: Stitched) -> View:
    """Yield which kernel stands for which part."""
    yield Text(
        f"{result.file}: {result.launches} launches of {len(result.parts)} parts for {result.whole}"
    )
    table = grid("part", "count#", "weight#", "from", "kernel")
    for part in result.parts:
        table.add_row(part.name, str(part.count), f"{part.weight:.1%}", part.origin, part.file)
    yield table
    for note in result.notes:
        yield Text(f"  ! {note}")


def _after(given: SplitFolder, result: Stitched, arch: str) -> NextCommand:
    whole = str(given.folder / WHOLE_FOLDER)
    words = ["kopt", "check", result.file, "--kernel", result.kernels[0], "--problems", whole]
    if arch != DEFAULT_ARCH:
        words += ["--arch", arch]
    return NextCommand(tuple(words), "whether the whole is right")
