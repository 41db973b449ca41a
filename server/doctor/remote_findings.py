"""Findings of `kopt doctor --device ssh://...`: whether another machine can evaluate for this one.

They go as far as the machine lets them: without a connection there is no Python to ask, without
its modules nothing of kopt runs there.
"""

import time
from collections.abc import Iterator

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError, ToolError
from kopt.config.plain_text import plain
from kopt.config.remote_address import RemoteAddress, WebAddress
from kopt.config.settings import Settings
from kopt.tools.remote.answers import FoundAnswer
from kopt.tools.remote.calls import DoctorCall
from kopt.tools.remote.code_bundle import code_bundle
from kopt.tools.remote.link import Link, LinkLost
from kopt.tools.remote.ssh_client import (
    BASE_MODULES,
    FarPython,
    install_command,
    start_ssh,
    too_old,
)
from kopt.tools.remote.ssh_pipe import SshPipe
from kopt.tools.remote.web_route import WebRoute

from .findings import DoctorFinding


def remote_findings(
    address: RemoteAddress | WebAddress, settings: Settings
) -> Iterator[DoctorFinding]:
    """Yield what is found on the way, and then by kopt's own code there."""
    if isinstance(address, WebAddress):
        yield from _over_web(address, settings)
    else:
        yield from _over_ssh(address, settings)


def _over_web(address: WebAddress, settings: Settings) -> Iterator[DoctorFinding]:
    began = time.monotonic()
    try:
        link = WebRoute(address, settings).connect()
    except (SetupError, ToolError) as error:
        yield _lacking("evaluator", str(error))
        return
    try:
        took_s = time.monotonic() - began
        yield _found("evaluator", f"{address.machine} lets this user in after {took_s:.1f} s")
        yield from _found_there(link, address.device)
    except LinkLost:
        yield _lacking("evaluator", link.why_ended())
    finally:
        link.close()


def _over_ssh(address: RemoteAddress, settings: Settings) -> Iterator[DoctorFinding]:
    began = time.monotonic()
    bundle = code_bundle()
    try:
        pipe = SshPipe(start_ssh(address, bundle.digest, settings), address)
    except SetupError as error:
        yield _lacking("ssh", str(error))
        return
    link: Link | None = None
    try:
        python = pipe.greet()
        if python is None:
            yield _lacking("ssh", pipe.why_ended())
            return
        took_s = time.monotonic() - began
        yield _found("ssh", f"{address.machine} answers after {took_s:.1f} s")
        yield from _python_findings(address, python, settings)
        if not python.is_new_enough or not BASE_MODULES.isdisjoint(python.lacking):
            return
        state = "is there" if python.has_code else "was sent now, once for this version"
        if not pipe.bring(bundle, python):
            yield _lacking("kopt's code", pipe.why_ended())
            return
        yield _found("kopt's code", f"{state}, in {python.home}/remote")
        link = Link(pipe, ignore)
        yield from _found_there(link, address.device)
    except SetupError as error:
        yield _lacking("kopt's code", str(error))
    except LinkLost:
        yield _lacking("kopt's code", pipe.why_ended() if link is None else link.why_ended())
    finally:
        if link is None:
            pipe.hang_up()
        else:
            link.close()


def _found_there(link: Link, device: str) -> Iterator[DoctorFinding]:
    """Yield what kopt there says of its machine."""
    with link.lane() as lane:
        answer, _ = link.ask(lane, DoctorCall(device=device))
    assert isinstance(answer, FoundAnswer)
    for one in answer.things:
        said = (plain(one.name), plain(one.detail))
        yield DoctorFinding(said[0], one.is_present, one.is_required, said[1])


def _python_findings(
    address: RemoteAddress, python: FarPython, settings: Settings
) -> Iterator[DoctorFinding]:
    if not python.is_new_enough:
        yield _lacking("Python", too_old(python))
        return
    yield _found("Python", f"{python.version}: {python.executable}")
    if python.lacking:
        command = install_command(address, python, settings)
        yield _lacking("Python modules", f"no {', '.join(python.lacking)}: {command}")
    else:
        yield _found("Python modules", "all that the device needs")


def _found(name: str, detail: str) -> DoctorFinding:
    return DoctorFinding(name, True, True, detail)


def _lacking(name: str, detail: str) -> DoctorFinding:
    return DoctorFinding(name, False, True, detail)
