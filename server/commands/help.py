"""`kopt help`: what `--help` says, asked for the other way round."""

import click

from kopt.server.exits import ExitCode

EPILOG = """\b
Examples:
  kopt help
  kopt help run
  kopt help runs show"""


@click.command("help", epilog=EPILOG)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of kopt, or of one command."""
    context = ctx.find_root()
    for word in words:
        group = context.command
        if not isinstance(group, click.Group):
            context.fail(f"{context.command_path} has no commands below it")
        name, found, _ = group.resolve_command(context, [word])
        if found is None:
            context.fail(f"no such command {word!r}")
        context = click.Context(found, parent=context, info_name=name)
    click.echo(context.get_help())
    return ExitCode.PASSED
