"""Parameters that several sub-commands share, and how their text is read.

What cannot be read is refused with `click.BadParameter`; an architecture without a data sheet with
`ToolError`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kopt.config.device_names import known_device
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import arch_named, target_named
from kopt.config.providers import PROVIDERS
from kopt.config.settings import DEFAULT_ARCH

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def one_arch(_: click.Context, __: click.Parameter, text: str) -> str:
    """Read `sm_100a`, or `B200`; refuse what has another form, or no data sheet here."""
    try:
        return arch_named(text)
    except ToolError as error:
        raise click.BadParameter(str(error)) from None


def optional_arch(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Read `sm_90a`; None for None, which leaves it to the device."""
    return None if text is None else one_arch(ctx, parameter, text)


def optional_target(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Read `sm_90a`, or `H200` where that is another GPU than its architecture's."""
    try:
        return None if text is None else target_named(text).name
    except ToolError as error:
        raise click.BadParameter(str(error)) from None


def arch_list(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    """Read `sm_100a,sm_90a`, once or in several options: each once, in the order given."""
    parts = dict.fromkeys(part.strip() for text in texts for part in text.split(","))
    return tuple(one_arch(ctx, parameter, part) for part in parts)


def tune_values(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> dict[str, int] | None:
    """Read `BLOCK=256,ROWS=2`, once or in several options; None for none: the header's defaults."""
    values: dict[str, int] = {}
    for part in (part for text in texts for part in text.split(",")):
        name, _equals, number = part.strip().partition("=")
        if not name or not re.fullmatch(r"-?\d+", number):
            raise click.BadParameter(f"{part!r} is not of the form NAME=NUMBER, e.g. BLOCK=256")
        if name in values:
            raise click.BadParameter(f"{name} is given twice: {values[name]} and {number}")
        values[name] = int(number)
    return values or None


provider_option = click.option(
    "--provider",
    type=click.Choice(PROVIDERS),
    help="Who answers the agents: anthropic, by ANTHROPIC_API_KEY, or a client on this machine that"
    " is logged in, such as with a subscription: claude-code, codex.  [default: anthropic]",
)


@dataclass(frozen=True)
class AskedTune:
    """Tune values of the command line, for a command that also takes all choices."""

    values: dict[str, int] | None
    every: bool
    """Whether every choice is meant that has `values`."""


def tune_values_or_all(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> AskedTune:
    """Read `BLOCK=256,ROWS=2`, `all`, or both: all choices with these values."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    named = tuple(part for part in parts if part != "all")
    return AskedTune(tune_values(ctx, parameter, named), every="all" in parts)


def one_device(_: click.Context, __: click.Parameter, text: str) -> str:
    """Read `auto`, `sim`, `sim:H200`, `cuda:N`, `cuda` for the first, or one of another machine."""
    try:
        return known_device(text)
    except ToolError as error:
        raise click.BadParameter(str(error)) from None


def one_device_or_none(
    ctx: click.Context, parameter: click.Parameter, text: str | None
) -> str | None:
    """Read a device as `one_device` does; None for None."""
    return None if text is None else one_device(ctx, parameter, text)


def one_file(ctx: click.Context, _: click.Parameter, files: tuple[Path, ...]) -> Path | None:
    """Return the only file, None for none; refuse several with what can be done with them."""
    if len(files) < 2:
        return files[0] if files else None
    sources = [file for file in files if file.suffix == ".cu"]
    others = [file for file in files if file.suffix != ".cu"]
    command = f"kopt {ctx.info_name}"
    if others:
        raise ToolError(
            f"{command} takes one .cu file, and {others[0]} is none: a kernel is named by --kernel"
            f" ID (kopt list)"
        )
    raise ToolError(
        f"{command} takes one file, not {len(sources)}: give it one after the other, {command}"
        f" {sources[0]}; kopt compile {' '.join(map(str, sources))} sets their resources side by"
        " side"
    )


def file_argument(*, required: bool = True) -> Decorator:
    """Return the argument of a command that works on one candidate."""
    kind = click.Path(path_type=Path)
    metavar = "FILE" if required else "[FILE]"
    return click.argument(
        "file", nargs=-1, required=required, metavar=metavar, type=kind, callback=one_file
    )


def kernel_option(required: bool) -> Decorator:
    """Return the --kernel option; where it is not required, the file's own folder decides."""
    inferred = "" if required else " Default: the problem in whose folder the file lies."
    return click.option(
        "--kernel",
        metavar="ID",
        required=required,
        help=f"Kernel id, e.g. add_rmsnorm_fp4quant_b128xh2048 (kopt list).{inferred}",
    )


def to_folder_option(help_text: str, **more: Any) -> Decorator:
    """Return -o, the folder that a command writes; `more` are other words of click's option."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option("-o", "--to", "folder", metavar="DIR", type=kind, help=help_text, **more)


def arch_or_none_option(help_text: str) -> Decorator:
    """Return --arch of one architecture, None if it is not given."""
    return click.option("--arch", callback=optional_arch, metavar="ARCH", help=help_text)


def target_option(help_text: str) -> Decorator:
    """Return --arch of an architecture or a GPU, None if it is not given."""
    return click.option("--arch", callback=optional_target, metavar="ARCH", help=help_text)


device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    callback=one_device,
    metavar="auto|sim|cuda:N|ssh://HOST/cuda:N|https://HOST/cuda:N|ray",
    help="Where candidates run: a GPU, counted within CUDA_VISIBLE_DEVICES, the CPU simulator, "
    "either on another machine, over ssh, or the GPUs of a Ray cluster (ray://HOST:PORT). auto: "
    "cuda:0 where it can be used, else sim; sim:H200 is sim for that GPU.",
)
device_arch_option = target_option(
    "Compiler target, or a GPU such as H200: sim takes its limits and estimates for it, too."
    f"  [default: the GPU's own; {DEFAULT_ARCH} on sim]"
)
tune_option = click.option(
    "--tune",
    multiple=True,
    callback=tune_values,
    metavar="NAME=N,...",
    help="Tune values, may be given several times; default: the first of each in the header.",
)
tune_or_all_option = click.option(
    "--tune",
    multiple=True,
    callback=tune_values_or_all,
    metavar="all|NAME=N,...",
    help="Tune values, may be given several times; default: the first of each in the header. all: "
    "a table of every choice; with values beside it, of those that have them.",
)
arch_option = click.option(
    "--arch",
    "archs",
    multiple=True,
    default=(DEFAULT_ARCH,),
    show_default=True,
    callback=arch_list,
    metavar="ARCH,...",
    help="Architectures to compile for, may be given several times.",
)
