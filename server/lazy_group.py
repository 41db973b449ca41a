"""A click group whose sub-commands are imported when they are called, not when kopt starts.

`kopt --help` lists the sub-commands from the table alone: that keeps numpy, pydantic and rich out
of start-up, which a shell completion or an agent's first call would otherwise wait for.
"""

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from kopt.config.near_matches import close_names, did_you_mean


@dataclass(frozen=True)
class LazyCommand:
    """The module of a sub-command, and its line in `kopt --help`."""

    module: str
    """A module of kopt.server.commands."""
    help: str
    name: str = "command"
    """Name of the click command in the module."""


def collect_again() -> None:
    """End the start of a process in which garbage is not collected; what was imported is none."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


class NamingGroup(click.Group):
    """A group that answers an unknown sub-command with those that there are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the sub-command; an unknown name is answered with the nearest known ones.

        Raises:
            click.UsageError: No such sub-command.
        """
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            near = close_names(args[0].lower(), known, most=2)
            shown = did_you_mean(near) if near else ", ".join(self.shown_commands(ctx))
            ctx.fail(f"no such command {args[0]!r}; {shown}")
        return super().resolve_command(ctx, args)

    def shown_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the sub-commands that are not hidden."""
        every = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [name for name, command in every if command is not None and not command.hidden]


class LazyGroup(NamingGroup):
    """A group over a table of `LazyCommand`; the table's order is the order in the help."""

    def __init__(self, table: Mapping[str, LazyCommand], **attributes: Any) -> None:
        """Take the table; `attributes` are those of `click.Group`."""
        super().__init__(**attributes)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the sub-command; None for a name that is not in the table."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"kopt.server.commands.{entry.module}")
        command: click.Command = getattr(module, entry.name)
        collect_again()
        return command

    def shown_commands(self, ctx: click.Context) -> list[str]:
        """Return all names: nothing is imported for it."""
        return self.list_commands(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing a single sub-command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])
