"""Ctrl-C while a candidate hangs: the search ends at once, paused, and can be gone on with."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.search.records.evaluation import CLOSE_GRACE_S
from support.command_line import Kopt

pytestmark = pytest.mark.slow  # searches in processes of their own
KERNEL = "silu_and_mul_b8xh14336"
END_LIMIT_S = 20.0
"""Ten times what is promised, for a busy machine."""
HANGING = """\
import faulthandler, sys, threading
from kopt.search.evaluation import local_evaluator
from kopt.server.cli import main

def hang(*_):
    faulthandler.dump_traceback_later({limit} / 2)  # where it stands if it does not end
    print("hangs", flush=True)
    threading.Event().wait()

local_evaluator.evaluate_job = hang
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("command", "go_on"), [("step", "kopt step --run "), ("run", "kopt run --resume ")]
)
def test_interrupt_ends_a_search_whose_candidate_hangs(
    kopt: Kopt, command: str, go_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "own-home"))
    words = [command, "--kernel", KERNEL, "--device", "sim"]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HANGING.format(limit=END_LIMIT_S), *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hangs\n"
        process.send_signal(signal.SIGINT)
        try:
            stderr = process.communicate(timeout=END_LIMIT_S)[1].decode()
        except subprocess.TimeoutExpired:
            process.kill()
            stderr = process.communicate()[1].decode()
    (run,) = kopt("runs", "--json").document["runs"]
    assert (process.returncode, run["status"]) == (130, "paused"), stderr
    assert stderr.splitlines()[-1].startswith(f"Next: {go_on}{run['run']}  # "), stderr


def test_what_still_runs_is_waited_for_less_long_than_ctrl_c_may_take() -> None:
    assert CLOSE_GRACE_S < 2.0
