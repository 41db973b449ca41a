"""`kopt gpu serve`: a GPU of this machine for callers of others, `--device https://...`."""

import socket
import ssl
from pathlib import Path
from typing import Any

import click

from kopt.config.errors import ToolError
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import settings_from_environment
from kopt.config.termination import terminated_as_by_ctrl_c
from kopt.server.far import service
from kopt.server.protocol.web.listen_address import (
    EXAMPLE_TOKEN_FILE,
    Doorway,
    HttpOptions,
    open_doorway,
)
from kopt.server.resident.evaluator import ResidentEvaluator
from kopt.server.resident.local_door import LocalDoor
from kopt.server.resident.shared_gpu import SharedGpu
from kopt.server.resident.web_door import WebDoor
from kopt.server.starting import wipe
from kopt.tools.gpu.discovery import find_gpu, require_worker_modules
from kopt.tools.resident.place import place_of

EPILOG = """\b
Examples:
  kopt gpu serve                       for this user's processes, at http://127.0.0.1:8766
  kopt serve --new-token ~/.config/kopt/token
  kopt gpu serve --host 0.0.0.0 --token-file ~/.config/kopt/token \\
      --allowed-host gpu-box.lan --tls-cert box.pem --tls-key box.key
  kopt bench mine.cu --kernel ID --device https://gpu-box.lan:8766/cuda:0

\b
Whoever has a token runs code here, in the sandbox. Callers need the same version of
kopt, and KOPT_DEVICE_TOKEN_FILE. It ends with Ctrl-C. More: docs/remote.md."""
DEFAULT_PORT = 8766


@click.command("serve", epilog=EPILOG)
@click.option("--device", default="cuda:0", show_default=True, help="cuda:N.")
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Where to listen; 0: any free port.  [default: {DEFAULT_PORT}]",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ask callers for a bearer token out of FILE; beyond loopback a must.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name that callers reach this machine by; beyond loopback a must.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Certificate chain (PEM); beyond loopback a must.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Its private key (PEM), if that is not in --tls-cert.",
)
def serve(device: str, tls_cert: Path | None, tls_key: Path | None, **listening: Any) -> None:
    """Serve a GPU of this machine to callers of other machines, and of this one.

    It is a resident evaluator that stays until it is ended: check, bench, run and the other
    commands of the callers measure on it, and keep all records where they are.
    """
    wipe()
    given = {name: value for name, value in listening.items() if value not in (None, ())}
    given.setdefault("port", DEFAULT_PORT)
    certificates = certificates_in(tls_cert, tls_key)
    doorway = open_doorway(HttpOptions(**given), _exposed)
    with doorway.listener:
        if not doorway.is_loopback and certificates is None:
            raise ToolError(
                "beyond loopback kernels and tokens must be encrypted: give --tls-cert, or listen"
                " on loopback behind a proxy that speaks TLS"
            )
        _serve(find_gpu(device).name, doorway, certificates)


def _serve(name: str, doorway: Doorway, certificates: ssl.SSLContext | None) -> None:
    """Serve a GPU until Ctrl-C, SIGTERM or `kopt gpu stop`.

    Raises:
        SetupError: The GPU's workers cannot start here, or another evaluator has it.
    """
    require_worker_modules()
    settings = settings_from_environment()
    place = place_of(name, settings)
    scheme = "http" if certificates is None else "https"
    address = doorway.url.partition("://")[2].partition("/")[0]
    doors = (LocalDoor(place), WebDoor(doorway, name, certificates))
    gpu = SharedGpu(name, service.opener(settings, PollableEvent()))
    with ResidentEvaluator(doors, settings, gpu, None) as evaluator, terminated_as_by_ctrl_c():
        click.echo(f"kopt gpu serve: {name} is {scheme}://{address}/{name}", err=True)
        evaluator.serve()


def _exposed(options: HttpOptions) -> str:
    """Return why an address beyond loopback is refused, the safer way, and the whole command."""
    missing = [] if options.token_file else ["--token-file FILE"]
    missing += [] if options.allowed_hosts else ["--allowed-host NAME"]
    name = socket.gethostname()
    token_file = options.token_file or EXAMPLE_TOKEN_FILE
    command = f"kopt gpu serve --host {options.host} --port {options.port}"
    command += f" --token-file {token_file}"
    for host in options.allowed_hosts or (name,):
        command += f" --allowed-host {host}"
    return f"""\
--host {options.host} can be reached from other machines, and whoever reaches it runs code on this \
one; it is not served without {" and ".join(missing)}, nor without --tls-cert FILE
Safer, and with nothing to start here: callers name ssh://{name}/cuda:0 as their --device
Else
  kopt serve --new-token {EXAMPLE_TOKEN_FILE}
  {command} --tls-cert FILE --tls-key FILE"""


def certificates_in(chain: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return how to prove who this machine is.

    Raises:
        ToolError: The files hold no certificate with its key.
    """
    if chain is None:
        if key is not None:
            raise click.UsageError("--tls-key needs --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(chain, key)
    except (OSError, ssl.SSLError) as error:
        raise ToolError(f"no certificate and key in {chain} {key or ''}: {error}") from error
    return context
