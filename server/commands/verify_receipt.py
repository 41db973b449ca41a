"""`kopt verify RECEIPT`: measure a promoted winner again and say whether it reproduces."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.errors import ToolError
from kopt.kernels.verify_result import Reproduction
from kopt.server.console import print_record, print_views
from kopt.server.devices import DeviceChoice
from kopt.server.exits import ExitCode
from kopt.server.options import device_option
from kopt.server.progress import status_line
from kopt.server.promoting import timing_device
from kopt.server.session import Session, command_body
from kopt.server.views.verify_view import verify_view
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.reproduction import VerifyRequest, problem_of, verify_receipt

EPILOG = """\b
Examples:
  kopt verify ~/.kopt/winners/fused_add_rmsnorm/b128xh4096.sm_90a.receipt.json
  kopt verify b128xh4096.sm_90a.receipt.json --device cuda:1 --json

\b
The source in the receipt is compiled from an empty cache, checked in full and
timed again at every workload of the receipt (docs/receipts.md has the rule).
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

    receipt: Path
    device: str


@click.command("verify", epilog=EPILOG)
@click.argument("receipt", type=click.Path(path_type=Path))
@device_option
@command_body(VerifyOptions)
def command(session: Session, options: VerifyOptions) -> int:
    """Measure a promoted winner again: reproduced, or not, and why.

    Without a GPU the receipt is still read and its binary compiled again and compared.
    """
    if options.receipt.suffix == ".cu":
        beside = options.receipt.with_suffix(".receipt.json")
        raise ToolError(f"{options.receipt} is a source; name its receipt: {beside}")
    receipt = read_receipt(options.receipt)
    problem = problem_of(receipt, session.settings)
    choice = DeviceChoice(options.device)
    with status_line(quiet=session.as_json) as show:
        result = verify_receipt(
            VerifyRequest(receipt, problem, show),
            lambda: timing_device(choice, session.settings, show),
            session.settings,
        )
    if session.as_json:
        print_record(result)
    else:
        print_views(verify_view(str(options.receipt), receipt, result))
    return _EXIT_CODES[result.reproduction]
