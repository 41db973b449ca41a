"""Calls of benchmark and profile that are about several files or choices: one table, one job."""

import re

from kopt.config.errors import ToolError
from kopt.server.work.requests import (
    EVERY,
    MAX_FILES,
    ComparedWork,
    NamedSource,
    ProfileWork,
    TableWork,
)

from .choices import chosen_arch, chosen_device, known_kernel
from .given_source import Reader
from .refusal import shown

_HELD = re.compile(r"([A-Za-z_]\w*)=(-?\d{1,18})")


def is_table(arguments: ComparedWork) -> bool:
    """Return whether a call is about more than one file with one choice of tune values."""
    return bool(arguments.paths) or isinstance(arguments.tune, str)


def resolved_table(arguments: ComparedWork, reader: Reader) -> TableWork:
    """Return the work of a table, its files read and its names known.

    Raises:
        ToolError: A kernel, device, target or tune value is unknown, files are named in two ways,
            or one cannot be read.
    """
    options = reader.options
    if isinstance(arguments, ProfileWork) and arguments.sass:
        raise ToolError("sass shows one file with one choice of tune values: leave it out here")
    known_kernel(arguments.kernel, options.settings)
    tune, every = _asked_tune(arguments.tune)
    return TableWork(
        tool="profile" if isinstance(arguments, ProfileWork) else "benchmark",
        kernel=arguments.kernel,
        files=_files(arguments, reader),
        tune=tune,
        every=every,
        device=chosen_device(arguments.device, options),
        arch=chosen_arch(arguments.arch),
    )


def _asked_tune(tune: dict[str, int] | str) -> tuple[dict[str, int], bool]:
    """Return the values that all rows have, and whether each choice with them is a row."""
    if not isinstance(tune, str):
        return tune, False
    first, *rest = (part.strip() for part in tune.split(","))
    held = [_HELD.fullmatch(part) for part in rest]
    if first != EVERY or None in held:
        raise ToolError(
            f'tune is {shown(tune)}: expected is an object such as {{"BLOCK": 256}}, "all", or'
            ' "all,BLOCK=256"'
        )
    return {found[1]: int(found[2]) for found in held if found is not None}, True


def _files(arguments: ComparedWork, reader: Reader) -> tuple[NamedSource, ...]:
    if not arguments.paths:
        text = reader.text(arguments.source, arguments.path)
        return (NamedSource(path=arguments.path, source=text),)
    if arguments.source or arguments.path:
        raise ToolError("give paths (several files) or one source or path, not both")
    paths = tuple(dict.fromkeys(arguments.paths))
    return tuple(NamedSource(path=path, source=reader.text("", path)) for path in paths[:MAX_FILES])
