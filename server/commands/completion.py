"""`kopt completion`: the script that makes a shell complete kopt's commands and options."""

import click
from click.shell_completion import get_completion_class

from kopt.config.settings import COMPLETION_VARIABLE
from kopt.server.exits import ExitCode

EPILOG = """\b
Examples:
  echo 'eval "$(kopt completion bash)"' >> ~/.bashrc
  echo 'eval "$(kopt completion zsh)"' >> ~/.zshrc
  kopt completion fish > ~/.config/fish/completions/kopt.fish"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the script that makes SHELL complete kopt's commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None  # click has one for each choice
    click.echo(kind(ctx.find_root().command, {}, "kopt", COMPLETION_VARIABLE).source())
    return ExitCode.PASSED
