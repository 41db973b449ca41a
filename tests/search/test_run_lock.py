"""The lock of a run."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.search.run_lock import RunLock, boot_id, is_run_locked


def test_second_taker_learns_process_and_boot_of_the_holder(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(ToolError) as refusal:
        RunLock(tmp_path)
    assert f"process {os.getpid()} (boot {boot_id()})" in str(refusal.value)


def test_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    RunLock(tmp_path).close()
    RunLock(tmp_path).close()


def test_looking_does_not_take_the_lock(tmp_path: Path) -> None:
    assert not is_run_locked(tmp_path)
    with RunLock(tmp_path):
        assert is_run_locked(tmp_path)
    assert not is_run_locked(tmp_path)
