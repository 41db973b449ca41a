"""Takes a fixed row of steps again and again, killed by SIGKILL after every single event.

Every transaction of a run ends in an event, so these are all states that a kill can leave (that a
transaction itself survives one is what crash_driver.py shows). For every k a forked child takes the
steps until the k-th event and kills itself; another child then takes the same steps again.

Usage: python step_crash_driver.py FOLDER keys|none FIRST; with `keys` each step is named by its
caller. FIRST is the first event that kills.
Prints one JSON document.
"""

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kopt.kernels.status import Status
from kopt.search.step.result import StepHooks
from support.event_kills import FatalEvent, forked, leave_out_syncs, undisturbed
from support.scripted_steps import KERNEL, Steps, candidate

GIVEN = (
    (candidate(5.0, "a", hypothesis="first"), candidate(Status.INCORRECT)),
    (),  # the proposer's
    (),  # out of ideas: the full check
    (candidate(4.0, "b", parents=(1,)),),  # opens the run again
    (),  # ends it again
)
# Without a key only a kill between the end of a round and its pause differs: a sample is enough.
EVERY = 3
EVERY_NAMED = 2


def take_all(home: Path, named: bool, events: FatalEvent) -> None:
    """Take every step, or die after the fatal event."""
    steps = Steps(home)
    steps.install()
    for number, given in enumerate(GIVEN):
        is_begun = any(steps.settings.runs.glob("*/run.sqlite"))
        fields: dict[str, Any] = {"key": str(number)} if named else {}
        if number == 0 and (named or not is_begun):
            fields["kernel"] = KERNEL
        steps.take(*given, hooks=StepHooks(on_event=events), **fields)


def main(root: Path, named: bool, first: int) -> dict[str, Any]:
    """Kill after events from `first` on, once after each, and return what was seen."""
    leave_out_syncs()
    events = undisturbed(partial(take_all, root / "whole", named))
    expected = Steps(root / "whole").rows()
    problems: list[str] = []
    tried = range(first, events + 1, EVERY_NAMED if named else EVERY)
    killed = 0
    for fatal in tried:
        home = root / f"killed-{fatal}"
        work = partial(take_all, home, named)
        killed += forked(work, fatal)[0]
        before = Steps(home).rows()
        forked(work, 0)
        after = Steps(home).rows()
        if [row[:6] for row in after[: len(before)]] != [row[:6] for row in before]:
            problems.append(f"event {fatal}: a candidate was lost or changed")
        if sorted(map(str, (row[2:4] for row in after))) != sorted(
            map(str, (row[2:4] for row in expected))
        ):
            problems.append(f"event {fatal}: other candidates than undisturbed")
        if named and after != expected:
            problems.append(f"event {fatal}: another final state")
        shutil.rmtree(home)
    return {"tried": len(tried), "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2] == "keys", int(sys.argv[3]))))
