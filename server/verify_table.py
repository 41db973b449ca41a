"""`kopt verify` of several receipts: verifies one after the other and shows one table.

Minutes of work: what an interrupted call has is shown.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from kopt.config.errors import KoptError
from kopt.kernels.verify_list_result import VerifyListResult
from kopt.server.devices import DeviceChoice
from kopt.server.exits import ExitCode
from kopt.server.progress import status_line
from kopt.server.promoting import timing_device
from kopt.server.session import Session
from kopt.server.views.receipt_view import verify_list_view
from kopt.tools.bench.receipt_search import find_receipts
from kopt.tools.bench.reproduction_all import VerifyAllRequest, verify_all


def show_verified(session: Session, places: Sequence[Path], choice: DeviceChoice) -> ExitCode:
    """Verify the receipts at `places` and print what became of each.

    Raises:
        ToolError: A place holds no receipt.
        SetupError: No compiler, or KOPT_HOME cannot be written; results so far are shown.
        KeyboardInterrupt: Ctrl-C before the first result; later the results so far are shown.
    """
    receipts = find_receipts(places)
    kept: list[VerifyListResult] = []
    try:
        with status_line(quiet=session.as_json) as show:
            found = verify_all(
                VerifyAllRequest(receipts, show, lambda so_far: kept.append(so_far)),
                lambda: timing_device(choice, session.settings, show),
                session.settings,
            )
    except KeyboardInterrupt:
        if not kept:
            raise
        _show(session, kept[-1])
        said = f"{len(kept)} of {len(receipts)} receipts"
        click.echo(f"kopt: interrupted after {said}", err=True)
        return ExitCode.INTERRUPTED
    except KoptError:
        if kept and not session.as_json:  # there one document tells of the error
            _show(session, kept[-1])
        raise
    _show(session, found)
    return _exit_code(found)


def _show(session: Session, found: VerifyListResult) -> None:
    session.show(found, verify_list_view(found))


def _exit_code(found: VerifyListResult) -> ExitCode:
    """Return the worst: refuted, then unusable, then not measured."""
    if found.count("not_reproduced"):
        return ExitCode.FELL_SHORT
    if any(entry.fault == "usage" for entry in found.faults):
        return ExitCode.USAGE
    everything = found.count("reproduced") == len(found.results)
    return ExitCode.PASSED if everything else ExitCode.MACHINE
