"""`kopt serve`: kopt as an MCP server, for a client that starts it or over HTTP."""

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from kopt.config.device_names import is_elsewhere, is_simulated
from kopt.config.errors import ToolError
from kopt.config.home_use import using_home
from kopt.config.settings import WORKSPACE_PROBLEMS, project_folder, settings_from_environment
from kopt.server.options import one_device
from kopt.server.protocol.serve_options import ServeOptions
from kopt.server.protocol.web.listen_address import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    HttpOptions,
    open_doorway,
)
from kopt.server.protocol.web.token_file import write_token
from kopt.server.starting import wipe
from kopt.tools.sandbox.policy import gpu_devices

EPILOG = """\b
Examples:
  kopt serve                           over stdin and stdout: what MCP clients start
  kopt serve --workspace ~/kernels     candidates by path from there only
  kopt serve --device cuda:1           one GPU of several
  kopt serve --device ssh://box/cuda:0 a GPU of another machine (docs/remote.md)
  kopt serve --read-only               search and inspection, nothing is compiled or run
  kopt serve --http                    many clients, over http://127.0.0.1:8765/mcp

\b
The server compiles and runs the CUDA code that its client sends, in a sandbox.
Over HTTP it serves this user's processes on loopback; any other address needs
--token-file and --allowed-host. docs/serving.md has the whole of it.
It ends when stdin closes: exit code 0; on SIGINT, SIGTERM and SIGHUP with 130,
143 and 129. Jobs that run then are taken up by the next server."""


def _devices(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Read each --device; sim is always there, and auto names none."""
    names = [one_device(context, parameter, value) for value in values]
    if "auto" in names:
        raise click.BadParameter("auto names no device; leave --device out, or name GPUs")
    return tuple(dict.fromkeys(names))


def _new_token(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Write a token to `path` and end the command."""
    if path is None or ctx.resilient_parsing:
        return
    path = path.expanduser()
    write_token(path)
    wipe()
    click.echo(f"{path} holds a new token; only you can read it.")
    click.echo(f"Serve with it: kopt serve --http --token-file {path}")
    click.echo("Clients send it as a header: Authorization: Bearer TOKEN")
    ctx.exit()


@click.command("serve", epilog=EPILOG)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of stdin and stdout.")
@click.option(
    "--host", metavar="ADDRESS", help=f"Where to listen (--http).  [default: {DEFAULT_HOST}]"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Where to listen (--http); 0: any free port.  [default: {DEFAULT_PORT}]",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ask clients for a bearer token out of FILE (--http); beyond loopback a must.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name that clients reach this machine by (--http); beyond loopback a must.",
)
@click.option(
    "--allowed-origin",
    "allowed_origins",
    multiple=True,
    metavar="URL",
    help="A web page that may call, e.g. https://tools.example (--http).",
)
@click.option(
    "--new-token",
    type=click.Path(path_type=Path),
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_new_token,
    help="Write a new token to FILE (mode 0600) and end.",
)
@click.option("--read-only", is_flag=True, help="Offer only search and inspection.")
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder below which candidates may be read by path; may be given several times.  [default:"
    " CLAUDE_PROJECT_DIR, else the current folder]",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    callback=_devices,
    metavar="sim|cuda:N|ssh://HOST/cuda:N|https://HOST/cuda:N|ray",
    help="Device that calls may use beside sim; may be given several times, the first is what auto "
    "means.  [default: all]",
)
@click.option(
    "--problems",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of your own problems, beside the packaged ones (or KOPT_PROBLEMS).  [default: over"
    f" stdio {WORKSPACE_PROBLEMS} in the workspace, if it is there]",
)
def command(
    read_only: bool,
    workspaces: tuple[Path, ...],
    devices: tuple[str, ...],
    problems: Path | None,
    **listening: Any,
) -> None:
    """Serve kopt's tools to an MCP client such as Claude Code, Codex or an editor.

    A client starts this command by itself and speaks to it over stdin and stdout; logs go to
    stderr.
    """
    wipe()
    http = _http_options(**listening)
    settings = settings_from_environment()
    if problems is not None:
        settings = replace(settings, problems=problems)
    folders = _resolved(workspaces)
    if settings.problems is None and http is None and folders:
        # Whoever can write into the project of a client over stdio is trusted as its user is.
        settings = replace(settings, problems=folders[0] / WORKSPACE_PROBLEMS)
    options = ServeOptions(
        settings=settings,
        workspaces=folders,
        devices=devices,
        read_only=read_only,
    )
    # Before the SDK is loaded, which would put boxes around every line.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="kopt serve: %(levelname)s: %(message)s"
    )
    if named := [one for one in devices if not is_simulated(one) and not is_elsewhere(one)]:
        _warn_without_gpu(named)
    with using_home(settings.home):
        _serve(options, http)


def _warn_without_gpu(devices: Sequence[str]) -> None:
    """Say at the start that calls on `devices` will be refused; a driver may still come later."""
    if not gpu_devices():
        logging.getLogger(__name__).warning(
            "this machine shows no NVIDIA GPU: calls on %s will be refused until it does"
            " (kopt doctor)",
            ", ".join(devices),
        )


def _http_options(http: bool, **flags: Any) -> HttpOptions | None:
    """Return where to listen; None for stdio, with which no flag of HTTP goes."""
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    if http:
        return HttpOptions(**given)
    if given:
        flag = next(iter(given)).removesuffix("s").replace("_", "-")
        raise click.UsageError(f"--{flag} is for HTTP: add --http, or leave it out for stdio")
    return None


def _serve(options: ServeOptions, http: HttpOptions | None) -> NoReturn:
    doorway = None if http is None else open_doorway(http)
    # Not at the top: neither `kopt serve --help` nor a refusal needs any of it.
    from kopt.server.jobs.held_job import raise_open_files
    from kopt.server.jobs.job_host import JobHost
    from kopt.server.jobs.jobs import WatchedJobs
    from kopt.server.protocol.app import build_server
    from kopt.server.protocol.stdio import serve_stdio

    raise_open_files()
    host = JobHost(options.settings, options.devices)
    jobs = WatchedJobs(host) if options.read_only else host
    server = build_server(options, jobs)
    if doorway is not None:
        from kopt.server.protocol.web.http_server import serve_http

        serve_http(server, doorway, jobs)
    if sys.stdin is None:
        raise ToolError("stdin is closed: kopt serve speaks to its client over it (or use --http)")
    if sys.stdin.isatty():
        click.echo("kopt serve: waiting for an MCP client on stdin; Ctrl-C ends it", err=True)
    serve_stdio(server, jobs)


def _resolved(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the workspace folders, links followed.

    Without any, the project's or the current folder serves, unless that is the whole disk or the
    whole home folder, where clients start servers that belong to no project.
    """
    if folders:
        return tuple(dict.fromkeys(folder.resolve() for folder in folders))
    try:
        folder = (project_folder() or Path.cwd()).resolve(strict=True)
    except OSError as error:
        raise ToolError(
            f"there is no current folder ({error.strerror}): start kopt serve elsewhere, or name"
            " one with --workspace DIR"
        ) from error
    return () if folder in (Path(folder.anchor), Path.home().resolve()) else (folder,)
