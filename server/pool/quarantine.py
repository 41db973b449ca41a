"""Candidates under which evaluators die, and the status of one that has killed too many.

An evaluator is the process above a worker, which no candidate reaches; one that takes the machine's
memory does. It would be tried for ever, by one evaluator after the other.
"""

import threading
from collections import Counter

from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.remote.answers import (
    ErrorAnswer,
    FarAnswer,
    OutcomeAnswer,
    PreparedAnswer,
    TimingFailedAnswer,
)
from kopt.tools.remote.calls import ErrandCall, ExecuteCall, OpenTimingCall, PrepareCall

MOST_DEATHS = 2
"""Evaluators that may die under one candidate, one after the other."""


class Deaths:
    """Counts the evaluators that died under each candidate in a row; safe from several threads."""

    def __init__(self) -> None:
        """Nothing has died."""
        self._turn = threading.Lock()
        self._counted: Counter[str] = Counter()

    def count(self, suspect: str) -> None:
        """Count one under a candidate; "" is none."""
        if suspect:
            with self._turn:
                self._counted[suspect] += 1

    def is_enough(self, suspect: str) -> bool:
        """Return whether a candidate is not to be tried again."""
        return self._counted[suspect] >= MOST_DEATHS

    def forgive(self, suspect: str) -> None:
        """Begin anew: an evaluator has survived it."""
        with self._turn:
            self._counted.pop(suspect, None)


def suspect_of(call: ErrandCall) -> str:
    """Return the candidate of a call, as what deaths are counted by; "" where it has none."""
    match call:
        case PrepareCall() | ExecuteCall():
            return f"{call.program.plan.defines}\n{call.program.source}"
        case OpenTimingCall():
            return "\n".join(side.model_dump_json() for side in call.asked.sides)
        case _:
            return ""


def quarantined(call: ErrandCall, said: str) -> FarAnswer:
    """Return the answer to a call of a candidate that is not tried again.

    Args:
        call: Of it.
        said: How the last evaluator died.
    """
    message = f"{MOST_DEATHS} evaluators died under it, one after the other: {said}"
    hint = "it ends the process above its worker: look for memory of the host that grows and grows"
    outcome = OutcomeAnswer(
        status=Status.QUARANTINED, diagnostics=(Diagnostic(message=message, hint=hint),)
    )
    match call:
        case PrepareCall():
            return PreparedAnswer(failure=outcome)
        case ExecuteCall():
            return outcome
        case OpenTimingCall():
            return TimingFailedAnswer(side=None, outcome=outcome)
        case _:
            return ErrorAnswer(error="infra", message=message)
