"""The name of a pool of evaluators on Ray: `ray`, `ray://HOST:PORT`, each perhaps with `/sim`."""

import re
from dataclasses import dataclass
from typing import Literal

from .errors import ToolError

PoolKind = Literal["cuda", "sim"]
_FORM = re.compile(
    r"ray(?:://(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])"
    r":(?P<port>\d{1,5}))?(?:/(?P<kind>sim|cuda)?)?"
)


@dataclass(frozen=True)
class PoolAddress:
    """A Ray cluster, and which of its evaluators are meant."""

    cluster: str | None
    """HOST:PORT of its head, as `ray start` prints it; None: one of this machine."""
    kind: PoolKind
    """GPUs, all of one model, or simulators."""

    def __str__(self) -> str:
        """Return the whole name, as `--device` takes it."""
        where = "ray" if self.cluster is None else f"ray://{self.cluster}"
        return f"{where}/sim" if self.kind == "sim" else where


def is_pool(name: str) -> bool:
    """Return whether a device's name says that it is a pool."""
    return name == "ray" or name.startswith(("ray:", "ray/"))


def pool_address(name: str) -> PoolAddress:
    """Return the pool that `name` means; without a kind its GPUs.

    Raises:
        ToolError: It has another form.
    """
    match = _FORM.fullmatch(name)
    if match is None or not 0 < int(match["port"] or 1) < 1 << 16:
        raise ToolError(
            f"{name[:80]!r} names no pool; write ray (a cluster of this machine) or ray://HOST:PORT"
            " (the port of its head, 6379 unless chosen), either with /sim for its simulators"
        )
    cluster = None if match["host"] is None else f"{match['host']}:{int(match['port'])}"
    return PoolAddress(cluster, "sim" if match["kind"] == "sim" else "cuda")
