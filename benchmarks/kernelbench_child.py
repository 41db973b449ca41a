"""The child that exports many functions: torch is loaded once, and each has a fork of its own.

    python -m kernelbench_child FOLDER LIMIT_S

Each folder in FOLDER has what kopt's own child is asked (tools/pytorch/importing/child.py), and
gets its answer, and what it took. Runs in the sandbox. Functions of one FOLDER could change one
another's answers: they are all of one checkout.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kopt.tools.pytorch.importing.child import main as answer
from kopt.tools.pytorch.importing.exported import REQUEST
from kopt.tools.pytorch.importing.exporting import export_module
from kopt.tools.pytorch.importing.fake_run import fake_run
from kopt.tools.pytorch.torch_library import load_torch

USAGE = "usage.json"


def main(folder: Path, limit_s: int) -> None:
    """Answer every request."""
    _load_all()
    for place in sorted(request.parent for request in folder.glob(f"*/{REQUEST}")):
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            signal.alarm(limit_s)  # which ends it
            answer(place)
            os._exit(0)
        _, status, usage = os.wait4(child, 0)
        taken = {
            "wall_s": time.monotonic() - began,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "ended_with": os.waitstatus_to_exitcode(status),
        }
        (place / USAGE).write_text(json.dumps(taken), "utf-8")


def _load_all() -> None:
    """Export something: torch loads half of itself when it does so for the first time."""
    torch = load_torch()
    torch.set_num_threads(1)  # threads do not survive a fork

    def build(_: object) -> tuple[Any, tuple[Any, ...]]:
        return torch.nn.Linear(8, 8), (torch.ones(8, 8),)

    fake_run(build, {})
    export_module(*build({}), ())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
