"""A process killed between asking and answering leaves a ledger that knows what may be owed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # kill -9 at every write

SUPPORT = Path(__file__).resolve().parents[2] / "support"
TIME_LIMIT_S = 240.0


def test_kill_at_every_step_hides_no_cost_and_pays_no_reply_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-P", str(SUPPORT / "call_crash_driver.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT.parent)}
    driver = subprocess.run(
        command, env=environment, text=True, stdout=subprocess.PIPE, timeout=TIME_LIMIT_S
    )
    seen = json.loads(driver.stdout)
    assert seen["problems"] == []
    assert seen["killed"] == seen["steps"] > 30
