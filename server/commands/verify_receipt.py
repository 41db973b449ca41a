"""`kopt verify RECEIPT...`: measure promoted winners again and say whether they reproduce."""

from collections.abc import Callable
from pathlib import Path

import click

from kopt.kernels.verify_result import Reproduction, VerifyListResult
from kopt.server.exits import ExitCode
from kopt.server.opened_device import DeviceChoice, timing_device
from kopt.server.options import device_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.receipt_view import verify_list_view, verify_view
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.reproduction import VerifyRequest, problem_of, verify_receipt
from kopt.tools.bench.verify_all import (
    FoundReceipt,
    VerifyAllRequest,
    find_receipts,
    places_of,
    refuse_source,
    verify_all,
)

EPILOG = """\b
Examples:
  kopt verify ~/.kopt/winners/fused_add_rmsnorm/b128xh4096.sm_90a.receipt.json
  kopt verify b128xh4096.sm_90a.receipt.json --device cuda:1 --json
  kopt verify ~/.kopt/winners
  kopt verify silu_and_mul_b8xh14336
  kopt verify kernels/problems/*/winners/*.sm_90a.receipt.json --json

\b
The source in the receipt is compiled from an empty cache, checked in full and
timed again at every workload of the receipt (docs/receipts.md has the rule).
A folder stands for all receipts below it, a kernel id for its winner's. Those
of one promotion are verified together; several give one table, and with --json
one kopt.verify_list/1.
Exit codes: 0 reproduced, 1 not reproduced, 2 no usable receipt, 3 not verified
here: no GPU, another model of GPU, or a baseline that does not run."""

_EXIT_CODES: dict[Reproduction, ExitCode] = {
    "reproduced": ExitCode.PASSED,
    "not_reproduced": ExitCode.FELL_SHORT,
    "other_device": ExitCode.MACHINE,
    "unavailable": ExitCode.MACHINE,
}


@click.command("verify", epilog=EPILOG)
@click.argument("receipt", nargs=-1, required=True, type=click.Path(path_type=Path))
@device_option
@command_body()
def command(session: Session, receipt: tuple[Path, ...], device: str) -> int:
    """Measure promoted winners again: reproduced, or not, and why.

    Without a GPU receipts are still read and their binaries compiled again and compared.
    """
    choice = DeviceChoice(device)
    first, *others = places = places_of(receipt, session.settings)
    if others or first.is_dir():
        return _verify_all(session, find_receipts(places), choice)
    refuse_source(first)
    read = read_receipt(first)
    with status_line(quiet=session.as_json) as show:
        result = verify_receipt(
            VerifyRequest(read, problem_of(read, session.settings), show),
            lambda: timing_device(choice, session.settings, show),
            session.settings,
        )
    session.show(result, verify_view(str(first), read, result))
    return _EXIT_CODES[result.reproduction]


def _verify_all(
    session: Session, receipts: tuple[FoundReceipt, ...], choice: DeviceChoice
) -> ExitCode:
    def verify(keep: Callable[[VerifyListResult], None]) -> VerifyListResult:
        with status_line(quiet=session.as_json) as show:
            return verify_all(
                VerifyAllRequest(receipts, show, keep),
                lambda: timing_device(choice, session.settings, show),
                session.settings,
            )

    found = session.show_growing(
        verify, verify_list_view, lambda one: f"{len(one.results)} of {one.planned} receipts"
    )
    return ExitCode.INTERRUPTED if found is None else _worst(found)


def _worst(found: VerifyListResult) -> ExitCode:
    """Return the worst: refuted, then unusable, then not measured."""
    if found.count("not_reproduced"):
        return ExitCode.FELL_SHORT
    if any(entry.fault == "usage" for entry in found.faults):
        return ExitCode.USAGE
    everything = found.count("reproduced") == len(found.results)
    return ExitCode.PASSED if everything else ExitCode.MACHINE
