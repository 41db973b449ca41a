"""The closed lists that results use: status, verdict, provenance.

docs/statuses.md says what to do about each status.
"""

from enum import StrEnum


class Status(StrEnum):
    """How the evaluation of a candidate ended."""

    PASSED = "passed"
    PLAN_ERROR = "plan_error"
    COMPILE_ERROR = "compile_error"
    REFUSED = "refused"
    INCORRECT = "incorrect"
    UNWRITTEN_OUTPUT = "unwritten_output"
    INPUT_MUTATED = "input_mutated"
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    UNINITIALIZED_READ = "uninitialized_read"
    DATA_RACE = "data_race"
    BARRIER_DIVERGENCE = "barrier_divergence"
    LAUNCH_ERROR = "launch_error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    REWARD_HACK = "reward_hack"
    UNSUPPORTED_ON_SIM = "unsupported_on_sim"
    QUARANTINED = "quarantined"


class Verdict(StrEnum):
    """What a comparison of speed says; a field of its own beside the status."""

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    IMPOSSIBLE = "impossible"
    NOT_LIKE_FOR_LIKE = "not_like_for_like"
    ESTIMATED = "estimated"


class Provenance(StrEnum):
    """How a value came about. Unavailable is never written as 0."""

    MEASURED = "measured"
    COMPUTED = "computed"
    ESTIMATED = "estimated"
    UNAVAILABLE = "unavailable"


ADVICE = {
    Status.PASSED: "Nothing: every gate of the level that was asked for is met.",
    Status.PLAN_ERROR: "Fix the header comment, or the kernel that it launches: the line above "
    "says what does not fit and what is allowed (docs/candidates.md).",
    Status.COMPILE_ERROR: "Fix the first error; the rest often follow from it.",
    Status.REFUSED: "Remove the construct that is named: it is not allowed in a candidate.",
    Status.INCORRECT: "Start from the first mismatch: its row, column and pattern point at the "
    "code that wrote it.",
    Status.UNWRITTEN_OUTPUT: "Write every element of the output: look at the tail and at early "
    "returns.",
    Status.INPUT_MUTATED: "Do not write to tensors of role `in`; use a scratch buffer.",
    Status.OUT_OF_BOUNDS: "Guard the index at the line above; mind the last row and the last "
    "vector.",
    Status.MISALIGNED: "Align the address to the width of the access, or use a narrower one.",
    Status.UNINITIALIZED_READ: "Write the memory before it is read: scratch and shared memory "
    "start undefined.",
    Status.DATA_RACE: "Within a block, put a barrier or an atomic between the two accesses that "
    "are named; between blocks, let each write elements of its own.",
    Status.BARRIER_DIVERGENCE: "Let every thread of the block reach the same barrier: move it out "
    "of the branch.",
    Status.LAUNCH_ERROR: "Change grid, block, cluster or shared memory to what the device allows.",
    Status.CRASH: "Look for wild pointers and endless recursion: the process ended by a signal.",
    Status.TIMEOUT: "Look for loops that never end, or for far more work than the problem needs.",
    Status.REWARD_HACK: "Compute the result: the candidate gains by misleading the harness.",
    Status.UNSUPPORTED_ON_SIM: "Use the wrapper of <kopt/...> for this instruction, or check on a "
    "GPU: the kernel may be right.",
    Status.QUARANTINED: "Do not resubmit it: it brought down its worker more than once.",
}
