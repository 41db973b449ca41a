"""A module through torch.export, as core ATen operators; recurrent layers stay whole.

Tensors that a module keeps as plain attributes and changes in forward are buffers for the export,
as torch.export asks for; the module is afterwards as it was.
"""

import re
import warnings
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from kopt.config.errors import ToolError
from kopt.tools.pytorch.torch_library import load_torch

_KEPT_WHOLE = ("lstm.input", "gru.input")
_CHANGED = re.compile(r"Constant (\S+) is mutated in the forward")
"""What torch.export says of an attribute that is no buffer. Source: torch/_export/utils.py."""
_ASSIGNED = re.compile(r"The tensor attributes? (.+) (?:was|were) assigned during export")
"""Source: torch/_functorch/_aot_autograd/frontend_utils.py."""


def exported_program(
    module: Any, inputs: tuple[Any, ...], user_files: Iterable[Path], known: Collection[str] = ()
) -> tuple[Any, frozenset[str]]:
    """Return the program of `module`, and the plain attributes that it changes, by their path.

    Those of `known` are taken to be changed.

    Raises:
        ToolError: torch cannot export it; the message has the user's line.
    """
    torch = load_torch()
    changed = list(known)
    while True:
        try:
            with (
                warnings.catch_warnings(record=True) as told,
                torch.no_grad(),
                _as_buffers(module, changed),
            ):
                warnings.simplefilter("always")
                program = torch.export.export(module, inputs, strict=False)
                program = program.run_decompositions(_decompositions(torch))
            return program, frozenset((*changed, *_assigned(told)))
        except Exception as error:  # torch raises its own kinds for what a user's code does
            said = str(error).strip().splitlines() or [type(error).__name__]
            found = _CHANGED.search(said[0])
            if found is not None and found[1] not in changed:
                changed.append(found[1])
                continue
            raise ToolError(
                f"torch.export cannot export it: {said[0]}{_user_line(error, user_files)}"
            ) from error


def _assigned(told: Iterable[warnings.WarningMessage]) -> Iterator[str]:
    """Yield the paths of attributes that forward assigns, by what torch.export warns of."""
    for warning in told:
        found = _ASSIGNED.search(str(warning.message))
        for name in found[1].split(", ") if found is not None else ():
            yield name.removeprefix("self.")


@contextmanager
def _as_buffers(module: Any, paths: Iterable[str]) -> Generator[None]:
    """Make buffers of attributes of `module`, by their paths.

    Afterwards all its plain attributes are again what they were, those that forward assigned too.
    """
    plain = list(_plain_tensors(module))
    made: list[tuple[Any, str]] = []
    try:
        for path in paths:
            owner, _, name = path.rpartition(".")
            holder = module.get_submodule(owner)
            value = getattr(holder, name)
            delattr(holder, name)
            holder.register_buffer(name, value, persistent=False)
            made.append((holder, name))
        yield
    finally:
        for holder, name in made:
            delattr(holder, name)
        for holder, name, value in plain:
            setattr(holder, name, value)


def _plain_tensors(module: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield each tensor that is neither a parameter nor a buffer, with who has it as what."""
    torch = load_torch()
    for holder in module.modules():
        held = cast("dict[str, Any]", vars(holder))
        for name, value in held.items():
            if isinstance(value, torch.Tensor):
                yield holder, name, value


def _decompositions(torch: Any) -> Any:
    table = torch.export.default_decompositions()
    for name in _KEPT_WHOLE:
        packet, overload = name.split(".")
        table.pop(getattr(getattr(torch.ops.aten, packet), overload), None)
    return table


def _user_line(error: BaseException, user_files: Iterable[Path]) -> str:
    """Return ` (model.py:12)` for the last frame in the user's own files."""
    files = {str(path) for path in user_files}
    trace, found = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in files:
            found = f" ({Path(name).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found
