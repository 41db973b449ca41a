"""Which processes belong to a runner, wherever they went."""

import os
import subprocess
import sys

from kopt.server.jobs.process_tree import living, session_tree

_CHILD_IN_ITS_OWN_SESSION = """
import subprocess
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def test_a_grandchild_in_another_session_is_found_and_outlives_its_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD_IN_ITS_OWN_SESSION], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        found = session_tree(process.pid)
        assert {key.pid for key in found} == {process.pid, grandchild}
        process.kill()
        process.wait()
        assert {key.pid for key in living(found)} == {grandchild}
        os.kill(grandchild, 9)


def test_a_process_that_has_ended_but_was_not_waited_for_is_not_living() -> None:
    process = subprocess.Popen(["true"])
    found = session_tree(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert len(found) == 1
    assert living(found) == frozenset()
    process.wait()


def test_a_process_that_never_was_has_no_descendants() -> None:
    assert session_tree(2**22 + 1) == frozenset()
