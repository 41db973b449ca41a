"""`kopt selftest`: the samples that must be caught and those that must pass, on this machine."""

import fnmatch
from collections.abc import Callable

import click

from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.server.exits import ExitCode
from kopt.server.opened_device import DeviceChoice, opened_device
from kopt.server.options import device_arch_option, device_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.selftest_view import selftest_view
from kopt.tools.selftest.result import SelftestResult
from kopt.tools.selftest.sample import ShippedSample, read_samples
from kopt.tools.selftest.stage import SelftestRequest, run_selftest

EPILOG = """\b
Examples:
  kopt selftest --device sim
  kopt selftest --device cuda:0 --json
  kopt selftest 'evil_*barrier*'

\b
The samples are candidates with one flaw each, and honest ones in many styles;
each is checked as your own candidate would be. Every one that should have been
caught and passed is a hole in kopt's promise: please report it.
Exit codes: 0 all as it must be, 1 an evil sample passed or a good one was
refused, 2 wrong usage, 3 this machine lacks something."""


@click.command("selftest", epilog=EPILOG)
@click.argument("name", nargs=-1)
@device_option
@device_arch_option
@command_body()
def command(session: Session, name: tuple[str, ...], device: str, arch: str | None) -> int:
    """Check the samples that kopt ships, or those of NAME, and count what is caught.

    NAME may have the wildcards * and ?. On the simulator it takes some minutes.
    """
    samples = _chosen(name)

    def run(keep: Callable[[SelftestResult], None]) -> SelftestResult:
        with (
            status_line(quiet=session.as_json) as show,
            opened_device(DeviceChoice(device, arch), session.settings, show) as opened,
        ):
            request = SelftestRequest(samples, opened.arch, show)
            return run_selftest(request, opened.device, session.settings, keep)

    found = session.show_growing(
        run, selftest_view, lambda one: f"{len(one.samples)} of {one.planned} samples"
    )
    if found is None:
        return ExitCode.INTERRUPTED
    return ExitCode.PASSED if found.holds else ExitCode.FELL_SHORT


def _chosen(patterns: tuple[str, ...]) -> list[ShippedSample]:
    """Return the samples whose names fit one of `patterns`; all for none.

    Raises:
        ToolError: A pattern fits no sample.
    """
    samples = read_samples()
    names = [sample.name for sample in samples]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ToolError(f"no sample is called {pattern!r}; {near_matches(pattern, names)}")
    wanted = {one for pattern in patterns or ("*",) for one in fnmatch.filter(names, pattern)}
    return [sample for sample in samples if sample.name in wanted]
