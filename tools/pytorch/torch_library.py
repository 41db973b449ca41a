"""torch, imported when it is needed: an extra of kopt, and seconds to load.

Only the child that exports and an imported problem's oracle need it. torch is used through `Any`:
kopt is typed, checked and started without it.
"""

import importlib
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from kopt.config.errors import SetupError

Tensor = Any
"""torch.Tensor."""


def load_torch() -> Any:
    """Return the module `torch`.

    Raises:
        SetupError: It is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's own modules, which nobody here can mend
            return importlib.import_module("torch")
    except ImportError as error:
        raise SetupError(
            f"PyTorch functions need torch, which cannot be imported ({error}):"
            " pip install 'kopt-mcp[torch]'"
        ) from error


@contextmanager
def threads_of(torch: Any, count: int) -> Generator[None]:
    """Let torch compute with `count` threads for the calling thread.

    Threads that start meanwhile begin with as many, so that who wants another number says so.
    """
    usual = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """Return the parts of a list or tuple, as torch gives several results; None for one value."""
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else None


def module_of(node: Any) -> str:
    """Return the path of the innermost module that calls a node of torch.export's graph."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return next(reversed(stack.values()))[0] if stack else ""
