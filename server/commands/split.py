"""`kopt split`: an imported network as a suite of sub-problems with weights."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click
from rich.text import Text

from kopt.config.device_names import is_simulated
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import target_named
from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.server.exits import ExitCode
from kopt.server.opened_device import DeviceChoice, timing_device
from kopt.server.options import target_option, to_folder_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.tables import View, grid
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.pytorch.splitting.split_file import Split
from kopt.tools.pytorch.splitting.stage import SplitRequest, split_network

EPILOG = """\b
Examples:
  kopt split problems/resnet -o resnet_parts
  kopt split problems/resnet -o resnet_parts --parts 6
  kopt split problems/resnet -o resnet_parts --device cuda:0

\b
Each part is a problem folder of its own, with what the network really feeds it
among its inputs; equal regions are one part with a count. A part's weight is its
share of the whole's time: estimated from bytes and operations, or with --device
cuda:N measured on its reference.cu. The folder is a suite: kopt suite run, kopt
run --suite; kopt stitch puts the winners together (docs/pytorch.md).
Exit codes: 0 written, 2 it cannot be split, 3 this machine lacks something."""


@dataclass(frozen=True)
class SplitOptions:
    """The options of `kopt split`, under click's names."""

    source: Path
    folder: Path
    by: str | None
    parts: int | None
    device: str | None
    arch: str | None


@click.command("split", epilog=EPILOG)
@click.argument("source", metavar="PROBLEM_DIR", type=click.Path(path_type=Path))
@to_folder_option("Is made, with a folder for each part.", required=True)
@click.option(
    "--by",
    type=click.Choice(["block"]),
    help="Cut at the network's modules: blocks of a ModuleList or Sequential.  [default]",
)
@click.option(
    "--parts",
    metavar="N",
    type=click.IntRange(1, 256),
    help="Cut into N regions of about equal cost instead, where few bytes are alive.",
)
@click.option(
    "--device",
    metavar="cuda:N",
    help="Measure the weights on this GPU.  [default: they are estimated]",
)
@target_option(f"GPU that estimates are for.  [default: {DEFAULT_ARCH}]")
@command_body(SplitOptions)
def command(session: Session, options: SplitOptions) -> int:
    """Cut an imported network into sub-problems that are searched one by one.

    PROBLEM_DIR is a folder that `kopt new` wrote.
    """
    if options.by is not None and options.parts is not None:
        raise ToolError("--by block and --parts N are two ways to cut: name one of them")
    if options.device is not None and is_simulated(options.device):
        raise ToolError("sim measures no time: leave --device out, and weights are estimated")
    with status_line(quiet=session.as_json) as show:
        opened = (
            nullcontext(None)
            if options.device is None
            else timing_device(DeviceChoice(options.device, options.arch), session.settings, show)
        )
        with opened as timer:
            request = SplitRequest(
                source=options.source,
                folder=options.folder,
                gpu=timer.gpu if timer else target_named(options.arch or DEFAULT_ARCH).gpu,
                parts=options.parts,
                timing=None if timer is None else lambda one: _measured_us(one, timer, session),
                progress=show,
            )
            result = split_network(request, session.settings)
    session.show(result, split_view(result), _after(result))
    return ExitCode.PASSED


def _measured_us(problem: Problem, timer: TimingDevice, session: Session) -> float:
    """Return the time of a part's reference.cu at the shape that is timed.

    Raises:
        ToolError: It could not be timed.
    """
    file = problem.folder / "reference.cu"
    case = Case(problem, problem.workloads[-1], read_candidate(file))
    request = BenchRequest(case=case, baselines="reference")
    result = bench_candidate(request, timer, session.settings)
    if result.latency is None:
        said = "; ".join(one.message for one in result.diagnostics[:1])
        raise ToolError(f"{problem.name} cannot be timed: {result.status.value} {said}")
    return result.latency.median_us


def split_view(split: Split) -> View:
    """Yield the parts with their weights."""
    yield Text(
        f"{split.folder}: {len(split.parts)} parts in {len(split.steps)} regions, cut {split.cut};"
        f" weights {split.weights} for {split.gpu} at {split.workload}"
    )
    table = grid("part", "count#", "weight#", "us each#", "operators#", "launches#", "regions")
    for part in split.parts:
        shown = ", ".join(part.regions[:3]) + (", ..." if part.count > 3 else "")
        launches = "-" if part.launches is None else str(part.launches)
        table.add_row(
            part.name,
            str(part.count),
            f"{part.weight:.1%}",
            f"{part.region_us:.2f}",
            str(part.operators),
            launches,
            shown,
        )
    yield table
    for part in split.parts:
        if part.fault:
            yield Text(f"  ! {part.name} is not searched by itself: {part.fault}")
    for warning in split.warnings:
        yield Text(f"  ! {warning}")


def _after(split: Split) -> NextCommand:
    return NextCommand(
        ("kopt", "run", "--suite", split.folder, "--no-models"),
        "search kernels for the parts, the heaviest most",
    )
