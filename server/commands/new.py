"""`kopt new FILE|MODULE:ATTRIBUTE`: a PyTorch function as a problem, with its first kernel."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import click
from rich.text import Text

from kopt.config.counted import counted
from kopt.config.errors import ToolError
from kopt.kernels.precision import PRECISIONS, Precision
from kopt.server.exits import ExitCode
from kopt.server.options import to_folder_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.sizes import size_words
from kopt.server.views.tables import View
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.pytorch.importing.request import ExportRequest, Mode
from kopt.tools.pytorch.importing.stage import ImportRequest, ImportResult, import_function

EPILOG = """\b
Examples:
  kopt new model.py
  kopt new model.py -o problems --entry Attention --mode eval
  kopt new blocks.py --entry gelu --shape x=4096,4096 --dtype bfloat16
  kopt new mypackage.blocks:Block --inputs mypackage.blocks:example --dtype bfloat16
  kopt new model.py --small batch_size=4,hidden=256

\b
A file has a module or function, and get_inputs() for what it is called with;
get_init_inputs() has the arguments of a class (docs/pytorch.md). It runs in the
sandbox and on fake tensors, with torch on the CPU: pip install 'kopt-mcp[torch]'.
Exit codes: 0 written, 2 it cannot be imported, 3 this machine lacks something."""
_SHAPE = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<sizes>\d+(?:,\d+)*)?")
_NUMBER = re.compile(r"(?P<name>[\w:]+)=(?P<value>\d+)")
_DTYPES = ("float32", "bfloat16", "float16", "float64")


@dataclass(frozen=True)
class NewOptions:
    """The options of `kopt new`, under click's names."""

    source: str
    folder: Path
    entry: str | None
    inputs: str | None
    shape: tuple[str, ...]
    dtype: str | None
    init: str | None
    mode: Mode
    small: str
    name: str | None
    precision: Precision

    def export(self) -> ExportRequest:
        """Return what the child is asked for.

        Raises:
            ToolError: A shape or a small size is malformed, or the file is not there.
        """
        source, import_path = _source_of(self.source)
        return ExportRequest(
            source=source,
            import_path=import_path,
            entry=self.entry,
            inputs=self.inputs,
            init=self.init,
            shapes=dict(map(_shape, self.shape)),
            dtype=self.dtype,
            mode=self.mode,
            precision=self.precision,
            small=None if self.small == "auto" else dict(map(_number, self.small.split(","))),
        )


@click.command("new", epilog=EPILOG)
@click.argument("source", metavar="FILE|MODULE:NAME")
@to_folder_option(
    "The problem becomes a folder in it.  [default: the current folder]", default=Path()
)
@click.option("--entry", metavar="NAME", help="Class, instance or function.  [default: Model]")
@click.option("--inputs", metavar="NAME", help="What returns its inputs.  [default: get_inputs]")
@click.option(
    "--shape", multiple=True, metavar="X=N,M", help="Shape of a drawn input, instead of --inputs."
)
@click.option("--dtype", type=click.Choice(_DTYPES), help="Converts parameters and inputs to it.")
@click.option("--init", metavar="NAME", help="What returns a class's arguments: get_init_inputs.")
@click.option(
    "--mode",
    type=click.Choice(["as-is", "eval"]),
    default="as-is",
    show_default=True,
    help="eval: as after .eval(), without dropout and with the norms' running statistics.",
)
@click.option(
    "--small",
    metavar="auto|N=8,...",
    default="auto",
    show_default=True,
    help="Integers of the source at the shape that is checked.",
)
@click.option("--name", metavar="NAME", help="Of the problem.  [default: that of the file]")
@click.option(
    "--precision",
    type=click.Choice(tuple(PRECISIONS)),
    default="torch",
    show_default=True,
    help="What float32 products may do: torch rounds operands of convolutions to TF32.",
)
@command_body(NewOptions)
def command(session: Session, options: NewOptions) -> int:
    """Make a problem of a PyTorch module or function: oracle, shapes, baselines, first kernel."""
    with status_line(quiet=session.as_json) as show:
        show(f"reading {options.source}")
        request = ImportRequest(options.export(), options.folder, options.name, show)
        result = import_function(request, session.settings)
    session.show(result, import_view(result), _after(result))
    return ExitCode.PASSED


def import_view(result: ImportResult) -> View:
    """Yield what was written and what is to be said of it."""
    launches = "no reference.cu" if result.launches is None else f"{result.launches} launches"
    launches = "1 launch" if result.launches == 1 else launches
    yield Text(
        f"{result.folder}: {counted(result.nodes, 'operator')}, {launches},"
        f" {counted(result.parameters, 'parameter')}"
    )
    yield Text(f"torch {result.torch}, sandbox {result.sandbox}", style="dim")
    for one in result.workloads:
        axes = ", ".join(f"{name}={value}" for name, value in one.axes.items())
        yield Text(f"  {one.kernel}: {size_words(one.tensor_bytes)} of tensors ({axes})")
    for regime, reason in result.left_out.items():
        yield Text(f"  without {regime} inputs: {reason}")
    for warning in result.warnings:
        yield Text(f"  ! {warning}")


def _after(result: ImportResult) -> NextCommand:
    if result.launches is None:
        return _skeleton(result)
    reference = str(Path(result.folder) / "reference.cu")
    return NextCommand(
        ("kopt", "check", reference, "--level", "full", "--device", "sim"),
        "to see that its first kernel is right",
    )


def _skeleton(result: ImportResult) -> NextCommand:
    """Return what writes the kernel that the import could not, as far as its arguments."""
    words = ("kopt", "show", result.workloads[0].kernel, "--skeleton")
    reference = str(Path(result.folder) / "reference.cu")
    return NextCommand(words, "to fill in", into=reference).on(Path(result.folder).parent)


def _source_of(source: str) -> tuple[str, tuple[str, ...]]:
    """Return a file with its absolute name, or a module, and where its imports are found."""
    if not source.endswith(".py"):
        if ":" not in source:
            raise ToolError(f"{source!r} is neither a file FILE.py nor MODULE:NAME")
        return source, (os.getcwd(),)
    path = Path(source).absolute()
    if not path.is_file():
        raise ToolError(f"there is no file {source}")
    return str(path), (str(path.parent),)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ToolError(f"--shape {text!r} is not of the form x=16,4096")
    sizes = tuple(int(one) for one in (match["sizes"] or "").split(",") if one)
    if 0 in sizes:
        raise ToolError(f"--shape {text!r} has no elements: sizes are 1 or more")
    return match["name"], sizes


def _number(text: str) -> tuple[str, int]:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ToolError(f"--small {text!r} is not of the form NAME=8")
    return match["name"], int(match["value"])
