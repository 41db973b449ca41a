"""`kopt verify RECEIPT...`: measure promoted winners again and say whether they reproduce."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.kernels.verify_result import Reproduction
from kopt.server.devices import DeviceChoice
from kopt.server.exits import ExitCode
from kopt.server.options import device_option
from kopt.server.progress import status_line
from kopt.server.promoting import timing_device
from kopt.server.session import Session, command_body
from kopt.server.verify_table import show_verified
from kopt.server.views.receipt_view import verify_view
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_search import places_of, refuse_source
from kopt.tools.bench.reproduction import VerifyRequest, problem_of, verify_receipt

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


@dataclass(frozen=True)
class VerifyOptions:
    """What the command line asked for."""

    receipt: tuple[Path, ...]
    device: str


@click.command("verify", epilog=EPILOG)
@click.argument("receipt", nargs=-1, required=True, type=click.Path(path_type=Path))
@device_option
@command_body(VerifyOptions)
def command(session: Session, options: VerifyOptions) -> int:
    """Measure promoted winners again: reproduced, or not, and why.

    Without a GPU receipts are still read and their binaries compiled again and compared.
    """
    choice = DeviceChoice(options.device)
    places = places_of(options.receipt, session.settings)
    first, *others = places
    if others or first.is_dir():
        return show_verified(session, places, choice)
    refuse_source(first)
    receipt = read_receipt(first)
    problem = problem_of(receipt, session.settings)
    with status_line(quiet=session.as_json) as show:
        result = verify_receipt(
            VerifyRequest(receipt, problem, show),
            lambda: timing_device(choice, session.settings, show),
            session.settings,
        )
    session.show(result, verify_view(str(first), receipt, result))
    return _EXIT_CODES[result.reproduction]
