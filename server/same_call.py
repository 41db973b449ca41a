"""The call that is under way as a command: what it was told, in words that a shell takes."""

from collections.abc import Sequence
from typing import Any, cast

import click
from click.core import ParameterSource

from kopt.tools.facts.next_command import NextCommand

_BY_SESSION = ("problems", "as_json")
"""What every command has: --problems is added where the line is printed."""


def same_call(why: str, without: Sequence[str] = (), more: Sequence[str] = ()) -> NextCommand:
    """Return the running command with what the command line told it.

    Args:
        why: What the call is for.
        without: Names of parameters that are left out.
        more: Words that are added.
    """
    context = click.get_current_context()
    left_out = {*without, *_BY_SESSION}
    given = [
        word
        for parameter in context.command.params
        if parameter.name not in left_out
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        for word in _words(parameter, context.params[parameter.name])
    ]
    names = context.command_path.split()[1:]
    return NextCommand(("kopt", *names, *given, *more), why)


def _words(parameter: click.Parameter, value: Any) -> list[str]:
    """Return what tells `value` to `parameter`."""
    several = cast(Sequence[object], value if isinstance(value, tuple | list) else (value,))
    values = [str(one) for one in several]
    if not isinstance(parameter, click.Option):
        return values
    if parameter.is_flag:
        return [(parameter.opts if value else parameter.secondary_opts)[0]]
    told = values if parameter.multiple else [",".join(values)]
    return [word for one in told for word in (parameter.opts[0], one)]
