"""A run of a suite that kills its own process with SIGKILL after some tasks.

Usage: python suite_crash_driver.py SUITE HOME TASKS. Tasks take no time: the stage that runs them
is replaced, since only what is on disk afterwards is looked at.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from kopt.tools.suite import suite_stage
from kopt.tools.suite.results_folder import writing_results
from kopt.tools.suite.suite_file import load_suite
from kopt.tools.suite.suite_stage import SuiteRequest, SuiteRun, run_suite
from kopt.tools.suite.task_result import SuiteTaskResult
from kopt.tools.suite.task_stage import PreparedTask
from support.suite_results import SIM_SET, sim_site, task_result


def main(suite: Path, home: Path, tasks: int) -> None:
    """Run `suite` until `tasks` results are kept, then die."""

    def at_once(prepared: PreparedTask, *_: object) -> SuiteTaskResult:
        return task_result(prepared.task.name, key=prepared.key)

    def die_in_time(so_far: SuiteRun) -> None:
        if len(so_far.results) == tasks:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch, writing_results(suite / "out", SIM_SET) as folder:
        patch.setattr(suite_stage, "run_task", at_once)
        run_suite(SuiteRequest(load_suite(suite), keep=die_in_time), [sim_site(home)], folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
