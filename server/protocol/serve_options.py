"""The options of a server: one frozen record, resolved by `kopt serve`."""

from dataclasses import dataclass
from pathlib import Path

from kopt.config.settings import Settings


@dataclass(frozen=True)
class ServeOptions:
    """The options that every tool of one server obeys."""

    settings: Settings
    workspaces: tuple[Path, ...] = ()
    """Resolved folders below which candidates may be read; none: only source text is taken."""
    devices: tuple[str, ...] = ()
    """The GPUs that calls may use, sim always beside them; empty: all of this machine and none of
    another, which only the server's user may name. The first is what `auto` means."""
    read_only: bool = False
    """Offer only what compiles and runs nothing."""
